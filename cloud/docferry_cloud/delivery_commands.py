"""`docferry cloud deliveries`: what was not delivered, and delivering it again; works on the database itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docferry import console
from docferry.settings import load

if TYPE_CHECKING:
    from docferry_cloud.deliveries import Deliveries

deliveries_app = typer.Typer(help="Events on their way to webhooks, browsers and others.", no_args_is_help=True)

_CONFIG = Annotated[Path | None, typer.Option("--config", help="The service's TOML file.")]
_MOST = 1000


@deliveries_app.command("list")
def list_deliveries(
    config: _CONFIG = None,
    dead: Annotated[bool, typer.Option("--dead", help="Only what was given up.")] = False,
    subscription: Annotated[str, typer.Option("--subscription", help="Only to this subscription.")] = "",
    json: Annotated[bool, typer.Option("--json", help="JSON Lines.")] = False,
) -> None:
    """Show what is still to be delivered and what was given up, of all tenants, the newest 1,000 first."""
    from docferry_cloud.webhook_format import timestamp

    with _open(config) as deliveries:
        rows = deliveries.page(None, subscription, dead=dead, limit=_MOST)
    for row in rows:
        shown = {
            "subscription_id": row.subscription_id,
            "tenant": row.tenant,
            "event_id": row.event_id,
            "attempts": row.attempts,
            "state": "dead" if row.dead_time else "waiting",
            "time": timestamp(row.dead_time or row.due_time),
            "failure": row.failure,
        }
        if json:
            console.print_json(shown)
        else:
            typer.echo("  ".join(str(value) for value in shown.values()))


@deliveries_app.command("replay")
def replay(
    subscription: Annotated[str, typer.Argument(help="The subscription's id.")],
    config: _CONFIG = None,
    event: Annotated[str, typer.Option("--event", help="Only this event.")] = "",
) -> None:
    """Deliver again what was given up, under the same event ids; switches the subscription on if it was off."""
    with _open(config) as deliveries:
        typer.echo(f"{deliveries.replay(None, subscription, event)} events are due again")


@contextmanager
def _open(config: Path | None) -> Iterator[Deliveries]:
    from docferry_cloud.core import database_of
    from docferry_cloud.deliveries import Deliveries
    from docferry_cloud.settings import SETTINGS, cloud_settings

    settings = cloud_settings(load(SETTINGS, config))
    database = database_of(settings)
    try:
        database.create()
        yield Deliveries(database, settings.retention_days)
    finally:
        database.close()
