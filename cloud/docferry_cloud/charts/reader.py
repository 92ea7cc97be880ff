"""Charts brought into a page: their texts read at a scale that suits small print, their values as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from docferry.document import Line, Page, Region, RegionType
from docferry.rectangles import in_pixels
from docferry.tables import to_html
from docferry.vision.images import Pixels
from docferry.vision.quads import Quad, absolute, size
from docferry_cloud.charts.axes import number_of
from docferry_cloud.charts.chart import Chart, Label, chart_grid
from docferry_cloud.charts.measure import measured
from docferry_cloud.charts.pies import pie
from docferry_cloud.deep.reader import DeepReader
from docferry_cloud.engine import Cancelled, check
from docferry_cloud.excerpt import legible

_LEAST_SIDE = 100
_LEAST_NUMBERS = 2
"""Numbers among the lines of a picture from which on it may be a chart whose small print is worth a second look."""

_READABLE = 20.0
"""Print that is at least this high, in pixels, was read as well as it can be."""

_AIR = 0.02
"""Around a picture's box, in shares of the page: layout boxes cut into the outer letters."""


def read_chart(image: Pixels, reader: DeepReader, cancelled: Cancelled) -> Chart | None:
    """The chart that fills a picture; None where none is seen.

    Raises:
        EngineError: `cancelled` said True.
    """
    if min(image.shape[:2]) < _LEAST_SIDE:
        return None
    shown = legible(image, reader.first.detect(image).quads)
    check(cancelled)
    factor = image.shape[0] / shown.shape[0]
    labels = [_label(line.text, line.quad * np.float32(factor)) for line in reader.read(shown, cancelled)]
    return measured(image, labels) or pie(image, labels)


def with_charts(page: Page, image: Pixels, reader: DeepReader | None, cancelled: Cancelled) -> Page:
    """The page with the values of its charts: a picture that holds one becomes a chart, with a table as its HTML.

    Args:
        image: The page's pixels at any size.
        reader: For small print; None where the lines are the file's own and cannot be read better.
    """
    regions = []
    for region in page.regions:
        check(cancelled)
        chart = _chart_in(region, page.lines, image, reader, cancelled)
        regions.append(region if chart is None else as_chart(region, chart))
    return replace(page, regions=tuple(regions))


def as_chart(region: Region, chart: Chart) -> Region:
    """A region as the chart that was measured in it."""
    return replace(region, type=RegionType.CHART, html=to_html(chart_grid(chart)))


def may_be_chart(lines: Sequence[Line]) -> bool:
    """Whether there are numbers enough for an axis of values, small ones being lost easily."""
    return sum(number_of(word) is not None for line in lines for word in line.text.split()) >= _LEAST_NUMBERS


def _chart_in(
    region: Region, lines: Sequence[Line], image: Pixels, reader: DeepReader | None, cancelled: Cancelled
) -> Chart | None:
    if region.type not in {RegionType.IMAGE, RegionType.CHART} or region.html is not None:
        return None
    x0, y0, x1, y1 = region.box
    box = (max(0.0, x0 - _AIR), max(0.0, y0 - _AIR), min(1.0, x1 + _AIR), min(1.0, y1 + _AIR))
    own = [line for line in lines if _in(line, box)]
    high, wide = image.shape[:2]
    left, top, right, bottom = (round(side) for side in in_pixels(box, wide, high))
    crop = image[top:bottom, left:right]
    if min(crop.shape[:2]) < _LEAST_SIDE or not own:
        return None
    corner = np.array([left, top], dtype=np.float32)
    labels = [_label(line.text, np.asarray(absolute(line.polygon, wide, high) - corner, np.float32)) for line in own]
    if not may_be_chart(own) and pie(crop, labels) is None:
        return None
    if reader is not None and median(label.size for label in labels) < _READABLE:
        return read_chart(crop, reader, cancelled)
    return measured(crop, labels) or pie(crop, labels)


def _in(line: Line, box: tuple[float, float, float, float]) -> bool:
    x0, y0, x1, y1 = line.box
    return box[0] <= (x0 + x1) / 2 <= box[2] and box[1] <= (y0 + y1) / 2 <= box[3]


def _label(text: str, quad: Quad) -> Label:
    (x0, y0), (x1, y1) = quad.min(axis=0).tolist(), quad.max(axis=0).tolist()
    return Label(text, (x0, y0, x1, y1), size(quad)[1])
