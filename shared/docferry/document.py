"""The document tree: `Document > Page > Region > Line`, and the fields found in it.

Coordinates are relative to the prepared page, 0..1, origin at the top left. A line's polygon has four points,
clockwise from the *text's* top left, so a rotated line keeps its direction. `score` is what a network said;
`confidence` is calibrated and None where nothing has calibrated it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

Point = tuple[float, float]
"""x, y; each 0..1."""

Polygon = tuple[Point, Point, Point, Point]
"""Four points, clockwise from the text's top left."""

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 with x0 <= x1 and y0 <= y1; each 0..1."""


class RegionType(enum.StrEnum):
    """MinerU's block types, as far as our readers and engines produce them."""

    TEXT = "text"
    TITLE = "title"
    TABLE = "table"
    IMAGE = "image"
    CHART = "chart"
    EQUATION = "equation"
    CODE = "code"
    LIST_ITEM = "list_item"
    REF_TEXT = "ref_text"
    HEADER = "header"
    FOOTER = "footer"
    PAGE_NUMBER = "page_number"
    TABLE_CAPTION = "table_caption"
    IMAGE_CAPTION = "image_caption"
    TABLE_FOOTNOTE = "table_footnote"
    FOOTNOTE = "footnote"
    UNKNOWN = "unknown"


CDLA_REGION_TYPES: dict[str, RegionType] = {
    "text": RegionType.TEXT,
    "title": RegionType.TITLE,
    "figure": RegionType.IMAGE,
    "figure_caption": RegionType.IMAGE_CAPTION,
    "table": RegionType.TABLE,
    "table_caption": RegionType.TABLE_CAPTION,
    "header": RegionType.HEADER,
    "footer": RegionType.FOOTER,
    "reference": RegionType.REF_TEXT,
    "equation": RegionType.EQUATION,
}
"""The CDLA layout model's ten classes in our words; the only place where the two vocabularies meet."""


@dataclass(frozen=True, slots=True)
class Ink:
    """Dark pixels at the rim of a line's box; shares, 0..1, of the places looked at.

    Attributes:
        before, after: Just beyond the text's two ends, where no other line stands.
        top, bottom: On the box's upper and lower rim.
        contrast: Difference between paper and ink inside.
    """

    before: float
    after: float
    top: float
    bottom: float
    contrast: float


@dataclass(frozen=True, slots=True)
class Trace:
    """What the networks and the picture say beside a line's text. It stays in memory and never travels.

    Attributes:
        characters: The recogniser's best score for each character it emitted, in reading order, each 0..1.
        gap: The largest doubt among columns taken for blank apart from any character, 0..1.
        detector: The detector's mean probability inside the line's core, 0..1.
        ink: What stands at the rim of the line's box.
    """

    characters: tuple[float, ...]
    gap: float
    detector: float
    ink: Ink


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text.

    Attributes:
        id: Unique within the page, `r1.l3`.
        text: As read, NFC, no line break.
        polygon: Four points, relative, clockwise from the text's top left.
        score: The recogniser's raw score, 0..1.
        confidence: Calibrated probability that `text` is exactly right, 0..1, or None.
        provenance: Who read it: `edge:<reader>@<first hex digits of the model's sha256>`, or `cloud:...`.
        trace: What the networks said beside the text, where the line was read in this process; no part of equality.
    """

    id: str
    text: str
    polygon: Polygon
    score: float
    confidence: float | None = None
    provenance: str = ""
    trace: Trace | None = field(default=None, compare=False, repr=False)

    @property
    def box(self) -> Box:
        """The smallest upright box around the polygon."""
        xs = [x for x, _ in self.polygon]
        ys = [y for _, y in self.polygon]
        return min(xs), min(ys), max(xs), max(ys)


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to know of how a region was read: `CUT`, `LOOP`, `DISAGREEMENT`, ..., and the same in plain words."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Region:
    """One block of a page's layout, with the lines that lie in it in reading order.

    Attributes:
        id: Unique within the page, `r1`.
        box: Relative, upright.
        order: Place in the page's reading order, from 0.
        score: The layout network's raw score; 0 for a region made from lines that no layout box held.
        html, latex: Structured content where a reader produced it.
        marks: What to know of its reading: a model's answer that broke off, another reader who disagrees.
    """

    id: str
    type: RegionType
    box: Box
    order: int
    score: float = 0.0
    confidence: float | None = None
    lines: tuple[Line, ...] = ()
    html: str | None = None
    latex: str | None = None
    provenance: str = ""
    marks: tuple[Mark, ...] = ()


DOUBTFUL_ORIENTATION = 0.8
"""Below this orientation score the answer is not acted upon, and the page must be seen by the cloud."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What the picture is like, measured on the prepared page.

    Attributes:
        sharpness: Variance of the Laplacian, 8-bit grey, page scaled to 1000 px on its long side.
        brightness: Mean grey, 0..1.
        contrast: Spread between the 5th and 95th percentile of grey, 0..1.
        text_height: Median height of a text line in pixels of the prepared page; 0 if no line was found.
        orientation: How far the page was turned clockwise when it came in: 0, 90, 180 or 270.
        orientation_score: The orientation network's score for that answer, 0..1.
        hint: One plain sentence for the person at the kiosk, or empty.
        blur: Width of edges, as a Gaussian blur's standard deviation in pixels, page at 1000 px; sharp print has 0.8.
        glare: Share of the page that a reflection has blown out, 0..1.
        cropped_edges: How many of the picture's four edges cut through print.
        skew: Degrees by which the text leaned clockwise and was turned back; 0 if it was left as it was.
    """

    sharpness: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    text_height: float = 0.0
    orientation: int = 0
    orientation_score: float = 1.0
    hint: str = ""
    blur: float = 0.0
    glare: float = 0.0
    cropped_edges: int = 0
    skew: float = 0.0


@dataclass(frozen=True, slots=True)
class Page:
    """One prepared page. `width` and `height` are its pixels; regions are in reading order."""

    width: int
    height: int
    regions: tuple[Region, ...] = ()
    quality: Quality = field(default_factory=Quality)

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines, in reading order."""
        return tuple(line for region in self.regions for line in region.lines)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where on the paper a field or an answer stands. `line` is a line id on page number `page` (from 0)."""

    page: int
    box: Box
    line: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One named value found in a document.

    Attributes:
        name: merchant, address, date, total, then invoice_number, currency, subtotal, tax, ...
        value: As printed, several lines joined by a space.
        normalized: Amounts as a plain decimal (`9.00`), dates as ISO 8601, else the value, spaces collapsed.
        confidence: Probability that the value is right, 0..1.
        evidence: The lines it was read from.
    """

    name: str
    value: str
    normalized: str
    confidence: float
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole document: its pages in order and the fields found in them."""

    pages: tuple[Page, ...]
    fields: tuple[Field, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines of all pages, in reading order."""
        return tuple(line for page in self.pages for line in page.lines)


class Degradation(enum.IntEnum):
    """What a reader on a hot device, or one short of memory, left out; each step includes those before it."""

    NONE = 0
    SMALLER_DETECTION = 1
    FEWER_THREADS = 2
    STRUCTURE_ONLY = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, by whom: one document tree and the reader that made it.

    Attributes:
        document: The tree; fields may be filled in later.
        reader: Name of the reader and its model hashes, `ppocrv6-small@3f2a91`.
        degradation: What was left out to spare the device.
    """

    document: Document
    reader: str
    degradation: Degradation = Degradation.NONE


def iter_lines(document: Document) -> Iterator[tuple[int, Region, Line]]:
    """Yield `(page number, region, line)` for every line in reading order."""
    for number, page in enumerate(document.pages):
        for region in page.regions:
            for line in region.lines:
                yield number, region, line


def with_fields(document: Document, fields: tuple[Field, ...]) -> Document:
    """The same document carrying `fields`."""
    return replace(document, fields=fields)
