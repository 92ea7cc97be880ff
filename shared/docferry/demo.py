"""`docferry demo`: the whole way of a document on this machine, from a photo to the notification."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from docferry import console, report, samples
from docferry.embedded import Embedded, running
from docferry.errors import DocferryError


def demo(
    files: Annotated[list[Path] | None, typer.Argument(help="Your own photos; without any, four samples.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Go on serving at the end, until Ctrl-C.")] = False,
    json: Annotated[bool, typer.Option("--json", help="JSON Lines, one object a document.")] = False,
) -> None:
    """Run cloud, agent and a webhook receiver here, send photos through, print what happened, and stop."""
    chosen = list(files or samples.paths())
    with tempfile.TemporaryDirectory(prefix="docferry-demo-") as folder:
        try:
            good = asyncio.run(_run(Path(folder), chosen, keep=keep, json=json))
        except asyncio.CancelledError:
            raise typer.Exit(130) from None
    if not good:
        raise typer.Exit(1)


async def _run(folder: Path, files: list[Path], *, keep: bool, json: bool) -> bool:
    def say(text: str) -> None:
        if not json:
            typer.echo(text)

    # Also SIGTERM, and SIGINT where a shell has it ignored: whoever stops the demo stops what it has started.
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    say("starting the cloud service and the edge agent ...")
    good = True
    # Nothing is audited here: the slice is for fleets, and a demo should show the usual route.
    async with running(folder, "[route]\naudit_share = 0.0\n", pages=keep) as system:
        say(f"cloud service on {system.target}; agent watching {folder / 'inbox'}\n")
        for file in files:
            tree = await _one(system, file, quiet=json)
            good = good and tree["status"] == "done"
            if json:
                console.print_json(tree)
            else:
                console.print_document({**tree, "file": file.name})
                say("")
        if keep:
            say(f"the results, and a place to drop a photo:  {system.results}")
            say(f"the kiosk's page, which shows it being read:  {system.kiosk}")
            say(f"serving until Ctrl-C; try:  docferry submit {files[0]} --to {system.target} --wait")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
    return good


async def _one(system: Embedded, file: Path, *, quiet: bool) -> dict[str, Any]:
    def edge_answered(tree: dict[str, Any]) -> None:
        found = ", ".join(f"{field['name']} {field['normalized']}" for field in tree["fields"]) or "no fields"
        lines = sum(len(region["lines"]) for page in tree["pages"] for region in page["regions"])
        typer.echo(f"{file.name}: the edge read {lines} lines in {tree['timings_ms']['read']} ms: {found}")

    try:
        return await system.process(file, on_edge=None if quiet else edge_answered)
    except DocferryError as error:
        return report.failure(str(file), error)
