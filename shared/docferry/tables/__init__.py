"""Tables as data: cells on a grid, column names, numbers, totals, tables over several pages. Pure."""

from docferry.tables.columns import Column, columns, head_rows, parse_number
from docferry.tables.continuation import Joined, all_tables, joined_tables
from docferry.tables.correction import put_right
from docferry.tables.grid import Cell, Grid, from_html, placed, to_html, without_empty
from docferry.tables.totals import WrongTotal, is_total, wrong_totals

__all__ = [
    "Cell",
    "Column",
    "Grid",
    "Joined",
    "WrongTotal",
    "all_tables",
    "columns",
    "from_html",
    "head_rows",
    "is_total",
    "joined_tables",
    "parse_number",
    "placed",
    "put_right",
    "to_html",
    "without_empty",
    "wrong_totals",
]
