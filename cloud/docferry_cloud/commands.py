"""The cloud's commands. Engines and databases are loaded only once a command runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docferry import console
from docferry.settings import load
from docferry_cloud.access.commands import audit, keys_app
from docferry_cloud.delivery_commands import deliveries_app

if TYPE_CHECKING:
    from docferry_cloud.engine import Engine
    from docferry_cloud.settings import CloudSettings

cloud_app = typer.Typer(help="The cloud service.", no_args_is_help=True)


cloud_app.add_typer(deliveries_app, name="deliveries")


@cloud_app.callback()
def _cloud() -> None:
    """Without a callback typer would make the only command the group itself."""


@cloud_app.command("serve")
def serve(
    config: Annotated[Path | None, typer.Option("--config", help="TOML file; without one the defaults hold.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Say the address and readiness as JSON Lines.")] = False,
) -> None:
    """Take envelopes in, interpret them and publish what was found, until SIGTERM or Ctrl-C."""
    from docferry_cloud.server import serve as run

    settings, say = _prepared(config, json=json)
    own = () if config is None else ("--config", str(config))
    worker_command = (sys.executable, "-m", "docferry.cli", "cloud", "worker", *own)

    def ready(address: str, **more: str) -> None:
        say("listening", address=address, **more)

    def working(engine: str) -> None:
        say("ready", engine=engine)

    asyncio.run(run(settings, worker_command=worker_command, ready=ready, working=working))


@cloud_app.command("worker")
def worker(
    config: Annotated[Path | None, typer.Option("--config", help="The TOML file of the front ends.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Say readiness as JSON Lines.")] = False,
    attached: Annotated[int, typer.Option("--attached", hidden=True, help="Socket of the front end above.")] = -1,
) -> None:
    """Interpret what the front ends of the same database take in, until SIGTERM or Ctrl-C; listens on no port."""
    from docferry.errors import ConfigurationError, DocferryError
    from docferry_cloud.parent_link import ParentLink
    from docferry_cloud.worker import begin_anew, work

    settings, say = _prepared(config, json=json)
    if not settings.workers:
        raise ConfigurationError(
            "engine.workers is 0: this worker would do nothing", remedy="set it to 1 or more", setting="engine.workers"
        )
    parent = ParentLink(attached)

    def engine() -> Engine:
        from docferry.model_store import default_store
        from docferry.vision.memory import bound_memory
        from docferry_cloud.pipeline import PipelineEngine

        # A long document would else grow every network's buffers to its largest page's, one beside the other.
        bound_memory()
        loaded = PipelineEngine.load(default_store(), settings.workers * settings.threads)
        if not parent.attached:
            say("ready", engine=loaded.name)
        return loaded

    def ready() -> None:
        if not parent.attached:
            say("working")

    try:
        outgrown = asyncio.run(work(settings, engine_factory=engine, ready=ready, parent=parent))
    except DocferryError:
        if not parent.attached:
            raise
        raise typer.Exit(1) from None  # the front end says why
    if outgrown:
        begin_anew()


@cloud_app.command("doctor")
def doctor(
    config: Annotated[Path | None, typer.Option("--config", help="The service's TOML file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines.")] = False,
) -> None:
    """Look at what the service needs, and say what is wrong and what to do; exit status 1 if it would not work."""
    from docferry.doctor import report
    from docferry.model_store import default_store
    from docferry_cloud.doctor import examine
    from docferry_cloud.settings import SETTINGS, cloud_settings

    report(examine(cloud_settings(load(SETTINGS, config)), default_store()), as_json=json)


cloud_app.add_typer(keys_app, name="keys")
cloud_app.command("audit")(audit)


def _prepared(config: Path | None, *, json: bool) -> tuple[CloudSettings, Callable[..., None]]:
    """The settings, and how to say something."""
    from docferry import logs
    from docferry_cloud.settings import SETTINGS, cloud_settings

    settings = cloud_settings(load(SETTINGS, config))
    logs.configure(settings.log_format, settings.log_level)

    def say(status: str, **values: str) -> None:
        if json:
            console.print_json({"status": status, **values})
        else:
            typer.echo(" ".join([status, *values.values()]))

    return settings, say
