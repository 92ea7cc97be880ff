"""`docferry models build`; heavy libraries are imported once it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from docferry import console, model_commands
from docferry.model_store import default_store


def build(
    folder: Annotated[Path, typer.Argument(help="Where the bundle goes.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="What the calibration lines are drawn with.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per model.")] = False,
) -> None:
    """Build faster models from the pinned originals, on a development machine; kiosks pull the bundle."""
    from docferry_edge.models_build.build import build as build_bundle

    with console.progress() as bar:
        tasks = {}

        def told(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        bundle = build_bundle(default_store(), folder, seed, told)
    model_commands.show_bundle(bundle, as_json=as_json)
