"""Whatever is put before the camera or into the inbox: a reading, a stated verdict, or a named error. Never a crash."""

import io
import struct
import uuid
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from docferry.document import Document
from docferry.errors import DocferryError, ImageTooLarge, UnreadableImage
from docferry.packing import unpack_reading
from docferry.v1 import analysis_service_pb2
from docferry_edge.desk import Identity, Job
from docferry_edge.examine import load_examiner
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies
from docferry_edge.route import Policy
from docferry_edge.work import DirectDesk
from tests.edge.preparation.papers import letter


@pytest.fixture(scope="module")
def desk() -> DirectDesk:
    made = DirectDesk(load_examiner, Policies(Policy(audit_share=0.0)), Pictures(), threads=1)
    made.ready()
    return made


def through(desk: DirectDesk, data: bytes) -> tuple[Document, list[str]]:
    """The reading and the codes of the route's reasons, from the very bytes that would be sent."""
    identity = Identity(str(uuid.uuid4()), str(uuid.uuid4()), "odd", len(data), 1.0)
    answer = desk.read(Job(identity, data))
    envelope = analysis_service_pb2.SubmitRequest.FromString(answer.packed.request).envelope
    return unpack_reading(envelope.structure).document, [reason.code for reason in envelope.route.reasons]


def file(picture: Image.Image | np.ndarray, kind: str = "PNG", **options) -> bytes:
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture[:, :, ::-1])
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def blown(page: np.ndarray) -> np.ndarray:
    """Grey paper with a reflection that has no print left in it."""
    spot = np.zeros(page.shape[:2], np.float32)
    cv2.circle(spot, (page.shape[1] // 2, page.shape[0] // 2), page.shape[1] // 3, 1.0, -1)
    spot = cv2.GaussianBlur(spot, (0, 0), 40)[:, :, None]
    return np.clip(page * 0.75 * (1 - spot) + 320 * spot, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("picture", "verdict"),
    [
        (np.zeros((800, 600, 3), np.uint8), "Too dark"),
        (np.full((800, 600, 3), 255, np.uint8), "Nothing to be seen"),
        (np.full((800, 600, 3), 128, np.uint8), "Nothing to be seen"),
        (cv2.GaussianBlur(letter(), (0, 0), 6), "Blurred"),
        (blown(letter()), "Glare"),
        ((letter() * 0.1).astype(np.uint8), "Too dark"),
        (cv2.resize(letter(size=20), (260, 347), interpolation=cv2.INTER_AREA), "Too small"),
    ],
    ids=["black", "white", "grey", "blurred", "glare", "dark page", "tiny print"],
)
def test_a_picture_nobody_could_read_well_comes_with_a_verdict(desk: DirectDesk, picture, verdict: str) -> None:
    document, reasons = through(desk, file(picture))
    assert document.pages[0].quality.hint.startswith(verdict)
    if not document.lines:
        assert "NOTHING_READ" in reasons


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (3, 3), (31, 2000), (20, 20), (6000, 40)])
def test_any_size_is_read_or_said_to_hold_nothing(desk: DirectDesk, size: tuple[int, int]) -> None:
    document, reasons = through(desk, file(Image.new("L", size, 200)))
    assert (document.lines, reasons[0]) == ((), "NOTHING_READ")


def flat() -> Image.Image:
    return Image.fromarray(letter(700, 500, lines=8)[:, :, ::-1])


def sixteen_bits() -> Image.Image:
    return Image.fromarray(np.asarray(flat().convert("L")).astype(np.uint16) * 257)


ODD_FILES = {
    "cmyk jpeg": lambda: file(flat().convert("CMYK"), "JPEG"),
    "16 bit png": lambda: file(sixteen_bits(), "PNG"),
    "16 bit tiff": lambda: file(sixteen_bits(), "TIFF"),
    "alpha png": lambda: file(flat().convert("RGBA"), "PNG"),
    "grey and alpha": lambda: file(flat().convert("LA"), "PNG"),
    "palette gif": lambda: file(flat().quantize(16), "GIF"),
    "palette png": lambda: file(flat().quantize(16), "PNG", transparency=0),
    "bilevel tiff": lambda: file(flat().convert("1"), "TIFF", compression="group4"),
    "lab tiff": lambda: file(flat().convert("L").convert("RGB").convert("YCbCr"), "TIFF"),
    "animated webp": lambda: file(flat(), "WEBP", save_all=True, append_images=[Image.new("RGB", flat().size)]),
    "animated gif": lambda: file(flat(), "GIF", save_all=True, append_images=[Image.new("RGB", flat().size)]),
    "animated png": lambda: file(flat(), "PNG", save_all=True, append_images=[Image.new("RGB", flat().size)]),
    "progressive jpeg": lambda: file(flat(), "JPEG", progressive=True),
    "avif": lambda: file(flat(), "AVIF", quality=90),
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_every_kind_of_file_with_print_on_it_is_read(desk: DirectDesk, name: str) -> None:
    document, _ = through(desk, ODD_FILES[name]())
    assert "invoice" in " ".join(line.text for line in document.lines)


def header(width: int, height: int) -> bytes:
    """A PNG that says how large it is and holds next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    start = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + start + chunk(b"IDAT", zlib.compress(bytes(3000))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", UnreadableImage),
        (b"\xff\xd8\xff", UnreadableImage),
        (b"no picture at all", UnreadableImage),
        (bytes(100_000), UnreadableImage),
        (header(20_000, 20_000), ImageTooLarge),
        (header(0, 10), UnreadableImage),
        (header(5000, 5000), UnreadableImage),
        (file(flat(), "JPEG")[:3000], UnreadableImage),
        (file(flat(), "PNG")[:-400], UnreadableImage),
        (file(flat().convert("F"), "TIFF"), UnreadableImage),
    ],
)
def test_what_is_no_whole_picture_is_named(desk: DirectDesk, data: bytes, error: type[DocferryError]) -> None:
    with pytest.raises(error) as raised:
        through(desk, data)
    assert raised.value.remedy


QUICK = {"max_examples": 15, "deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@st.composite
def pictures(draw: st.DrawFn) -> bytes:
    """Noise, ramps, stripes and flat colour in any size, mode and format."""
    width, height = draw(st.integers(1, 300)), draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    grey = {
        "flat": lambda: np.full((height, width), rng.integers(256), np.uint8),
        "noise": lambda: rng.integers(0, 256, (height, width), dtype=np.uint8),
        "ramp": lambda: np.tile(np.linspace(0, 255, width).astype(np.uint8), (height, 1)),
        "stripes": lambda: np.tile(((np.arange(height) // 4) % 2 * 255).astype(np.uint8)[:, None], (1, width)),
        "print": lambda: letter(300, 300, 16, 12)[:height, :width, 0],
    }[draw(st.sampled_from(["flat", "noise", "ramp", "stripes", "print"]))]()
    kind = draw(st.sampled_from(["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF"]))
    modes = {"JPEG": ["L", "RGB", "CMYK"], "BMP": ["1", "L", "P", "RGB"], "WEBP": ["L", "RGB", "RGBA"]}
    mode = draw(st.sampled_from(modes.get(kind, ["1", "L", "P", "RGB", "RGBA"])))
    return file(Image.fromarray(grey).convert(mode), kind)


@given(data=pictures())
@settings(**QUICK)
def test_any_picture_gives_a_reading_that_fits_the_page(desk: DirectDesk, data: bytes) -> None:
    document, reasons = through(desk, data)
    assert reasons
    assert all(0 <= value <= 1 for line in document.lines for value in (*line.box, line.score))


@given(
    data=pictures(), places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=8), end=st.floats(0, 1)
)
@settings(**QUICK)
def test_any_damage_gives_a_reading_or_a_named_error(desk: DirectDesk, data: bytes, places: list, end: float) -> None:
    damaged = bytearray(data)
    for place, value in places:
        damaged[int(place * (len(damaged) - 1))] = value
    try:
        through(desk, bytes(damaged[: int((0.2 + end) * len(damaged))]))
    except DocferryError as error:
        assert error.reason
        assert error.remedy
