"""The cloud's commands. Engines and databases are loaded only once a command runs."""

from __future__ import annotations

import asyncio
import os
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

    settings, say, engine = _prepared(config, json=json)

    def ready(address: str, **more: str) -> None:
        say("listening", address=address, **more)

    asyncio.run(run(settings, engine_factory=engine, ready=ready))


@cloud_app.command("worker")
def worker(
    config: Annotated[Path | None, typer.Option("--config", help="The TOML file of the front ends.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Say readiness as JSON Lines.")] = False,
) -> None:
    """Interpret what the front ends of the same database take in, until SIGTERM or Ctrl-C; listens on no port."""
    from docferry.errors import ConfigurationError
    from docferry_cloud.worker import work

    settings, say, engine = _prepared(config, json=json)
    if not settings.workers:
        raise ConfigurationError(
            "engine.workers is 0: this worker would do nothing", remedy="set it to 1 or more", setting="engine.workers"
        )
    if asyncio.run(work(settings, engine_factory=engine, ready=lambda: say("working"))):
        # The same process to whoever watches it, and none of its memory.
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the command that started us, word for word


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


def _prepared(config: Path | None, *, json: bool) -> tuple[CloudSettings, Callable[..., None], Callable[[], Engine]]:
    """The settings, how to say something, and the engine's factory."""
    from docferry import logs
    from docferry.model_store import default_store
    from docferry_cloud.settings import SETTINGS, cloud_settings

    settings = cloud_settings(load(SETTINGS, config))
    logs.configure(settings.log_format, settings.log_level)

    def say(status: str, **values: str) -> None:
        if json:
            console.print_json({"status": status, **values})
        else:
            typer.echo(" ".join([status, *values.values()]))

    def engine() -> Engine:
        from docferry_cloud.pipeline import PipelineEngine
        from docferry_cloud.vlm.engine import with_full_model

        fast = PipelineEngine.load(default_store(), settings.workers * settings.threads)
        loaded = with_full_model(fast, settings.vlm)
        say("ready", engine=loaded.name)
        return loaded

    return settings, say, engine
