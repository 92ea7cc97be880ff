"""A born-digital page: the file's own text in the layout network's blocks, tables from words and rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from docferry.document import Box, Line, Page, Quality, RegionType
from docferry.reading_order import LayoutBox, assemble_page
from docferry.rectangles import area, around, in_pixels, in_shares, overlap_area
from docferry.tables import to_html
from docferry.vision.layout import LayoutDetector
from docferry.vision.quads import relative
from docferry_cloud.deep.reader import DeepReader
from docferry_cloud.documents.pdf import PdfPage
from docferry_cloud.documents.pdf_layer import TextLayer, Word
from docferry_cloud.engine import Cancelled, check
from docferry_cloud.tables.matching import Placed
from docferry_cloud.tables.native import NativeTable, native_grid, native_tables, without_notes
from docferry_cloud.tables.structure import Structure, StructureReader

PROVENANCE = "cloud:pdf-text"

_AIR = 6.0
"""Points around a table that the structure network sees."""

_LINE_GAP = 1.0
"""Heights of a line between two words of one line, at most."""


def read_native(
    page: PdfPage,
    layer: TextLayer,
    layout: LayoutDetector,
    structure: StructureReader,
    reader: DeepReader,
    cancelled: Cancelled,
    *,
    provenance: str,
) -> Page:
    """The page as the file says it, with what pictures on it show read beside it.

    Raises:
        EngineError: `cancelled` said True.
    """
    height, width = page.image.shape[:2]
    seen = layout.detect(page.image)
    check(cancelled)
    words = [Placed(word.box, word.text) for word in layer.words]
    scaled = [replace(box, box=in_pixels(box.box, layer.width, layer.height)) for box in seen]
    tables = []
    for table in native_tables(scaled, words, layer.rules):
        check(cancelled)
        tables.append(without_notes(table, native_grid(table, layer.rules, _structure(page, layer, table, structure))))
    lines = [*_lines(layer), *_in_pictures(page, layer, reader, cancelled)]
    check(cancelled)
    boxes = _with_tables(scaled, [table for table, _ in tables])
    relative_boxes = [replace(box, box=in_shares(box.box, layer.width, layer.height)) for box in boxes]
    read = assemble_page(width, height, relative_boxes, lines, Quality(), provenance=provenance)
    by_box = {in_shares(table.box, layer.width, layer.height): grid for table, grid in tables}
    regions = (
        replace(region, html=to_html(by_box[region.box]) or None) if region.box in by_box else region
        for region in read.regions
    )
    return replace(read, regions=tuple(regions))


def _structure(page: PdfPage, layer: TextLayer, table: NativeTable, structure: StructureReader) -> Structure | None:
    """What the network sees of the table and a little around it, boxes relative to the table's own box."""
    x0, y0, x1, y1 = table.box
    left, top = max(0.0, x0 - _AIR), max(0.0, y0 - _AIR)
    right, bottom = min(layer.width, x1 + _AIR), min(layer.height, y1 + _AIR)
    scale = page.scale
    crop = page.image[int(top * scale) : math.ceil(bottom * scale), int(left * scale) : math.ceil(right * scale)]
    if min(crop.shape[:2]) < 8:
        return None
    seen = structure.read(crop)
    wide, high = right - left, bottom - top

    def moved(box: Box) -> Box:
        return (
            (left + box[0] * wide - x0) / (x1 - x0),
            (top + box[1] * high - y0) / (y1 - y0),
            (left + box[2] * wide - x0) / (x1 - x0),
            (top + box[3] * high - y0) / (y1 - y0),
        )

    cells = tuple(replace(cell, box=moved(cell.box) if cell.box else None) for cell in seen.grid.cells)
    return replace(seen, grid=replace(seen.grid, cells=cells))


def _with_tables(boxes: Sequence[LayoutBox], tables: Sequence[NativeTable]) -> list[LayoutBox]:
    """The layout with the tables as they were drawn tight; what lies in one is part of it."""
    found = [LayoutBox(RegionType.TABLE, table.box, 1.0) for table in tables]
    rest = [
        box
        for box in boxes
        if box.type is not RegionType.TABLE
        and not any(overlap_area(box.box, table.box) > 0.5 * area(box.box) for table in tables)
    ]
    return [*found, *rest]


def _lines(layer: TextLayer) -> list[Line]:
    """Words that follow one another in the file, level and near, as lines."""
    held: list[list[Word]] = []
    for word in layer.words:
        if held and _goes_on(held[-1][-1], word):
            held[-1].append(word)
        else:
            held.append([word])
    return [_line(words, layer) for words in held]


def _goes_on(before: Word, word: Word) -> bool:
    height = min(before.box[3] - before.box[1], word.box[3] - word.box[1])
    level = min(before.box[3], word.box[3]) - max(before.box[1], word.box[1]) > 0.5 * height
    return level and -0.5 * height < word.box[0] - before.box[2] <= _LINE_GAP * height


def _line(words: Sequence[Word], layer: TextLayer) -> Line:
    x0, y0, x1, y1 = in_shares(around(word.box for word in words), layer.width, layer.height)
    text = words[0].text
    for before, word in pairwise(words):
        near = word.box[0] - before.box[2] < 0.08 * (word.box[3] - word.box[1])
        text += word.text if near else f" {word.text}"
    return Line("", text, ((x0, y0), (x1, y0), (x1, y1), (x0, y1)), 1.0, 1.0, PROVENANCE)


def _in_pictures(page: PdfPage, layer: TextLayer, reader: DeepReader, cancelled: Cancelled) -> list[Line]:
    """Print inside pictures that the text layer knows nothing of: a scan pasted into a page, a screenshot."""
    height, width = page.image.shape[:2]
    lines: list[Line] = []
    for box in page.pictures:
        inside = sum(area(word.box) for word in layer.words if overlap_area(word.box, _divided(box, page.scale)) > 0)
        if inside * page.scale**2 > 0.02 * area(box):
            continue
        x0, y0 = max(0, int(box[0])), max(0, int(box[1]))
        crop = page.image[y0 : int(box[3]) + 1, x0 : int(box[2]) + 1]
        if min(crop.shape[:2]) < 32:
            continue
        check(cancelled)
        for found in reader.read(crop, cancelled):
            quad = found.quad.copy()
            quad[:, 0] += x0
            quad[:, 1] += y0
            polygon = relative(quad, width, height)
            lines.append(Line("", found.text, polygon, found.score, found.confidence, reader.provenance))
    return lines


def _divided(box: Box, scale: float) -> Box:
    return box[0] / scale, box[1] / scale, box[2] / scale, box[3] / scale
