"""The envelope's structure: a reading packed by columns, quantised, delta-coded and compressed.

What is lost on the way is stated: geometry is rounded to 1/4096 of the page, scores and confidences to 1/255, and
line breaks inside a line's text become spaces. Everything else comes back as it was, region and line ids too, as
long as they are the reader's (r1, r2, ...; r1.l1, r1.l2, ... with gaps); others are numbered anew.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import zstandard
from google.protobuf.message import DecodeError

from docferry.document import Box, Degradation, Document, Line, Page, Point, Polygon, Reading, Region
from docferry.errors import EnvelopeError, EnvelopeTooLarge
from docferry.v1 import envelope_pb2 as pb
from docferry.wire import (
    field_from_proto,
    field_to_proto,
    quality_from_proto,
    quality_to_proto,
    region_type_from_proto,
    region_type_to_proto,
)

GRID = 4096
"""Steps a page is divided into, both ways."""
MAX_PAGES = 200
MAX_LINES = 20_000
MAX_FIELDS = 200
_MAX_NAME = 64
_MAX_VALUE = 4000
_LEVEL = 19


@dataclass(frozen=True, slots=True)
class Limits:
    """What a payload may unpack to: bytes, and bytes per packed byte (which counts above `free` bytes)."""

    size: int = 4 << 20
    ratio: float = 100.0
    free: int = 64 << 10


def pack_reading(reading: Reading) -> pb.Payload:
    """A reading as a compressed payload."""
    packed = pb.PackedReading(
        pages=[_pack_page(page) for page in reading.document.pages],
        fields=[field_to_proto(field) for field in reading.document.fields],
        reader=reading.reader,
        degradation=pb.Degradation.ValueType(reading.degradation.value),
    ).SerializeToString(deterministic=True)
    compressed = zstandard.ZstdCompressor(level=_LEVEL).compress(packed)
    if len(compressed) >= len(packed):
        return pb.Payload(encoding=pb.ENCODING_IDENTITY, data=packed, decoded_size=len(packed))
    return pb.Payload(encoding=pb.ENCODING_ZSTD, data=compressed, decoded_size=len(packed))


def unpack_reading(payload: pb.Payload, limits: Limits | None = None) -> Reading:
    """The reading in a payload, from whoever sent it.

    Raises:
        EnvelopeTooLarge: It would unpack to more than `limits` allow; nothing was unpacked.
        EnvelopeError: It is not what it says it is.
    """
    data = decode(payload, limits or Limits())
    try:
        packed = pb.PackedReading.FromString(data)
    except DecodeError:
        raise EnvelopeError(
            "the structure is not a PackedReading", remedy="pack it with docferry.packing", field="structure"
        ) from None
    if len(packed.pages) > MAX_PAGES:
        raise EnvelopeTooLarge(
            f"the structure has {len(packed.pages)} pages",
            remedy=f"send at most {MAX_PAGES}",
            field="structure",
        )
    _check_extent(packed)
    provenance = f"edge:{packed.reader}"
    return Reading(
        document=Document(
            pages=tuple(_unpack_page(page, provenance) for page in packed.pages),
            fields=tuple(field_from_proto(field) for field in packed.fields),
        ),
        reader=packed.reader,
        degradation=_degradation(packed.degradation),
    )


def _degradation(number: int) -> Degradation:
    """A step from a newer peer reads as the furthest we know."""
    return Degradation(number) if number in set(Degradation) else max(Degradation)


def _check_extent(packed: pb.PackedReading) -> None:
    """Bound what a small message could be blown up to: the reader's name, for one, stands in every line."""
    lines = sum(sum(page.region_lines) for page in packed.pages) + sum(len(page.region_types) for page in packed.pages)
    values = (value for field in packed.fields for value in (field.name, field.value, field.normalized))
    hints = (page.quality.hint for page in packed.pages)
    within = {
        "reader": len(packed.reader) <= _MAX_NAME,
        "pages": lines <= MAX_LINES,
        "fields": len(packed.fields) <= MAX_FIELDS
        and all(len(value) <= _MAX_VALUE for value in values)
        and all(len(field.evidence) <= MAX_FIELDS for field in packed.fields),
        "quality.hint": all(len(hint) <= _MAX_VALUE for hint in hints),
    }
    for name, good in within.items():
        if not good:
            raise EnvelopeTooLarge(
                f"the structure's {name} holds more than a document does",
                remedy=f"at most {MAX_LINES} lines, {MAX_FIELDS} fields, {_MAX_NAME} characters of a reader's name",
                field=f"structure.{name}",
            )


def decode(payload: pb.Payload, limits: Limits) -> bytes:
    """The decoded bytes of a payload, never more than `limits` allow.

    Raises:
        EnvelopeTooLarge: The stated or the real size breaks a limit.
        EnvelopeError: Encoding or dictionary unknown, frame damaged, or not the stated size.
    """
    size, packed = payload.decoded_size, len(payload.data)
    if size > limits.size or (size > limits.free and size > limits.ratio * packed):
        raise EnvelopeTooLarge(
            f"the structure would unpack from {packed} to {size} bytes",
            remedy=f"at most {limits.size} bytes and {limits.ratio:g} times the packed size are taken",
            field="structure",
        )
    if payload.encoding == pb.ENCODING_IDENTITY:
        data = payload.data
    elif payload.encoding == pb.ENCODING_ZSTD:
        data = _unzstd(payload)
    else:
        raise EnvelopeError(
            f"the structure's encoding {payload.encoding} is unknown",
            remedy="use ENCODING_IDENTITY or ENCODING_ZSTD",
            field="structure.encoding",
        )
    if len(data) != size:
        raise EnvelopeError(
            f"the structure has {len(data)} bytes, not the stated {size}",
            remedy="state decoded_size exactly",
            field="structure.decoded_size",
        )
    return data


def _unzstd(payload: pb.Payload) -> bytes:
    if payload.dictionary_id:
        raise EnvelopeError(
            f"dictionary {payload.dictionary_id} is unknown",
            remedy="pack without a dictionary, or update the service",
            field="structure.dictionary_id",
        )
    try:
        # `decompress` trusts the frame's own content size more than any argument: compare it first.
        stated = zstandard.frame_content_size(payload.data)
        if stated != payload.decoded_size:
            raise EnvelopeError(
                f"the zstd frame holds {stated} bytes, not the stated {payload.decoded_size}",
                remedy="send one frame that states its content size",
                field="structure.decoded_size",
            )
        return zstandard.ZstdDecompressor(max_window_size=8 << 20).decompress(
            payload.data, max_output_size=payload.decoded_size, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise EnvelopeError(
            f"the structure is not a zstd frame: {error}",
            remedy="send one whole frame",
            field="structure.data",
        ) from None


def _pack_page(page: Page) -> pb.PackedPage:
    boxes = [_grid(region.box) for region in page.regions]
    lines = [line for region in page.regions for line in region.lines]
    polygons = [[_snap(point) for point in line.polygon] for line in lines]
    bounds = [_bounds(polygon) for polygon in polygons]
    away = [_from_corners(polygon, box) for polygon, box in zip(polygons, bounds, strict=True)]
    slanted = [index for index, offsets in enumerate(away) if any(offsets)]
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
        quality=quality_to_proto(page.quality),
        region_types=[region_type_to_proto(region.type) for region in page.regions],
        region_boxes=_deltas(boxes, 4),
        region_scores=bytes(_byte(region.score) for region in page.regions),
        region_lines=[len(region.lines) for region in page.regions],
        text="".join(f"{_one_line(line.text)}\n" for line in lines),
        line_boxes=_deltas([(x0, y0, x1 - x0, y1 - y0) for x0, y0, x1, y1 in bounds], 2),
        slanted=slanted,
        polygons=[number for index in slanted for number in away[index]],
        scores=bytes(_byte(line.score) for line in lines),
        confidences=bytes(_byte(line.confidence or 0.0) for line in lines) if calibrated else b"",
        region_skips=_skips(regions, frozenset()),
        line_skips=_skips(numbers, starts),
    )


def _unpack_page(packed: pb.PackedPage, provenance: str) -> Page:
    count = len(packed.region_types)
    texts = packed.text.split("\n")[:-1]
    total = sum(packed.region_lines)
    _same("region_boxes", len(packed.region_boxes), 4 * count)
    _same("region_scores", len(packed.region_scores), count)
    _same("region_lines", len(packed.region_lines), count)
    _same("text", len(texts), total)
    _same("line_boxes", len(packed.line_boxes), 4 * total)
    _same("scores", len(packed.scores), total)
    _same("polygons", len(packed.polygons), 8 * len(packed.slanted))
    if packed.confidences:
        _same("confidences", len(packed.confidences), total)
    polygons = list(_polygons(packed, total))
    numbers = _unskips(packed.region_skips, count, frozenset())
    places = _unskips(packed.line_skips, total, _starts(packed.region_lines))
    boxes = list(_undeltas(packed.region_boxes, 4))
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
        x0, y0, x1, y1 = boxes[order]
        regions.append(
            Region(
                id=f"r{numbers[order]}",
                type=region_type_from_proto(packed.region_types[order]),
                box=(_unit(x0), _unit(y0), _unit(max(x0, x1)), _unit(max(y0, y1))),
                order=order,
                score=packed.region_scores[order] / 255,
                lines=lines,
                provenance=provenance,
            )
        )
        start = end
    return Page(packed.width, packed.height, tuple(regions), quality_from_proto(packed.quality))


def _polygons(packed: pb.PackedPage, total: int) -> Iterator[Polygon]:
    place = {index: number for number, index in enumerate(packed.slanted)}
    if any(index >= total for index in place):
        raise EnvelopeError("slanted names a line that is not there", field="structure", remedy="pack it again")
    for index, (x0, y0, width, height) in enumerate(_undeltas(packed.line_boxes, 2)):
        corners = ((x0, y0), (x0 + width, y0), (x0 + width, y0 + height), (x0, y0 + height))
        start = 8 * place[index] if index in place else None
        away = packed.polygons[start : start + 8] if start is not None else (0,) * 8
        a, b, c, d = ((_unit(x + away[2 * k]), _unit(y + away[2 * k + 1])) for k, (x, y) in enumerate(corners))
        yield a, b, c, d


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


def _same(name: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise EnvelopeError(
            f"the structure's {name} has {found} entries, not {wanted}",
            remedy="pack it with docferry.packing",
            field=f"structure.{name}",
        )


def _one_line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).splitlines())


def _byte(value: float) -> int:
    return round(255 * min(1.0, max(0.0, value)))


def _snap(point: Point) -> tuple[int, int]:
    return round(min(1.0, max(0.0, point[0])) * GRID), round(min(1.0, max(0.0, point[1])) * GRID)


def _unit(steps: int) -> float:
    return min(GRID, max(0, steps)) / GRID


def _grid(box: Box) -> tuple[int, int, int, int]:
    return (*_snap((box[0], box[1])), *_snap((box[2], box[3])))


def _bounds(polygon: Sequence[tuple[int, int]]) -> tuple[int, int, int, int]:
    xs, ys = [x for x, _ in polygon], [y for _, y in polygon]
    return min(xs), min(ys), max(xs), max(ys)


def _from_corners(polygon: Sequence[tuple[int, int]], box: tuple[int, int, int, int]) -> list[int]:
    x0, y0, x1, y1 = box
    corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1))
    return [number for (x, y), (cx, cy) in zip(polygon, corners, strict=True) for number in (x - cx, y - cy)]


def _deltas(rows: Sequence[tuple[int, int, int, int]], coded: int) -> list[int]:
    """Rows of four flattened, the first `coded` of each as differences from the row before."""
    flat: list[int] = []
    before = (0, 0, 0, 0)
    for row in rows:
        flat += [value - (before[k] if k < coded else 0) for k, value in enumerate(row)]
        before = row
    return flat


def _undeltas(flat: Sequence[int], coded: int) -> Iterator[tuple[int, int, int, int]]:
    before = [0, 0, 0, 0]
    for start in range(0, len(flat), 4):
        before = [flat[start + k] + (before[k] if k < coded else 0) for k in range(4)]
        a, b, c, d = before
        yield a, b, c, d
