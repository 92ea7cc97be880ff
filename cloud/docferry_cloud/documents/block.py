"""What files without pixels are read into, before they become a page."""

from __future__ import annotations

from dataclasses import dataclass

from docferry.document import Box, RegionType
from docferry.tables import Grid

MOST_ROWS = 5000
MOST_COLUMNS = 200
"""Of one table; larger ones are data, not documents."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a file: its kind, its text line by line, and the grid of a table."""

    type: RegionType
    texts: tuple[str, ...] = ()
    grid: Grid | None = None
    box: Box | None = None


def plain(text: str) -> str:
    """On one line, with single spaces."""
    return " ".join(text.split())
