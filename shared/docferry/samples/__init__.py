"""Four generated photos that ship with the package, for `docferry demo`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

NAMES = ("thermal_receipt.jpg", "invoice_table.jpg", "two_column_page.jpg", "chinese_receipt.jpg")


def paths() -> tuple[Path, ...]:
    """Where the samples lie: a thermal receipt, an invoice with a table, a two-column page, a Chinese receipt."""
    folder = Path(str(files(__name__)))
    return tuple(folder / name for name in NAMES)
