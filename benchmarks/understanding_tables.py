"""Judging tables by TEDS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium

from benchmarks.teds import teds
from benchmarks.understanding_data import Judged, Truth
from docferry.document import Box, RegionType
from docferry.rectangles import area, overlap_area
from docferry.tables import Cell, Grid, from_html, to_html
from docferry_cloud.interpret import Interpretation

REGION_IOU = 0.6
"""A table is where it should be from this overlap on."""

Place = tuple[int, Box]
"""Page number, from 1, and a relative box."""


def judge_table(truth: Truth, answer: Interpretation) -> Judged:
    """A picture of one table: the first table found against it."""
    wanted = truth.truth["html"]
    found = next((region.html for page in answer.document.pages for region in page.regions if region.html), "")
    score = teds(wanted, found)
    values = {"teds": score, "structure": teds(wanted, found, structure=True)}
    return Judged(truth.id, score, _differences(wanted, found), values)


def summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Means over tables."""
    return {
        "teds": _mean([one.values["teds"] for one in judged]),
        "teds_structure": _mean([one.values["structure"] for one in judged]),
    }


def judge_pages(truth: Truth, answer: Interpretation) -> Judged:
    """A born-digital PDF: tables found against those it holds, by place; each table of the truth gives a TEDS.

    Truth counts rows and columns from 1 in some files, and knows nothing of cells in which nothing stands: these are
    put back. A table over several pages is compared with the one that covers its first part.
    """
    found = _found_tables(answer)
    wanted = [(place, grid) for table in truth.truth["tables"] for place, grid in _wanted(truth.file, table)]
    scores: list[float] = []
    structures: list[float] = []
    notes: list[str] = []
    free = list(found)
    hits = 0
    for place, grid in wanted:
        best = max(free, key=lambda one: iou(place, one[0]), default=None)
        if best is None or iou(place, best[0]) <= 0.1:
            scores.append(0.0)
            structures.append(0.0)
            notes.append(f"page {place[0]}: a table of {grid.height} rows was not found")
            continue
        free.remove(best)
        overlap = iou(place, best[0])
        hits += overlap >= REGION_IOU
        html = to_html(grid)
        scores.append(teds(html, best[1]))
        structures.append(teds(html, best[1], structure=True))
        if scores[-1] < 0.95:
            differences = _differences(html, best[1])
            notes.append(f"page {place[0]}: TEDS {scores[-1]:.3f}, IoU {overlap:.2f}; {'; '.join(differences[:2])}")
    notes += [f"page {one[0][0]}: no table is where one was found" for one in free]
    values = {"teds": scores, "structure": structures, "hits": hits, "wanted": len(wanted), "found": len(found)}
    return Judged(truth.id, min([*scores, 1.0 if not free else 0.5], default=1.0), tuple(notes), values)


def pages_summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Means over tables, and F1 of their regions."""
    hits, wanted, found = (sum(one.values[name] for one in judged) for name in ("hits", "wanted", "found"))
    return {
        "tables": wanted,
        "teds": _mean([score for one in judged for score in one.values["teds"]]),
        "teds_structure": _mean([score for one in judged for score in one.values["structure"]]),
        "region_f1": round(2 * hits / (wanted + found), 4) if wanted + found else 0.0,
    }


def iou(one: Place, other: Place) -> float:
    """Intersection over union of two boxes; 0 on different pages."""
    if one[0] != other[0]:
        return 0.0
    shared = overlap_area(one[1], other[1])
    return shared / (area(one[1]) + area(other[1]) - shared) if shared else 0.0


def _found_tables(answer: Interpretation) -> list[tuple[Place, str]]:
    return [
        ((number, region.box), region.html or "")
        for number, page in enumerate(answer.document.pages, 1)
        for region in page.regions
        if region.type is RegionType.TABLE
    ]


def _wanted(file: Path, table: Mapping[str, Any]) -> Iterator[tuple[Place, Grid]]:
    region = table["regions"][0]
    if region["bbox_pdf"] is None or not table["cells"]:
        return
    with closing(pdfium.PdfDocument(file)) as document:
        page = document[region["page"] - 1]
        width, height = page.get_size()
        # The truth's y runs up from the bottom of the page as it was before it was turned.
        flip = height if page.get_rotation() in {0, 180} else width
    x0, y0, x1, y1 = region["bbox_pdf"]
    box = (x0 / width, (flip - y1) / height, x1 / width, (flip - y0) / height)
    yield (region["page"], box), _truth_grid(table["cells"])


def _truth_grid(cells: Sequence[Mapping[str, Any]]) -> Grid:
    top, left = min(cell["row"] for cell in cells), min(cell["col"] for cell in cells)
    grid = Grid(
        tuple(
            Cell(
                cell["row"] - top,
                cell["col"] - left,
                " ".join(cell["text"].split()),
                cell["end_row"] - cell["row"] + 1,
                cell["end_col"] - cell["col"] + 1,
            )
            for cell in cells
        )
    )
    empty = [
        Cell(row, column)
        for row, places in enumerate(grid.places())
        for column, cell in enumerate(places)
        if cell is None
    ]
    return Grid(tuple(sorted([*grid.cells, *empty], key=lambda cell: (cell.row, cell.column))))


def _differences(wanted: str, found: str) -> tuple[str, ...]:
    if not found:
        return ("no table was found",)
    one, other = from_html(wanted), from_html(found)
    if (one.height, one.width) != (other.height, other.width):
        return (f"{other.height} rows of {other.width} columns instead of {one.height} of {one.width}",)
    rows = zip(one.texts(), other.texts(), strict=True)
    pairs = [pair for row in rows for pair in zip(*row, strict=True)]
    return tuple(f"{truth!r} read as {read!r}" for truth, read in pairs if truth != read)[:5]


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
