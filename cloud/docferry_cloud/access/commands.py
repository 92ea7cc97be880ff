"""`docferry cloud keys` and `docferry cloud audit`: for who can read the configuration and reach the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docferry import console
from docferry_cloud.access.rules import Scope

if TYPE_CHECKING:
    from docferry_cloud.access.keys import Key
    from docferry_cloud.database import Database
    from docferry_cloud.settings import CloudSettings

Config = Annotated[Path | None, typer.Option("--config", help="The service's TOML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines.")]

keys_app = typer.Typer(help="Keys: who may call the service, and what that allows.", no_args_is_help=True)


@keys_app.command("create")
def create(
    tenant: Annotated[str, typer.Option("--tenant", help="Whose documents the key gives access to.")],
    scope: Annotated[list[Scope], typer.Option("--scope", help="What it allows; may be given several times.")],
    device: Annotated[str, typer.Option("--device", help="The kiosk it is for; needed with the scope device.")] = "",
    name: Annotated[str, typer.Option("--name", help="What you call it.")] = "",
    expires_days: Annotated[float | None, typer.Option("--expires-days", help="Days until it expires.")] = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Issue a key and print it, this once: only its hash is kept."""
    from docferry_cloud.access.keys import Keys

    with _opened(config) as (database, settings):
        key, text = Keys(database).create(tenant, scope, device=device, name=name, days=expires_days)
        _record(database, settings, "keys.create", key)
    if json:
        console.print_json(_shown(key) | {"key": text})
    else:
        typer.echo(text)


@keys_app.command("list")
def list_keys(
    tenant: Annotated[str, typer.Option("--tenant", help="Only this tenant's.")] = "",
    config: Config = None,
    json: Json = False,
) -> None:
    """Show the keys, those that are no longer valid included."""
    from docferry_cloud.access.keys import Keys

    with _opened(config) as (database, _):
        rows, now = Keys(database).all(tenant), database.now()
    for key in rows:
        row = _shown(key) | {"valid": key.valid(now)}
        if json:
            console.print_json(row)
        else:
            typer.echo(
                f"{key.key_id}  {'valid' if row['valid'] else 'no longer valid':15}  {key.tenant:16}  "
                f"{','.join(row['scopes']):20}  {key.device}  {key.name}".rstrip()
            )


@keys_app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key's id, as `list` shows it; never the key itself.")],
    config: Config = None,
    json: Json = False,
) -> None:
    """Take a key back: within seconds every front end refuses it."""
    from docferry_cloud.access.keys import Keys

    with _opened(config) as (database, settings):
        key = Keys(database).revoke(key_id)
        _record(database, settings, "keys.revoke", key)
    if json:
        console.print_json(_shown(key))
    else:
        typer.echo(f"{key.key_id} is revoked")


def audit(
    tenant: Annotated[str, typer.Option("--tenant", help="Only this tenant's calls.")] = "",
    since: Annotated[float, typer.Option("--since", help="Hours to look back.", min=0)] = 24.0,
    limit: Annotated[int, typer.Option("--limit", help="The newest so many.", min=1)] = 1000,
    config: Config = None,
    json: Json = False,
) -> None:
    """Show who called what, and how it ended."""
    from docferry_cloud.access.audit import Trail

    with _opened(config) as (database, settings):
        after = database.now() - int(timedelta(hours=since) / timedelta(microseconds=1))
        entries = Trail(database, settings.audit_days).read(tenant, after, limit)
    for entry in entries:
        row = {"time": _time(entry.time), "tenant": entry.tenant, "who": entry.who, "rpc": entry.rpc}
        row |= {"analysis_id": entry.analysis_id, "outcome": entry.outcome, "peer": entry.peer}
        if json:
            console.print_json(row)
        else:
            typer.echo("  ".join(value or "-" for value in row.values()))


@contextmanager
def _opened(config: Path | None) -> Iterator[tuple[Database, CloudSettings]]:
    """The service's database, made or brought up to date if it has to be."""
    from docferry.settings import load
    from docferry_cloud.database import Database
    from docferry_cloud.settings import SETTINGS, cloud_settings

    settings = cloud_settings(load(SETTINGS, config))
    database = Database(settings.database or settings.directory / "store.sqlite")
    try:
        database.create()
        yield database, settings
    finally:
        database.close()


def _record(database: Database, settings: CloudSettings, what: str, key: Key) -> None:
    from docferry_cloud.access.audit import Entry, Trail

    entry = Entry(database.now(), key.tenant, "operator", f"{what} {key.key_id}", "", "OK", "")
    Trail(database, settings.audit_days).write([entry])


def _shown(key: Key) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "tenant": key.tenant,
        "device": key.device,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "create_time": _time(key.create_time),
        "expire_time": _time(key.expire_time),
        "revoke_time": _time(key.revoke_time),
        "last_use": _time(key.last_use),
    }


def _time(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds")
