"""What is masked is gone: from the text, from the fields, from every pixel that is packed."""

import io
import time
import uuid
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from docferry.calibration import Calibration
from docferry.document import Document, Evidence, Field, Line, Page, Quality, Reading, Region, RegionType, with_fields
from docferry.fields import extract_fields
from docferry.fields.checksums import compact
from docferry.fields.sensitive import MASK, Sensitive
from docferry.model_store import default_store
from docferry.packing import unpack_reading
from docferry.route import Decision
from docferry.v1 import analysis_service_pb2
from docferry.vision.images import decode
from docferry_edge.assess import assess
from docferry_edge.dispatch import dispatch
from docferry_edge.examine import Examined, examine
from docferry_edge.pack import Identity, Pictures
from docferry_edge.policies import Policies
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Reader
from docferry_edge.redact import redact
from docferry_edge.route import Mode, Policy

IDENTITY = Calibration(((0.0, 0.0), (1.0, 1.0)), "reader", 1, 1, "none", "", "2026-01-01")
ALL = frozenset(Sensitive)
CARD = "4539 1488 0343 6467"
WIDTH, HEIGHT = 800, 1000

ROWS = [
    "GREEN LEAF MART SDN BHD",
    "RECEIPT 000123",
    "DATE 12/03/2018",
    f"VISA {CARD} APPROVED",
    "TEA 3.50",
    "TOTAL RM 9.00",
    "jane.doe@example.com",
    "CHANGE RM 1.00",
]


def examined(rows: list[str], score: float = 0.99, image: np.ndarray | None = None) -> Examined:
    step = 1 / (len(rows) + 1)
    lines = tuple(
        Line(f"r1.l{n + 1}", text, box(0.1, (n + 0.5) * step, 0.1 + 0.022 * len(text), (n + 0.9) * step), score)
        for n, text in enumerate(rows)
    )
    region = Region("r1", RegionType.TEXT, (0, 0, 1, 1), 0, lines=lines)
    quality = Quality(text_height=0.4 * step * HEIGHT)
    document = Document((Page(WIDTH, HEIGHT, (region,) if rows else (), quality),))
    reading = Reading(with_fields(document, extract_fields(document)), "reader")
    pixels = np.full((HEIGHT, WIDTH, 3), 255, np.uint8) if image is None else image
    return Examined(PageImage(pixels, quality), assess(reading, IDENTITY), {}, Frame(b"", "x"))


def box(x0: float, y0: float, x1: float, y1: float):
    return ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def texts(document: Document) -> str:
    return "\n".join(
        [*(line.text for line in document.lines), *(f"{field.value} {field.normalized}" for field in document.fields)]
    )


def identity(name: str = "photo.jpg") -> Identity:
    return Identity(str(uuid.uuid4()), str(uuid.uuid4()), name, 100_000, time.time())


def test_without_kinds_nothing_is_touched() -> None:
    whole = examined(ROWS)
    assert redact(whole, ()).examined is whole


def test_text_and_fields_lose_what_is_masked_and_the_plan_counts_it() -> None:
    done = redact(examined(ROWS), ALL)
    text = texts(done.examined.assessment.reading.document)
    assert "4539" not in text
    assert "jane" not in text
    assert "6467" in text
    assert MASK in text
    (reason,) = done.reasons
    assert (reason.code, reason.detail, reason.value) == ("REDACTED", "1 card, 1 email", 2)
    assert done.examined.frame is None


def test_a_field_read_from_a_masked_line_is_masked_too() -> None:
    base = examined(ROWS)
    line = base.assessment.reading.document.lines[3]
    field = Field("payment", CARD, compact(CARD), 0.9, (Evidence(0, line.box, line.id),))
    document = with_fields(base.assessment.reading.document, (field,))
    assessment = replace(base.assessment, reading=replace(base.assessment.reading, document=document))
    (masked,) = redact(replace(base, assessment=assessment), ALL).examined.assessment.reading.document.fields
    assert "4539" not in masked.value + masked.normalized
    assert "14880343" not in masked.value + masked.normalized


def test_a_number_that_the_reader_cut_in_two_is_found_across_the_row() -> None:
    left = Line("r1.l1", "VISA 4539 1488", box(0.1, 0.3, 0.4, 0.34), 0.99)
    right = Line("r1.l2", "0343 6467 OK", box(0.42, 0.3, 0.7, 0.34), 0.99)
    region = Region("r1", RegionType.TEXT, (0, 0, 1, 1), 0, lines=(left, right))
    reading = Reading(Document((Page(WIDTH, HEIGHT, (region,)),)), "reader")
    page = PageImage(np.full((HEIGHT, WIDTH, 3), 255, np.uint8))
    done = redact(Examined(page, assess(reading, IDENTITY), {}), ALL)
    first, second = done.examined.assessment.reading.document.lines
    assert first.text == f"VISA {MASK * 4} {MASK * 4}"
    assert second.text == f"{MASK * 4} 6467 OK"


def test_an_unsure_run_of_digits_is_masked_whole() -> None:
    done = redact(examined([*ROWS, "45?9 1488 O343 64"], score=0.7), {Sensitive.CARD})
    text = texts(done.examined.assessment.reading.document)
    assert "1488" not in text
    assert "unsure_digits" in done.reasons[0].detail


def test_a_line_that_is_masked_whole_is_not_sent_to_be_read_again() -> None:
    done = redact(examined([*ROWS, "123456789012345"], score=0.3), {Sensitive.CARD})
    assert "r1.l9" not in {line.line.id for line in done.examined.assessment.lines}


@pytest.mark.parametrize(
    "page",
    [examined([]), examined(ROWS)],
    ids=["nothing read", "doubtful orientation"],
)
def test_what_was_not_read_cannot_be_masked_so_no_picture_goes(page: Examined) -> None:
    document = page.assessment.reading.document
    if document.lines:
        doubtful = replace(document.pages[0], quality=Quality(orientation_score=0.3))
        reading = replace(page.assessment.reading, document=replace(document, pages=(doubtful,)))
        page = replace(page, assessment=assess(reading, IDENTITY))
    made = dispatch(identity(), page, Policies(Policy(redact=ALL, audit_share=1.0)), Pictures())
    assert made.plan.route.decision is Decision.STRUCTURE
    assert "NOT_REDACTABLE" in {reason.code for reason in made.plan.route.reasons}
    envelope = analysis_service_pb2.SubmitRequest.FromString(made.packed.request).envelope
    assert not envelope.parts


def test_a_file_name_is_masked_as_well() -> None:
    made = dispatch(identity("4539148803436467.jpg"), examined(ROWS), Policies(Policy(redact=ALL)), Pictures())
    envelope = analysis_service_pb2.SubmitRequest.FromString(made.packed.request).envelope
    assert envelope.file_name == f"{MASK * 16}.jpg"


@given(st.lists(st.sampled_from([*ROWS, "4111111111111111", "IBAN DE89370400440532013000"]), min_size=1, max_size=9))
@settings(max_examples=25, deadline=None)
def test_no_secret_occurs_in_any_packed_byte(rows: list[str]) -> None:
    made = dispatch(identity(), examined(rows, 0.6), Policies(Policy(redact=ALL, audit_share=0.0)), Pictures())
    envelope = analysis_service_pb2.SubmitRequest.FromString(made.packed.request).envelope
    document = unpack_reading(envelope.structure).document
    seen = compact(texts(document) + envelope.file_name + "".join(r.detail for r in envelope.route.reasons))
    for secret in ("453914880343", "411111111111", "DE8937040044053201", "JANEDOE"):
        assert secret not in seen
        assert secret.encode() not in made.packed.request
    assert texts(made.document) == texts(made.document)


def test_everything_under_a_match_is_painted_over_and_the_rest_is_not() -> None:
    noise = np.random.default_rng(1).integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    whole = examined(ROWS, image=noise)
    done = redact(whole, ALL).examined.page.pixels
    line = whole.assessment.reading.document.lines[3]
    x0, y0, x1, y1 = line.box
    start = x0 + (x1 - x0) * 5 / len(line.text)
    end = x0 + (x1 - x0) * 24 / len(line.text)
    covered = done[int(y0 * HEIGHT) : int(y1 * HEIGHT), int(start * WIDTH) : int(end * WIDTH)]
    assert not covered.any()
    other = whole.assessment.reading.document.lines[5].box
    untouched = (slice(int(other[1] * HEIGHT), int(other[3] * HEIGHT)), slice(0, WIDTH))
    assert (done[untouched] == noise[untouched]).all()


def paper(rows: list[str], gap: str = " ") -> bytes:
    """A flat receipt in the default font, its card number printed for the reader to find."""
    image = Image.new("L", (760, 90 + 52 * len(rows)), 250)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(30)
    for number, row in enumerate(rows):
        pen.text((40, 40 + 52 * number), row.replace("~", gap), fill=20, font=font)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


@pytest.mark.parametrize("gap", [" ", " " * 14], ids=["in a row", "after a wide gap"])
def test_the_reader_finds_no_masked_digit_in_any_picture_that_is_packed(gap: str) -> None:
    reader = Reader.load(default_store(), threads=1)
    rows = ["GREEN LEAF MART", "DATE 12/03/2018", "TEA 3.50", "PAID~4539 1488 0343 6467~OK", "TOTAL 9.00"]
    data = paper(rows, gap)
    seen = examine(Frame(data, "paper.jpg"), reader, IDENTITY)
    assert "14880343" in compact(texts(seen.assessment.reading.document))
    for policy in (
        Policy(redact=frozenset({Sensitive.CARD}), audit_share=1.0),
        Policy(redact=frozenset({Sensitive.CARD}), audit_share=0.0, target_risk=0.0, always_overview=True),
    ):
        made = dispatch(identity(), seen, Policies(policy), Pictures())
        envelope = analysis_service_pb2.SubmitRequest.FromString(made.packed.request).envelope
        assert envelope.parts
        for part in envelope.parts:
            again = reader.read_all(PageImage(decode(part.data)))
            digits = compact("".join(line.text for line in again.document.lines))
            for piece in ("4539", "1488", "0343", "6467"):
                assert piece not in digits, (part.part_id, digits)


def test_redaction_leaves_no_doubt_for_policies_that_send_nothing() -> None:
    made = dispatch(identity(), examined(ROWS), Policies(Policy(mode=Mode.OFFLINE, redact=ALL)), Pictures())
    assert made.packed is None
    assert "4539" not in texts(made.document)
