"""Charts brought into a page: their texts read at a scale that suits small print, their values as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from docferry.document import Line, Page, Region, RegionType
from docferry.rectangles import in_pixels
from docferry.tables import Grid, to_html
from docferry.vision.images import Pixels
from docferry.vision.quads import Quad, absolute, size
from docferry_cloud.charts.axes import number_of
from docferry_cloud.charts.chart import Chart, Label, chart_grid
from docferry_cloud.charts.measure import measured
from docferry_cloud.charts.pies import pie
from docferry_cloud.deep.reader import DeepReader
from docferry_cloud.diagrams import Diagram, diagram_grid, find_diagram
from docferry_cloud.engine import Cancelled, check
from docferry_cloud.excerpt import legible
from docferry_cloud.pipeline_geometry import centre, inside

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
    labels = read_labels(image, reader, cancelled)
    return measured(image, labels) or pie(image, labels)


def chart_of(image: Pixels, lines: Sequence[Line]) -> Chart | None:
    """The chart that fills a picture, by the lines that were read in it; None where none is seen."""
    if min(image.shape[:2]) < _LEAST_SIDE:
        return None
    labels = _labels(lines, image)
    return measured(image, labels) or pie(image, labels)


def read_labels(image: Pixels, reader: DeepReader, cancelled: Cancelled) -> list[Label]:
    """The lines of text in a picture, small print enlarged for reading.

    Raises:
        EngineError: `cancelled` said True.
    """
    shown = legible(image, reader.first.detect(image).quads)
    check(cancelled)
    factor = image.shape[0] / shown.shape[0]
    return [_label(line.text, line.quad * np.float32(factor)) for line in reader.read(shown, cancelled)]


def with_charts(page: Page, image: Pixels, reader: DeepReader | None, cancelled: Cancelled) -> Page:
    """The page with what its charts and diagrams show: a picture that holds one becomes a chart, a table its HTML.

    A chart's table has its values, a diagram's who is connected to whom.

    Args:
        image: The page's pixels at any size.
        reader: For small print; None where the lines are the file's own and cannot be read better.
    """
    regions = []
    for region in page.regions:
        check(cancelled)
        grid = _shown_in(region, page.lines, image, reader, cancelled)
        regions.append(region if grid is None else _as_chart(region, grid))
    return replace(page, regions=tuple(regions))


def as_chart(region: Region, chart: Chart) -> Region:
    """A region as the chart that was measured in it."""
    return _as_chart(region, chart_grid(chart))


def as_diagram(region: Region, diagram: Diagram) -> Region:
    """A region as the diagram that was found in it."""
    return _as_chart(region, diagram_grid(diagram))


def whole_diagram(page: Page, image: Pixels) -> Diagram | None:
    """The diagram that is all of a picture, by the lines that were read in it."""
    return find_diagram(image, _labels(page.lines, image), whole=True)


def _as_chart(region: Region, grid: Grid) -> Region:
    return replace(region, type=RegionType.CHART, html=to_html(grid))


def may_be_chart(lines: Sequence[Line]) -> bool:
    """Whether there are numbers enough for an axis of values, small ones being lost easily."""
    return sum(number_of(word) is not None for line in lines for word in line.text.split()) >= _LEAST_NUMBERS


def _shown_in(
    region: Region, lines: Sequence[Line], image: Pixels, reader: DeepReader | None, cancelled: Cancelled
) -> Grid | None:
    if region.type not in {RegionType.IMAGE, RegionType.CHART} or region.html is not None:
        return None
    x0, y0, x1, y1 = region.box
    box = (max(0.0, x0 - _AIR), max(0.0, y0 - _AIR), min(1.0, x1 + _AIR), min(1.0, y1 + _AIR))
    own = [line for line in lines if inside(centre(line.polygon), box)]
    high, wide = image.shape[:2]
    left, top, right, bottom = (round(side) for side in in_pixels(box, wide, high))
    crop = image[top:bottom, left:right]
    if min(crop.shape[:2]) < _LEAST_SIDE or not own:
        return None
    labels = _labels(own, image, corner=(left, top))
    disc = pie(crop, labels)
    chart_like = disc is not None or may_be_chart(own)
    diagram = find_diagram(crop, labels)
    if not chart_like and diagram is None:
        return None
    if reader is not None and median(label.size for label in labels) < _READABLE:
        labels = read_labels(crop, reader, cancelled)
        disc, diagram = pie(crop, labels), find_diagram(crop, labels)
    if chart_like and (chart := measured(crop, labels) or disc) is not None:
        return chart_grid(chart)
    return None if diagram is None else diagram_grid(diagram)


def _labels(lines: Sequence[Line], image: Pixels, corner: tuple[int, int] = (0, 0)) -> list[Label]:
    """Lines of a page as labels on its picture, or on the piece of it that begins at `corner`."""
    high, wide = image.shape[:2]
    start = np.asarray(corner, np.float32)
    return [_label(line.text, np.asarray(absolute(line.polygon, wide, high) - start, np.float32)) for line in lines]


def _label(text: str, quad: Quad) -> Label:
    (x0, y0), (x1, y1) = quad.min(axis=0).tolist(), quad.max(axis=0).tolist()
    return Label(text, (x0, y0, x1, y1), size(quad)[1])
