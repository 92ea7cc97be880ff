"""Tables as data: cells on a grid, column names, numbers. Pure, the same at both ends."""

from docferry.tables.grid import Cell, Grid, from_html, placed, to_html, without_empty

__all__ = ["Cell", "Grid", "from_html", "placed", "to_html", "without_empty"]
