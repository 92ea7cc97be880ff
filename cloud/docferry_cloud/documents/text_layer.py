"""What a PDF page says of itself: its words and its ruling lines, without looking at pixels.

Coordinates are points of the page as it is shown (turned by its /Rotate, cut to its crop box), origin top left.
"""

from __future__ import annotations

import ctypes
import unicodedata
from collections.abc import Callable, Iterator
from statistics import median

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from docferry.document import Box
from docferry.rectangles import around
from docferry_cloud.documents.pdf_layer import TextLayer, Word

_FINE = 100
"""PDFium maps a page to whole device pixels: a hundred to a point are fine enough."""

_MOST_CHARACTERS = 100_000
_MOST_OBJECTS = 20_000
_MOST_DEPTH = 8
"""Forms within forms."""
_WORD_GAP = 0.3
"""Space between two letters, in heights of a line, from which on they belong to two words."""

_THIN = 3.0
"""Points: a filled rectangle thinner than this is a rule."""

_LEAST_RULE = 6.0


def text_layer(page: pdfium.PdfPage) -> TextLayer:
    """Read a page's own text and rules."""
    width, height = page.get_size()
    place = _placer(page, width, height)
    letters, unmapped = _letters(page, place)
    rules: list[Box] = []
    pictures: list[Box] = []
    kinds = {pdfium_c.FPDF_PAGEOBJ_PATH, pdfium_c.FPDF_PAGEOBJ_IMAGE}
    # All kinds are counted: forms within forms may hold thousands of objects for every one that is of use.
    for count, item in enumerate(page.get_objects(max_depth=_MOST_DEPTH)):
        if count >= _MOST_OBJECTS:
            break
        if item.type not in kinds:
            continue
        box = _object_box(item, place)
        if box is None:
            continue
        if item.type == pdfium_c.FPDF_PAGEOBJ_IMAGE:
            pictures.append(box)
        else:
            rules.extend(_rules(box))
    return TextLayer(width, height, tuple(_words(letters)), tuple(rules), tuple(pictures), unmapped)


_Place = Callable[[float, float, float, float], Box]
"""Left, bottom, right, top in the file's coordinates to a box on the page as it is shown."""


def _placer(page: pdfium.PdfPage, width: float, height: float) -> _Place:
    across, down = round(width * _FINE), round(height * _FINE)
    x, y = ctypes.c_int(), ctypes.c_int()

    def point(left: float, bottom: float) -> tuple[float, float]:
        pdfium_c.FPDF_PageToDevice(page, 0, 0, across, down, 0, left, bottom, x, y)
        return x.value / _FINE, y.value / _FINE

    def box(left: float, bottom: float, right: float, top: float) -> Box:
        (x0, y0), (x1, y1) = point(left, bottom), point(right, top)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    return box


def _letters(page: pdfium.PdfPage, place: _Place) -> tuple[list[tuple[str, Box]], float]:
    textpage = page.get_textpage()
    count = min(textpage.count_chars(), _MOST_CHARACTERS)
    letters: list[tuple[str, Box]] = []
    unmapped = printed = 0
    rectangle = pdfium_c.FS_RECTF()
    for number in range(count):
        code = pdfium_c.FPDFText_GetUnicode(textpage, number)
        letter = chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
        if not letter or letter.isspace() or pdfium_c.FPDFText_IsGenerated(textpage, number) == 1:
            letters.append((" ", (0, 0, 0, 0)))
            continue
        printed += 1
        kind = unicodedata.category(letter)
        unmapped += kind in {"Co", "Cn"} or letter == "\ufffd" or _has_no_map(textpage, number)
        if kind in {"Cc", "Cf"}:
            continue
        pdfium_c.FPDFText_GetLooseCharBox(textpage, number, rectangle)
        letters.append((letter, place(rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)))
    textpage.close()
    return letters, unmapped / printed if printed else 0.0


def _has_no_map(textpage: pdfium.PdfTextPage, number: int) -> bool:
    return bool(pdfium_c.FPDFText_HasUnicodeMapError(textpage, number) == 1)


def _words(letters: list[tuple[str, Box]]) -> Iterator[Word]:
    """Letters that follow one another on one line without a gap."""
    held: list[tuple[str, Box]] = []
    for letter, box in letters:
        if held and (letter == " " or not _follows(held[-1][1], box)):
            yield _word(held)
            held = []
        if letter != " ":
            held.append((letter, box))
    if held:
        yield _word(held)


def _follows(before: Box, after: Box) -> bool:
    height = max(1e-3, min(before[3] - before[1], after[3] - after[1]))
    if min(before[3], after[3]) - max(before[1], after[1]) > 0.4 * height:
        return -0.7 * height < after[0] - before[2] < _WORD_GAP * height
    # Text that runs up or down the page: the next letter stands right above or below.
    width = max(1e-3, min(before[2] - before[0], after[2] - after[0]))
    beside = min(before[2], after[2]) - max(before[0], after[0]) > 0.4 * width
    gap = max(after[1] - before[3], before[1] - after[3])
    return beside and gap < _WORD_GAP * width


def _word(held: list[tuple[str, Box]]) -> Word:
    boxes = [box for _, box in held]
    box = around(boxes)
    if box[3] - box[1] < 2 * median(one[3] - one[1] for one in boxes):
        # Letters of other fonts and raised ones must not make a line of text higher than it is.
        box = (box[0], median(one[1] for one in boxes), box[2], median(one[3] for one in boxes))
    return Word(unicodedata.normalize("NFC", "".join(letter for letter, _ in held)), box)


def _object_box(item: pdfium.PdfObject, place: _Place) -> Box | None:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not pdfium_c.FPDFPageObj_GetBounds(item, left, bottom, right, top):
        return None
    return place(left.value, bottom.value, right.value, top.value)


def _rules(box: Box) -> Iterator[Box]:
    """A thin path is a rule; a rectangle that is not thin gives its four sides."""
    wide, high = box[2] - box[0], box[3] - box[1]
    if min(wide, high) <= _THIN:
        if max(wide, high) >= _LEAST_RULE:
            yield box
        return
    x0, y0, x1, y1 = box
    yield from ((x0, y0, x1, y0), (x0, y1, x1, y1), (x0, y0, x0, y1), (x1, y0, x1, y1))
