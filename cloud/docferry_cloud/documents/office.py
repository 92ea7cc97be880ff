"""Word, PowerPoint, Excel and HTML files into the document tree, without drawing them.

Such files have no pages of pixels. A slide keeps its geometry; a sheet, a Word document and an HTML file become one
page on which every block stands below the one before, so that viewers and reading order have boxes to work with.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from docferry.document import Box, Line, Page, Region, RegionType
from docferry.errors import DocferryError, ImageTooLarge, UnreadableImage
from docferry.tables import Cell, Grid, to_html
from docferry_cloud.documents.archive import check_archive
from docferry_cloud.documents.block import MOST_COLUMNS, MOST_ROWS, Block, plain

PROVENANCE = "cloud:file"

_WIDTH, _HEIGHT = 1000, 1414
_GROUP = 6
"""PowerPoint's number of a group of shapes."""


def page_count(data: bytes, kind: str, name: str) -> int:
    """Sheets of a workbook, slides of a presentation, else 1.

    Raises:
        UnreadableImage: The file cannot be read.
        ImageTooLarge: It would unpack to more than anybody reads; see `archive.check_archive`.
    """
    if kind == "xlsx":
        return max(1, len(_workbook(data, name).sheetnames))
    if kind == "pptx":
        return max(1, len(_presentation(data, name).slides))
    return 1


def read_office(data: bytes, kind: str, number: int, name: str = "the file") -> Page:
    """Page `number` of the file as a tree.

    Args:
        kind: docx, pptx, xlsx or html.

    Raises:
        UnreadableImage: The file cannot be read.
        ImageTooLarge: It would unpack to more than anybody reads; see `archive.check_archive`.
    """
    match kind:
        case "docx":
            blocks = list(_word_blocks(data, name))
        case "pptx":
            blocks = list(_slide_blocks(_presentation(data, name), number))
        case "xlsx":
            blocks = list(_sheet_blocks(_workbook(data, name), number))
        case _:
            blocks = list(_html_blocks(data))
    return page_of(blocks)


def page_of(blocks: Sequence[Block]) -> Page:
    """A page of blocks, each below the one before where it has no box of its own."""
    rows = [max(1, block.grid.height if block.grid else len(block.texts)) for block in blocks]
    whole = max(1, sum(rows) + len(rows))
    regions: list[Region] = []
    top = 0
    for order, (block, high) in enumerate(zip(blocks, rows, strict=True)):
        box = block.box or (0.05, top / whole, 0.95, (top + high) / whole)
        top += high + 1
        texts = block.texts or _rows(block.grid)
        identity = f"r{order + 1}"
        lines = tuple(_line(identity, place, text, box, len(texts)) for place, text in enumerate(texts))
        html = to_html(block.grid) if block.grid else None
        regions.append(Region(identity, block.type, box, order, 1.0, None, lines, html, None, PROVENANCE))
    return Page(_WIDTH, _HEIGHT, tuple(regions))


def _line(region: str, place: int, text: str, box: Box, count: int) -> Line:
    x0, y0, x1, y1 = box
    high = (y1 - y0) / max(1, count)
    upper, lower = y0 + place * high, y0 + (place + 1) * high
    polygon = ((x0, upper), (x1, upper), (x1, lower), (x0, lower))
    return Line(f"{region}.l{place + 1}", text, polygon, 1.0, 1.0, PROVENANCE)


def _rows(grid: Grid | None) -> tuple[str, ...]:
    if grid is None:
        return ()
    rows: dict[int, list[str]] = {}
    for cell in grid.cells:
        if cell.text:
            rows.setdefault(cell.row, []).append(cell.text)
    return tuple(" ".join(texts) for _, texts in sorted(rows.items()))


def _opened(data: bytes, name: str, what: str, load: Callable[[io.BytesIO], Any]) -> Any:
    """Load a file with its library; one that would unpack to more than anybody reads is refused before."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_archive(archive, f"{name}: the {what}")
        return load(io.BytesIO(data))
    except DocferryError:
        raise
    # The libraries raise whatever their parsers do; a file they cannot take is damaged for us.
    except Exception as error:
        raise UnreadableImage(
            f"{name}: the {what} cannot be read: {error}", remedy="save it again, or send it as PDF"
        ) from error


def _word_blocks(data: bytes, name: str) -> Iterator[Block]:
    import docx

    from docferry_cloud.documents.word_file import word_blocks

    return word_blocks(_opened(data, name, "Word document", docx.Document))


def _presentation(data: bytes, name: str) -> Any:
    import pptx

    return _opened(data, name, "presentation", pptx.Presentation)


def _workbook(data: bytes, name: str) -> Any:
    import openpyxl

    # Values as last calculated, not formulas.
    return _opened(data, name, "workbook", lambda file: openpyxl.load_workbook(file, data_only=True))


def _slide_blocks(presentation: Any, number: int) -> Iterator[Block]:
    from pptx.enum.shapes import PP_PLACEHOLDER

    if number >= len(presentation.slides):
        return
    slide = presentation.slides[number]
    wide, high = presentation.slide_width, presentation.slide_height
    found: list[tuple[float, float, Block]] = []
    for shape, (left, top, right, bottom) in _shapes(slide.shapes):
        sides = (left / wide, top / high, right / wide, bottom / high)
        box = tuple(min(1.0, max(0.0, side)) for side in sides)
        block = _shape_block(shape, (box[0], box[1], box[2], box[3]), PP_PLACEHOLDER)
        if block is not None:
            found.append((0.0 if block.type is RegionType.TITLE else box[1], box[0], block))
    for _, _, block in sorted(found, key=lambda item: item[:2]):
        yield block


@dataclass(frozen=True, slots=True)
class _Scale:
    """From a group's own coordinates to the slide's, along one axis."""

    factor: float = 1.0
    shift: float = 0.0

    def at(self, place: float) -> float:
        """Where a place of the group is on the slide."""
        return self.factor * place + self.shift

    def within(self, offset: int, extent: int, inner: int, inner_extent: int) -> _Scale:
        """That of a group inside, whose `inner_extent` from `inner` on is drawn over `extent` from `offset` on."""
        factor = extent / inner_extent if inner_extent else 1.0
        return _Scale(self.factor * factor, self.at(offset - factor * inner))


def _shapes(shapes: Any) -> Iterator[tuple[Any, tuple[float, float, float, float]]]:
    """The shapes of a slide, those in groups too, with left, top, right and bottom on the slide."""
    from pptx.oxml.ns import qn

    waiting = [(shape, _Scale(), _Scale()) for shape in shapes][::-1]
    while waiting:
        shape, across, down = waiting.pop()
        frame = shape.element.grpSpPr.find(qn("a:xfrm")) if shape.shape_type == _GROUP else None
        if frame is not None and frame.find(qn("a:chExt")) is not None:
            start, size, inner, inner_size = (frame.find(qn(f"a:{name}")) for name in ("off", "ext", "chOff", "chExt"))
            x, y = ((int(start.get(axis)), int(inner.get(axis))) for axis in "xy")
            wide, high = ((int(size.get(side)), int(inner_size.get(side))) for side in ("cx", "cy"))
            across, down = across.within(x[0], wide[0], x[1], wide[1]), down.within(y[0], high[0], y[1], high[1])
        if shape.shape_type == _GROUP:
            waiting += [(child, across, down) for child in shape.shapes][::-1]
        elif shape.width is not None and shape.left is not None:
            right, bottom = shape.left + shape.width, shape.top + shape.height
            yield shape, (across.at(shape.left), down.at(shape.top), across.at(right), down.at(bottom))


def _shape_block(shape: Any, box: Box, placeholders: Any) -> Block | None:
    if shape.has_table:
        high, wide = len(shape.table.rows), len(shape.table.columns)
        cells = [
            Cell(
                row,
                column,
                plain(cell.text),
                min(cell.span_height, high - row) if cell.is_merge_origin else 1,
                min(cell.span_width, wide - column) if cell.is_merge_origin else 1,
                header=row == 0 and bool(shape.table.first_row),
            )
            for row, line in enumerate(shape.table.rows)
            for column, cell in enumerate(line.cells)
            if not cell.is_spanned
        ]
        return Block(RegionType.TABLE, grid=Grid(tuple(cells)), box=box)
    if not shape.has_text_frame:
        return Block(RegionType.IMAGE, box=box) if shape.shape_type == 13 else None
    texts = tuple(text for paragraph in shape.text_frame.paragraphs if (text := plain(paragraph.text)))
    titles = {placeholders.TITLE, placeholders.CENTER_TITLE}
    is_title = shape.is_placeholder and shape.placeholder_format.type in titles
    return Block(RegionType.TITLE if is_title else RegionType.TEXT, texts, box=box) if texts else None


def _sheet_blocks(workbook: Any, number: int) -> Iterator[Block]:
    if number >= len(workbook.sheetnames):
        return
    sheet = workbook[workbook.sheetnames[number]]
    yield Block(RegionType.TITLE, (sheet.title,))
    if not hasattr(sheet, "iter_rows"):
        return
    if sheet.max_row > MOST_ROWS or sheet.max_column > MOST_COLUMNS:
        raise ImageTooLarge(
            f"sheet {sheet.title!r}: {sheet.max_row} rows of {sheet.max_column} columns",
            remedy=f"at most {MOST_ROWS} rows of {MOST_COLUMNS} columns are read; split the sheet",
        )
    merged = {(area.min_row, area.min_col): area for area in sheet.merged_cells.ranges}
    covered = {
        (row, column)
        for area in merged.values()
        for row in range(area.min_row, area.max_row + 1)
        for column in range(area.min_col, area.max_col + 1)
    } - set(merged)
    cells = []
    for row in sheet.iter_rows():
        for cell in row:
            if (cell.row, cell.column) in covered:
                continue
            area = merged.get((cell.row, cell.column))
            high = area.max_row - area.min_row + 1 if area else 1
            wide = area.max_col - area.min_col + 1 if area else 1
            cells.append(Cell(cell.row - 1, cell.column - 1, _value(cell), high, wide))
    if any(cell.text for cell in cells):
        yield Block(RegionType.TABLE, grid=Grid(tuple(cells)))


def _value(cell: Any) -> str:
    """A cell's value as text: dates as ISO, whole numbers without a point."""
    value = cell.value
    if value is None:
        return ""
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).removesuffix("T00:00:00")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return plain(str(value))


def _html_blocks(data: bytes) -> Iterator[Block]:
    from docferry_cloud.documents.html_file import html_blocks

    yield from html_blocks(data)
