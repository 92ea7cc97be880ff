"""TEDS: how alike two tables are, as trees (Zhong, ShafieiBavani, Jimeno Yepes, 2020, section 4).

1 - edit distance / nodes of the larger tree. A cell is renamed for 1 where its spans differ and for the normalised
Levenshtein distance of its text where they do not; TEDS-structure leaves the text out. Text is compared without inline
markup and with its spaces collapsed. `thead` and `tbody` count where the truth has them, and `th` is `td`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apted import APTED, Config
from rapidfuzz.distance import Levenshtein

from docferry.tables import Cell, Grid, from_html


@dataclass(slots=True, eq=False)
class Node:
    """A node of a table's tree; `children` is the name that apted looks for."""

    tag: str
    spans: tuple[int, int] = (1, 1)
    text: str = ""
    children: list[Node] = field(default_factory=list)

    def size(self) -> int:
        """Nodes in the tree."""
        return 1 + sum(child.size() for child in self.children)


class _Costs(Config):  # type: ignore[misc]
    def __init__(self, *, structure: bool) -> None:
        self._structure = structure

    def rename(self, one: Node, other: Node) -> float:
        if one.tag != other.tag or one.spans != other.spans:
            return 1.0
        if self._structure or one.tag != "td":
            return 0.0
        return Levenshtein.normalized_distance(one.text, other.text)


def teds(truth: str, read: str, *, structure: bool = False) -> float:
    """0..1; 0 where nothing was read.

    Args:
        truth, read: HTML with a table in it.
        structure: Leave the cells' text out.
    """
    wanted, found = from_html(truth), from_html(read)
    if not wanted.cells or not found.cells:
        return 0.0
    sections = "<thead" in truth
    one, other = _tree(wanted, sections=sections), _tree(found, sections=sections)
    distance = APTED(one, other, _Costs(structure=structure)).compute_edit_distance()
    return float(1 - distance / max(one.size(), other.size()))


def _tree(grid: Grid, *, sections: bool) -> Node:
    rows: list[list[Cell]] = [[] for _ in range(grid.height)]
    for cell in grid.cells:
        rows[cell.row].append(cell)
    nodes = [Node("tr", children=[Node("td", (cell.rows, cell.columns), cell.text) for cell in row]) for row in rows]
    if not sections:
        return Node("table", children=nodes)
    head = grid.head
    parts = [("thead", nodes[:head]), ("tbody", nodes[head:])]
    return Node("table", children=[Node(tag, children=children) for tag, children in parts if children])
