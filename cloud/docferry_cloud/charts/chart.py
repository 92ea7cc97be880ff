"""A chart as data: what it shows as what, and the table of its values. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from docferry.document import Box
from docferry.tables import Cell, Grid


class ChartKind(enum.StrEnum):
    """What a chart draws its values as."""

    BARS = "bars"
    LINES = "lines"
    PIE = "pie"


@dataclass(frozen=True, slots=True)
class Label:
    """One line of text in a chart's picture; `box`, and the print's height `size`, in the picture's pixels."""

    text: str
    box: Box
    size: float

    @property
    def x(self) -> float:
        """Half way between left and right."""
        return (self.box[0] + self.box[2]) / 2

    @property
    def y(self) -> float:
        """Half way between top and bottom."""
        return (self.box[1] + self.box[3]) / 2


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one colour, one for each category; None where none is drawn. `name` is empty without a legend."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """What was measured in a chart.

    Attributes:
        categories: Along the axis of names, from its origin on; numbered where nothing is printed.
        step: What one pixel is worth on the axis of values: no value is surer than this.
    """

    kind: ChartKind
    categories: tuple[str, ...]
    series: tuple[Series, ...]
    step: float


def chart_grid(chart: Chart) -> Grid:
    """The chart's values as a table: a row for each category, a column for each series."""
    cells = [Cell(0, 0, "", header=True)]
    cells += [
        Cell(0, column, series.name or ("Value" if len(chart.series) == 1 else f"Series {column}"), header=True)
        for column, series in enumerate(chart.series, 1)
    ]
    for row, category in enumerate(chart.categories, 1):
        cells.append(Cell(row, 0, category))
        for column, series in enumerate(chart.series, 1):
            value = series.values[row - 1]
            cells.append(Cell(row, column, "" if value is None else shown(value, chart.step)))
    return Grid(tuple(cells))


def shown(value: float, step: float) -> str:
    """A measured value with no more digits than a pixel tells apart."""
    digits = 0
    while digits < 6 and step < 10**-digits:
        digits += 1
    text = f"{value:.{digits}f}"
    return "0" if float(text) == 0 else text
