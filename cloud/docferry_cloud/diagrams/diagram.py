"""A diagram as data: its boxes by their names, the lines between them, and both as a table. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from docferry.tables import Cell, Grid

_ARROW = "→"
_LINE = "—"


@dataclass(frozen=True, slots=True)
class Edge:
    """One line between two boxes, from tail to head; one without heads in the order of reading.

    Attributes:
        start: The name in the box it begins at.
        end: The name in the box it ends at.
        label: What is printed on the line; empty without.
        directed: Whether there is a head at its end. A line with two heads is two edges.
    """

    start: str
    end: str
    label: str = ""
    directed: bool = True

    def __str__(self) -> str:
        return f"{self.start} {'->' if self.directed else '--'} {self.end}"


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes by the text that stands in them, in the order of reading, and who is connected to whom."""

    names: tuple[str, ...]
    edges: tuple[Edge, ...]


def diagram_grid(diagram: Diagram) -> Grid:
    """The diagram as a table: a row for each edge, with a column of labels where there are any."""
    labelled = any(edge.label for edge in diagram.edges)
    rows = [["From", "Link", "To", *(["Label"] if labelled else [])]]
    rows += [
        [edge.start, _ARROW if edge.directed else _LINE, edge.end, *([edge.label] if labelled else [])]
        for edge in diagram.edges
    ]
    return Grid(tuple(Cell(y, x, text, header=y == 0) for y, row in enumerate(rows) for x, text in enumerate(row)))
