"""What both ends look at when they are asked what is wrong around them, and how they say it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import shutil
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from docferry import console
from docferry.errors import DocferryError
from docferry.model_store import Condition, ModelStore

OK, WARNING, FAILED = "ok", "warning", "failed"

_OPENCVS = ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: its name, `OK`, `WARNING` or `FAILED`, what was seen and what to do about it."""

    name: str
    state: str
    detail: str
    remedy: str = ""


Look = tuple[str, Callable[[], Finding]]
"""A thing's name, and how to look at it."""


def all_findings(looks: Iterable[Look]) -> Iterator[Finding]:
    """One finding after the other; a look that fails is a finding itself and keeps none from the others."""
    for name, look in looks:
        try:
            yield look()
        except DocferryError as error:
            yield Finding(name, FAILED, error.reason, error.remedy)
        except OSError as error:
            yield Finding(name, FAILED, str(error), "see the reason")


def report(findings: Iterable[Finding], *, as_json: bool) -> None:
    """Print findings as they come.

    Raises:
        typer.Exit: With status 1 if one of them is `FAILED`.
    """
    failed = False
    for finding in findings:
        failed |= finding.state == FAILED
        if as_json:
            console.print_json(asdict(finding))
        else:
            more = f" ({finding.remedy})" if finding.remedy else ""
            typer.echo(f"{finding.state:8} {finding.name}: {finding.detail}{more}")
    if failed:
        raise typer.Exit(1)


def folder(name: str, place: Path, min_free_bytes: int, setting: str) -> Finding:
    """Whether a folder can be written to and has room; a probe is left behind by a power cut only."""
    if not place.exists():
        return Finding(name, WARNING, f"{place} is not there yet", "the first start makes it")
    probe = place / f".probe-{uuid.uuid4()}"
    try:
        probe.write_bytes(b"probe")
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    free = shutil.disk_usage(place).free
    if free < min_free_bytes:
        return Finding(name, FAILED, f"{free >> 20} MB are free: nothing new is taken", f"make room, or set {setting}")
    return Finding(name, OK, f"{place}, {free >> 20} MB free")


def models(store: ModelStore, names: Collection[str]) -> Finding:
    """Whether every one of these models is here, hashed byte by byte."""
    wrong = [check for check in store.verify(names) if check.condition is not Condition.READY]
    if wrong:
        named = ", ".join(f"{check.model.name} is {check.condition.value}" for check in wrong)
        return Finding("models", FAILED, named, "run: docferry models pull")
    return Finding("models", OK, f"{len(names)} in order")


def opencv() -> Finding:
    """Whether one build of OpenCV is installed: two share a folder, and the one that came last wins."""
    found = [name for name in _OPENCVS if _installed(name)]
    if len(found) > 1:
        remedy = "uninstall all of them and install opencv-python-headless alone"
        return Finding("OpenCV", FAILED, f"{' and '.join(found)} share one folder and overwrite each other", remedy)
    return Finding("OpenCV", OK, found[0] if found else "another build")


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
