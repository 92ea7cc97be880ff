"""How commands speak to people: one summary a document on a terminal or in a pipe, JSON Lines with `--json`."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text


def print_json(tree: dict[str, Any]) -> None:
    """One compact JSON object on a line of its own, at once."""
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    sys.stdout.write(_printable(text) + "\n")
    sys.stdout.flush()


def progress() -> Progress:
    """A progress bar on standard error; silent where that is no terminal."""
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def print_document(tree: dict[str, Any]) -> None:
    """A document's answer for a person. Everything read from paper is printed as plain text."""
    console = Console(highlight=False, soft_wrap=True)
    head = Text(_printable(str(tree.get("file", ""))), style="bold")
    head.append(f"  {tree['status']}", style="green" if tree["status"] in {"done", "read"} else "red")
    if "engine" in tree:
        note = "the edge's own answer" if tree["engine"] == "edge" else f"version {tree['version']}, {tree['engine']}"
        head.append(f"  ({note})", style="dim")
    console.print(head)
    if "error" in tree:
        console.print(Text(_printable(f"  {tree['error']['code']}: {tree['error']['reason']}")))
        console.print(Text(f"  {tree['error']['remedy']}", style="dim"))
    table = Table.grid(padding=(0, 2))
    for field in tree.get("fields", ()):
        confidence = Text(f"{field['confidence']:.2f}", style="dim")
        table.add_row(Text(f"  {field['name']}", style="cyan"), Text(field["normalized"]), confidence)
    if table.row_count:
        console.print(table)
    for line in _facts(tree):
        console.print(Text(f"  {line}"))


def _printable(text: str) -> str:
    """File names in another encoding reach Python with surrogates, which no stream takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _facts(tree: dict[str, Any]) -> list[str]:
    facts: list[str] = [tree["summary"]] if tree.get("summary") else []
    route = tree.get("route")
    if route:
        reasons = "; ".join(f"{reason['code']}: {reason['detail']}" for reason in route["reasons"])
        facts.append(f"route {route['decision']}: {reasons}")
    traffic = tree.get("traffic")
    if traffic and traffic["original_bytes"]:
        share = traffic["sent_bytes"] / traffic["original_bytes"]
        parts = ", ".join(f"{part['kind']} {part['bytes']:,}" for part in traffic["parts"])
        facts.append(f"bytes {traffic['original_bytes']:,} → {traffic['sent_bytes']:,} ({share:.1%}): {parts}")
    if tree.get("timings_ms"):
        facts.append("ms " + ", ".join(f"{name} {value}" for name, value in tree["timings_ms"].items()))
    facts += [
        f"notified by {note['sink']} after {note['ms']} ms (event {note['event_id']})"
        for note in tree.get("notified") or ()
    ]
    return facts
