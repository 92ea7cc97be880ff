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
from docferry.errors import ImageTooLarge, UnreadableImage
from docferry.tables import Cell, Grid, to_html

PROVENANCE = "cloud:file"

_MOST_UNPACKED = 512 * 1024 * 1024
_MOST_ROWS = 5000
_MOST_COLUMNS = 200
_WIDTH, _HEIGHT = 1000, 1414


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a file: its kind, its text line by line, and the grid of a table."""

    type: RegionType
    texts: tuple[str, ...] = ()
    grid: Grid | None = None
    box: Box | None = None


def page_count(data: bytes, kind: str, name: str) -> int:
    """Sheets of a workbook, slides of a presentation, else 1.

    Raises:
        UnreadableImage: The file cannot be read.
        ImageTooLarge: It unpacks to more than 512 MiB.
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
        ImageTooLarge: It unpacks to more than 512 MiB.
    """
    match kind:
        case "docx":
            blocks = list(_word_blocks(_word(data, name)))
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
    """Load a file with its library; an archive that unpacks to too much is refused before."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        loaded = load(io.BytesIO(data)) if unpacked <= _MOST_UNPACKED else None
    # The libraries raise whatever their parsers do; a file they cannot take is damaged for us.
    except Exception as error:
        raise UnreadableImage(
            f"{name}: the {what} cannot be read: {error}", remedy="save it again, or send it as PDF"
        ) from error
    if loaded is None:
        raise ImageTooLarge(f"{name}: the {what} unpacks to {unpacked} bytes", remedy="split it")
    return loaded


def _word(data: bytes, name: str) -> Any:
    import docx

    return _opened(data, name, "Word document", docx.Document)


def _presentation(data: bytes, name: str) -> Any:
    import pptx

    return _opened(data, name, "presentation", pptx.Presentation)


def _workbook(data: bytes, name: str) -> Any:
    import openpyxl

    # Values as last calculated, not formulas.
    return _opened(data, name, "workbook", lambda file: openpyxl.load_workbook(file, data_only=True))


def _word_blocks(document: Any) -> Iterator[Block]:
    import docx.table
    import docx.text.paragraph

    for item in document.iter_inner_content():
        if isinstance(item, docx.table.Table):
            grid = _word_grid(item)
            if grid.cells:
                yield Block(RegionType.TABLE, grid=grid)
        elif isinstance(item, docx.text.paragraph.Paragraph) and (text := _plain(item.text)):
            style = (item.style.name if item.style is not None else "") or ""
            kind = RegionType.TEXT
            if style.startswith(("Heading", "Title")):
                kind = RegionType.TITLE
            elif style.startswith("List"):
                kind = RegionType.LIST_ITEM
            elif style == "Caption":
                kind = RegionType.TABLE_CAPTION
            yield Block(kind, (text,))


def _word_grid(table: Any) -> Grid:
    """Merged cells are one cell of the file that is given for every place it covers."""
    places: dict[Any, list[tuple[int, int]]] = {}
    texts: dict[Any, str] = {}
    for row_number, row in enumerate(table.rows):
        column = row.grid_cols_before
        for cell in row.cells:
            places.setdefault(cell._tc, []).append((row_number, column))
            texts[cell._tc] = _plain(cell.text)
            column += 1
    return Grid(tuple(_spanning(at, texts[key]) for key, at in places.items()))


def _spanning(at: Sequence[tuple[int, int]], text: str, *, header: bool = False) -> Cell:
    rows, columns = [row for row, _ in at], [column for _, column in at]
    return Cell(
        min(rows), min(columns), text, max(rows) - min(rows) + 1, max(columns) - min(columns) + 1, header=header
    )


def _slide_blocks(presentation: Any, number: int) -> Iterator[Block]:
    from pptx.enum.shapes import PP_PLACEHOLDER

    if number >= len(presentation.slides):
        return
    slide = presentation.slides[number]
    wide, high = presentation.slide_width, presentation.slide_height
    found: list[tuple[float, float, Block]] = []
    for shape in slide.shapes:
        if shape.width is None or shape.left is None:
            continue
        box = tuple(
            min(1.0, max(0.0, side))
            for side in (
                shape.left / wide,
                shape.top / high,
                (shape.left + shape.width) / wide,
                (shape.top + shape.height) / high,
            )
        )
        block = _shape_block(shape, (box[0], box[1], box[2], box[3]), PP_PLACEHOLDER)
        if block is not None:
            found.append((0.0 if block.type is RegionType.TITLE else box[1], box[0], block))
    for _, _, block in sorted(found, key=lambda item: item[:2]):
        yield block


def _shape_block(shape: Any, box: Box, placeholders: Any) -> Block | None:
    if shape.has_table:
        cells = [
            Cell(
                row,
                column,
                _plain(cell.text),
                cell.span_height if cell.is_merge_origin else 1,
                cell.span_width if cell.is_merge_origin else 1,
                header=row == 0 and bool(shape.table.first_row),
            )
            for row, line in enumerate(shape.table.rows)
            for column, cell in enumerate(line.cells)
            if not cell.is_spanned
        ]
        return Block(RegionType.TABLE, grid=Grid(tuple(cells)), box=box)
    if not shape.has_text_frame:
        return Block(RegionType.IMAGE, box=box) if shape.shape_type == 13 else None
    texts = tuple(text for paragraph in shape.text_frame.paragraphs if (text := _plain(paragraph.text)))
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
    if sheet.max_row > _MOST_ROWS or sheet.max_column > _MOST_COLUMNS:
        raise ImageTooLarge(
            f"sheet {sheet.title!r}: {sheet.max_row} rows of {sheet.max_column} columns",
            remedy=f"at most {_MOST_ROWS} rows of {_MOST_COLUMNS} columns are read; split the sheet",
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
    return _plain(str(value))


def _html_blocks(data: bytes) -> Iterator[Block]:
    from docferry_cloud.documents.html_file import html_blocks

    yield from html_blocks(data)


def _plain(text: str) -> str:
    return " ".join(text.split())
