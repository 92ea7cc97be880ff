"""The envelope's structure: a reading packed by columns, quantised, delta-coded and compressed.

What is lost on the way is stated: geometry is rounded to whole pixels of the page (1/4096 where its size is unknown),
raw scores to 1/51, confidences to 1/255, the quality report down to a hundredth of itself, and line breaks in texts
become spaces. Everything else comes back as it was, region and line ids too, as long as they are the reader's (r1, r2,
...; r1.l1, r1.l2, ... with gaps); others are numbered anew.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from google.protobuf.message import DecodeError

from docferry.compression import DICTIONARIES, Limits, compress, decompress
from docferry.document import Degradation, Document, Line, Page, Polygon, Quality, Reading, Region
from docferry.errors import EnvelopeError, EnvelopeTooLarge
from docferry.packing_fields import MAX_VALUE, pack_fields, unpack_fields
from docferry.packing_geometry import (
    Grid,
    LineColumns,
    check_length,
    deltas,
    line_columns,
    line_shapes,
    rows_of_boxes,
    rows_of_places,
    undeltas,
)
from docferry.v1 import envelope_pb2 as pb
from docferry.wire import quality_from_proto, quality_to_proto, region_type_from_proto, region_type_to_proto

MAX_PAGES = 200
MAX_LINES = 20_000
MAX_SIDE = 65_535
"""Longest side of a page in pixels whose geometry is written in pixels."""
_MAX_NAME = 64


def pack_reading(reading: Reading, dictionary: int = DICTIONARIES[-1]) -> pb.Payload:
    """A reading as a compressed payload, with the pair of dictionaries of that id (0 for none)."""
    return compress(*packed_reading(reading), dictionary)


def packed_reading(reading: Reading) -> tuple[bytes, bytes]:
    """A reading by columns, before it is compressed: a serialized `PackedReading` and its `PackedTexts`."""
    pages = tuple(map(_with_plain_texts, reading.document.pages))
    packed = pb.PackedReading(
        pages=map(_pack_page, pages), degradation=pb.Degradation.ValueType(reading.degradation.value)
    )
    texts = pb.PackedTexts(
        lines=["".join(f"{line.text}\n" for line in page.lines) for page in pages], reader=reading.reader
    )
    places = [(number, line) for number, page in enumerate(pages) for line in page.lines]
    pack_fields(packed, texts, reading.document.fields, places)
    return packed.SerializeToString(deterministic=True), texts.SerializeToString(deterministic=True)


def unpack_reading(payload: pb.Payload, limits: Limits | None = None) -> Reading:
    """The reading in a payload, from whoever sent it.

    Raises:
        EnvelopeTooLarge: It would unpack to more than `limits` allow; nothing was unpacked.
        EnvelopeError: It is not what it says it is.
    """
    numbers, letters = decompress(payload, limits)
    try:
        packed, texts = pb.PackedReading.FromString(numbers), pb.PackedTexts.FromString(letters)
    except DecodeError:
        raise EnvelopeError(
            "the structure is not a PackedReading with its PackedTexts",
            remedy="pack it with docferry.packing",
            field="structure",
        ) from None
    if len(packed.pages) > MAX_PAGES:
        raise EnvelopeTooLarge(
            f"the structure has {len(packed.pages)} pages",
            remedy=f"send at most {MAX_PAGES}",
            field="structure",
        )
    if not letters:  # an older device wrote them into the pages
        texts = pb.PackedTexts(lines=[page.text for page in packed.pages], reader=packed.reader)
    check_length("lines", len(texts.lines), len(packed.pages))
    _check_extent(packed, texts)
    provenance = f"edge:{texts.reader}"
    pages = (
        _unpack_page(page, lines.split("\n")[:-1], provenance)
        for page, lines in zip(packed.pages, texts.lines, strict=True)
    )
    document = Document(tuple(pages))
    fields = unpack_fields(packed, texts, document)
    return Reading(replace(document, fields=fields), texts.reader, _degradation(packed.degradation))


def _degradation(number: int) -> Degradation:
    """A step from a newer peer reads as the furthest we know."""
    return Degradation(number) if number in set(Degradation) else max(Degradation)


def _check_extent(packed: pb.PackedReading, texts: pb.PackedTexts) -> None:
    """Bound what a small message could be blown up to: the reader's name, for one, stands in every line."""
    lines = sum(sum(page.region_lines) for page in packed.pages) + sum(len(page.region_types) for page in packed.pages)
    within = {
        "reader": len(texts.reader) <= _MAX_NAME,
        "pages": lines <= MAX_LINES,
        "quality.hint": all(len(page.quality.hint) <= MAX_VALUE for page in packed.pages),
    }
    for name, good in within.items():
        if not good:
            raise EnvelopeTooLarge(
                f"the structure's {name} holds more than a document does",
                remedy=f"at most {MAX_LINES} lines, {MAX_VALUE} characters of a hint, {_MAX_NAME} of a reader's name",
                field=f"structure.{name}",
            )


def _pack_page(page: Page) -> pb.PackedPage:
    grid = Grid(page.width, page.height) if _has_size(page.width, page.height) else Grid()
    lines = page.lines
    columns = line_columns([grid.shape(line.polygon) for line in lines], [len(line.text) for line in lines])
    regions = _numbers([region.id for region in page.regions], "r")
    numbers = [
        number
        for order, region in enumerate(page.regions)
        for number in _numbers([line.id for line in region.lines], f"r{regions[order]}.l")
    ]
    starts = _starts([len(region.lines) for region in page.regions])
    calibrated = bool(lines) and all(line.confidence is not None for line in lines)
    return pb.PackedPage(
        width=page.width,
        height=page.height,
        quality=quality_to_proto(_coarse(page.quality)),
        region_types=[region_type_to_proto(region.type) for region in page.regions],
        region_boxes=deltas(grid.row(region.box) for region in page.regions),
        region_scores=bytes(_byte(region.score) for region in page.regions),
        region_lines=[len(region.lines) for region in page.regions],
        scores=bytes(_coarse_byte(line.score) for line in lines),
        confidences=bytes(_byte(line.confidence or 0.0) for line in lines) if calibrated else b"",
        region_skips=_skips(regions, frozenset()),
        line_skips=_skips(numbers, starts),
        in_pixels=_has_size(page.width, page.height),
        line_lefts=columns.lefts,
        line_places=columns.places,
        tilted=columns.tilted,
        tilts=columns.tilts,
        slanted=columns.slanted,
        polygons=columns.polygons,
    )


def _unpack_page(packed: pb.PackedPage, texts: Sequence[str], provenance: str) -> Page:
    grid = Grid(packed.width, packed.height) if packed.in_pixels else Grid()
    if not _has_size(grid.across, grid.down):
        raise EnvelopeError(
            f"a page of {grid.across} x {grid.down} pixels has no geometry in pixels",
            remedy=f"sides of 1..{MAX_SIDE} pixels",
            field="structure.width",
        )
    count = len(packed.region_types)
    total = sum(packed.region_lines)
    check_length("region_boxes", len(packed.region_boxes), 4 * count)
    check_length("region_scores", len(packed.region_scores), count)
    check_length("region_lines", len(packed.region_lines), count)
    check_length("text", len(texts), total)
    check_length("scores", len(packed.scores), total)
    if packed.confidences:
        check_length("confidences", len(packed.confidences), total)
    polygons = _polygons(packed, grid, [len(text) for text in texts])
    numbers = _unskips(packed.region_skips, count, frozenset())
    places = _unskips(packed.line_skips, total, _starts(packed.region_lines))
    boxes = list(undeltas(packed.region_boxes))
    regions: list[Region] = []
    start = 0
    for order in range(count):
        end = start + packed.region_lines[order]
        lines = tuple(
            Line(
                id=f"r{numbers[order]}.l{places[index]}",
                text=texts[index],
                polygon=polygons[index],
                score=packed.scores[index] / 255,
                confidence=packed.confidences[index] / 255 if packed.confidences else None,
                provenance=provenance,
            )
            for index in range(start, end)
        )
        regions.append(
            Region(
                id=f"r{numbers[order]}",
                type=region_type_from_proto(packed.region_types[order]),
                box=grid.box(boxes[order]),
                order=order,
                score=packed.region_scores[order] / 255,
                lines=lines,
                provenance=provenance,
            )
        )
        start = end
    return Page(packed.width, packed.height, tuple(regions), quality_from_proto(packed.quality))


def _polygons(packed: pb.PackedPage, grid: Grid, characters: Sequence[int]) -> list[Polygon]:
    """The lines' polygons from the columns they stand in: `line_places`, or `line_boxes` from an older device."""
    if packed.line_boxes:
        check_length("line_boxes", len(packed.line_boxes), 4 * len(characters))
        rows = list(rows_of_boxes(packed.line_boxes))
    else:
        check_length("line_lefts", len(packed.line_lefts), 2 * len(characters))
        check_length("line_places", len(packed.line_places), 3 * len(characters))
        rows = list(rows_of_places(packed.line_lefts, packed.line_places, characters))
    columns = LineColumns(b"", [], packed.tilted, list(packed.tilts), list(packed.slanted), list(packed.polygons))
    return [grid.polygon(shape) for shape in line_shapes(rows, columns)]


def _has_size(width: int, height: int) -> bool:
    return 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE


def _coarse(quality: Quality) -> Quality:
    """The report to one part in a hundred: nobody can tell more, and zeros pack better than noise."""

    def rounded(value: float) -> float:
        if not math.isfinite(value):
            return value
        mantissa, exponent = math.frexp(value)
        # Downwards, so that no orientation that was in doubt comes back sure.
        return math.ldexp(math.floor(mantissa * 256), exponent - 8)

    return replace(
        quality,
        sharpness=rounded(quality.sharpness),
        brightness=rounded(quality.brightness),
        contrast=rounded(quality.contrast),
        text_height=rounded(quality.text_height),
        blur=rounded(quality.blur),
        glare=rounded(quality.glare),
        skew=rounded(quality.skew),
        orientation_score=rounded(quality.orientation_score),
    )


def _with_plain_texts(page: Page) -> Page:
    """The page as it comes back: its texts in NFC, without line breaks."""

    def region(region: Region) -> Region:
        return replace(region, lines=tuple(replace(line, text=_one_line(line.text)) for line in region.lines))

    return replace(page, regions=tuple(map(region, page.regions)))


def _numbers(names: Sequence[str], prefix: str) -> list[int]:
    """The numbers in the reader's own names; 1, 2, ... if any is not one of them."""
    digits = [name.removeprefix(prefix) if name.startswith(prefix) else "" for name in names]
    # Bounded, so that a strange name cannot make a number the wire has no room for.
    numbers = [int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0 for text in digits]
    ours = all(f"{prefix}{number}" == name for number, name in zip(numbers, names, strict=True))
    rising = all(a < b for a, b in pairwise([0, *numbers]))
    return numbers if ours and rising else list(range(1, len(names) + 1))


def _starts(lengths: Sequence[int]) -> frozenset[int]:
    """Indices at which numbering begins anew."""
    return frozenset(accumulate(lengths, initial=0))


def _skips(numbers: Sequence[int], starts: frozenset[int]) -> list[int]:
    skips: list[int] = []
    before = 0
    for index, number in enumerate(numbers):
        before = 0 if index in starts else before
        if number > before + 1:
            skips += [index, number - before - 1]
        before = number
    return skips


def _unskips(skips: Sequence[int], count: int, starts: frozenset[int]) -> list[int]:
    left_out = dict(zip(skips[::2], skips[1::2], strict=False))
    numbers: list[int] = []
    before = 0
    for index in range(count):
        before = (0 if index in starts else before) + left_out.get(index, 0) + 1
        numbers.append(before)
    return numbers


def _one_line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).splitlines())


def _byte(value: float) -> int:
    return round(255 * min(1.0, max(0.0, value)))


def _coarse_byte(value: float) -> int:
    """A raw score in 1/51, written in 1/255: what is decided by is the confidence, and fewer values pack better."""
    return 5 * round(51 * min(1.0, max(0.0, value)))
