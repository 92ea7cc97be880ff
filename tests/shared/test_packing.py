"""The structure survives the wire, and nothing that is not one gets in."""

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry.document import Degradation, Document, Evidence, Field, Line, Page, Quality, Reading, Region, RegionType
from docferry.errors import DocferryError, EnvelopeError, EnvelopeTooLarge
from docferry.packing import GRID, Limits, pack_reading, unpack_reading
from docferry.v1 import envelope_pb2 as pb

unit = st.floats(0, 1, width=32)
points = st.tuples(unit, unit)
texts = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=30)


@st.composite
def pages(draw: st.DrawFn) -> Page:
    calibrated = draw(st.booleans())
    regions = []
    for order, name in enumerate(sorted(draw(st.sets(st.integers(1, 9), max_size=4)))):
        lines = tuple(
            Line(
                id=f"r{name}.l{number}",
                text=draw(texts),
                polygon=draw(st.tuples(points, points, points, points)),
                score=draw(unit),
                confidence=draw(unit) if calibrated else None,
                provenance="edge:reader@abcd",
            )
            for number in sorted(draw(st.sets(st.integers(1, 9), max_size=4)))
        )
        x0, x1 = sorted((draw(unit), draw(unit)))
        y0, y1 = sorted((draw(unit), draw(unit)))
        regions.append(
            Region(
                id=f"r{name}",
                type=draw(st.sampled_from(list(RegionType))),
                box=(x0, y0, x1, y1),
                order=order,
                score=draw(unit),
                lines=lines,
                provenance="edge:reader@abcd",
            )
        )
    return Page(draw(st.integers(1, 9000)), draw(st.integers(1, 9000)), tuple(regions), Quality(hint=draw(texts)))


readings = st.builds(
    lambda pages, degradation: Reading(Document(tuple(pages)), "reader@abcd", degradation),
    st.lists(pages(), min_size=1, max_size=2),
    st.sampled_from(Degradation),
)


@given(readings)
@settings(max_examples=60, deadline=None)
def test_a_reading_comes_back_within_the_stated_rounding(reading: Reading) -> None:
    import unicodedata

    back = unpack_reading(pack_reading(reading))
    assert back.degradation is reading.degradation
    assert len(back.document.pages) == len(reading.document.pages)
    for page, again in zip(reading.document.pages, back.document.pages, strict=True):
        assert (page.width, page.height, page.quality.hint) == (again.width, again.height, again.quality.hint)
        assert [(r.id, r.type) for r in page.regions] == [(r.id, r.type) for r in again.regions]
        for line, other in zip(page.lines, again.lines, strict=True):
            assert other.text == unicodedata.normalize("NFC", line.text)
            assert (other.id, other.provenance) == (line.id, line.provenance)
            assert abs(other.score - line.score) <= 0.5 / 255 + 1e-6
            for point, near in zip(line.polygon, other.polygon, strict=True):
                assert max(abs(point[0] - near[0]), abs(point[1] - near[1])) <= 0.5 / GRID + 1e-6


@given(st.binary(max_size=300), st.sampled_from([0, 1, 2, 7]), st.integers(0, 400))
@settings(deadline=None)
def test_arbitrary_bytes_are_read_or_refused_never_a_crash(data: bytes, encoding: int, size: int) -> None:
    try:
        unpack_reading(pb.Payload(encoding=encoding, data=data, decoded_size=size))
    except DocferryError as error:
        assert error.remedy


def test_a_zstd_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(64 << 20))
    for stated in (64 << 20, 1000, 4 << 20):
        with pytest.raises(EnvelopeError):
            unpack_reading(pb.Payload(encoding=pb.ENCODING_ZSTD, data=bomb, decoded_size=stated))


def test_the_ratio_is_capped_as_well_as_the_size() -> None:
    data = zstandard.ZstdCompressor().compress(bytes(1 << 20))
    with pytest.raises(EnvelopeTooLarge, match="times the packed size"):
        unpack_reading(pb.Payload(encoding=pb.ENCODING_ZSTD, data=data, decoded_size=1 << 20), Limits(ratio=100))


def test_a_frame_that_hides_its_size_or_carries_more_is_refused() -> None:
    whole = pack_reading(receipt())
    packed = unpacked(whole)
    hidden = zstandard.ZstdCompressor(write_content_size=False).compress(packed)
    for data in (hidden, whole.data + b"more", whole.data[:-4]):
        with pytest.raises(EnvelopeError):
            unpack_reading(pb.Payload(encoding=pb.ENCODING_ZSTD, data=data, decoded_size=len(packed)))


def test_columns_that_disagree_are_refused_by_name() -> None:
    packed = pb.PackedReading.FromString(unpacked(pack_reading(receipt())))
    packed.pages[0].scores = b"\x00"
    data = packed.SerializeToString()
    with pytest.raises(EnvelopeError, match="scores"):
        unpack_reading(pb.Payload(encoding=pb.ENCODING_IDENTITY, data=data, decoded_size=len(data)))


def test_a_receipts_structure_costs_about_a_kilobyte() -> None:
    assert len(pack_reading(receipt()).data) < 1300


def unpacked(payload: pb.Payload) -> bytes:
    return zstandard.ZstdDecompressor().decompress(payload.data)


def receipt() -> Reading:
    """45 invented lines, tilted by a degree as a photographed receipt is."""
    lines = []
    for row in range(45):
        y, x = 0.02 * (row + 1), 0.1 + 0.003 * (row % 7)
        right = x + 0.3 + 0.01 * (row * 7 % 30)
        polygon = ((x, y), (right, y + 0.004), (right, y + 0.018), (x, y + 0.014))
        text = f"{(row * 7919) % 9973} ITEM {chr(65 + row % 26) * 3} {(row * 104729) % 9000 / 100:.2f}"
        lines.append(Line(f"r1.l{row + 1}", text, polygon, 0.9 + row % 10 / 100, 0.9, "edge:reader@abcd"))
    region = Region("r1", RegionType.TEXT, (0.1, 0.02, 0.9, 0.95), 0, 0.0, None, tuple(lines))
    total = Field("total", "9.00", "9.00", 0.9, (Evidence(0, lines[-1].box, lines[-1].id),))
    return Reading(Document((Page(900, 1600, (region,)),), (total,)), "reader@abcd")


def test_a_long_readers_name_cannot_be_blown_up_by_every_line() -> None:
    packed = pb.PackedReading.FromString(unpacked(pack_reading(receipt())))
    packed.reader = "x" * 300_000
    data = packed.SerializeToString()
    with pytest.raises(EnvelopeTooLarge, match="reader"):
        unpack_reading(pb.Payload(encoding=pb.ENCODING_IDENTITY, data=data, decoded_size=len(data)))


def test_more_lines_than_a_document_holds_are_refused_before_they_are_made() -> None:
    packed = pb.PackedReading(pages=[pb.PackedPage(region_lines=[1_000_000])], reader="r")
    data = packed.SerializeToString()
    with pytest.raises(EnvelopeTooLarge, match="pages"):
        unpack_reading(pb.Payload(encoding=pb.ENCODING_IDENTITY, data=data, decoded_size=len(data)))


def test_a_step_this_release_does_not_know_reads_as_the_furthest_it_knows() -> None:
    packed = pb.PackedReading(reader="r")
    packed.degradation = 9  # type: ignore[assignment]
    data = packed.SerializeToString()
    payload = pb.Payload(encoding=pb.ENCODING_IDENTITY, data=data, decoded_size=len(data))
    assert unpack_reading(payload).degradation is Degradation.STRUCTURE_ONLY
