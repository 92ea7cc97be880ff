"""Tables brought into a page's regions as HTML."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from docferry.document import Box, Page, Region, RegionType
from docferry.tables import Grid, to_html
from docferry.vision.images import Pixels
from docferry.vision.quads import absolute
from docferry_cloud.engine import Cancelled, check
from docferry_cloud.tables.reader import TableReader, TableText

_AIR = 4.0
"""Pixels around a table's box at 1000 px on the page's long side; layout boxes cut into rules and outer letters."""

_KEPT = 0.7
"""A structure that holds a smaller share of the region's letters has lost too much: the lines alone say more."""


def with_tables(
    page: Page, image: Pixels, reader: TableReader, cancelled: Cancelled, *, reread: bool, least_score: float = 0.0
) -> Page:
    """The page with the HTML of its tables.

    Args:
        page: As read; regions that have HTML already are left alone.
        image: The same page's pixels at any size.
        reread: Whether the picture is at least as sharp as the one that the lines were read from.
        least_score: Structures that the network scored lower are not believed, 0..1.

    Raises:
        EngineError: `cancelled` said True.
    """
    regions = []
    for region in page.regions:
        check(cancelled)
        wanted = region.type is RegionType.TABLE and region.html is None
        if not wanted:
            regions.append(region)
            continue
        lines, crop = _cut_out(region, image)
        grid = reader.read(crop, lines, cancelled, reread=reread, least_score=least_score)
        regions.append(_with_table(region, grid))
    return replace(page, regions=tuple(regions))


def _cut_out(region: Region, image: Pixels) -> tuple[list[TableText], Pixels]:
    """The region's picture with a little air, and its lines in that picture's pixels."""
    height, width = image.shape[:2]
    x0, y0, x1, y1 = _pixels_of(_around(region), width, height)
    lines = []
    for line in region.lines:
        quad = absolute(line.polygon, width, height)
        quad -= np.array([x0, y0], dtype=np.float32)
        lines.append(TableText(quad, line.text))
    return lines, image[y0:y1, x0:x1]


def _with_table(region: Region, grid: Grid) -> Region:
    enough = _letters(grid) >= _KEPT * sum(len(_bare(line.text)) for line in region.lines)
    if grid.height < 2 or grid.width < 2 or not enough:
        return region
    return replace(region, html=to_html(grid))


def _around(region: Region) -> Box:
    """The region's box, wide enough for every line that belongs to it."""
    boxes = [region.box, *(line.box for line in region.lines)]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def _pixels_of(box: Box, width: int, height: int) -> tuple[int, int, int, int]:
    air = _AIR * max(width, height) / 1000
    return (
        max(0, int(box[0] * width - air)),
        max(0, int(box[1] * height - air)),
        min(width, int(box[2] * width + air) + 1),
        min(height, int(box[3] * height + air) + 1),
    )


def _letters(grid: Grid) -> int:
    return sum(len(_bare(cell.text)) for cell in grid.cells)


def _bare(text: str) -> str:
    return "".join(text.split())
