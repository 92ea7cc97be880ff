"""PDFs: what they hold, and what is said of those that cannot be read."""

from __future__ import annotations

import time

import pytest

from docferry.errors import ImageTooLarge, InputError, UnreadableImage
from docferry_cloud.documents.files import FileKind, count_pages, kind_of
from docferry_cloud.documents.pdf import read_page
from tests.cloud.documents import files


def test_pages_are_counted_and_the_kind_is_seen_by_content() -> None:
    assert kind_of(files.pdf()) is FileKind.PDF
    assert kind_of(b"\n\n" + files.pdf()) is FileKind.PDF
    assert count_pages(files.pdf(3)) == 3


def test_a_born_digital_page_gives_its_words_and_rules() -> None:
    page = read_page(files.pdf(), 0)
    assert page.layer is not None
    words = {word.text: word.box for word in page.layer.words}
    x0, y0, x1, y1 = words["Walnuts"]
    assert x0 == pytest.approx(80, abs=1)
    assert y0 < 842 - 536 < y1
    assert 30 < x1 - x0 < 60
    assert sum(rule[2] - rule[0] > 400 for rule in page.layer.rules) >= 5


def test_a_turned_page_is_given_as_it_is_shown() -> None:
    page = read_page(files.pdf(turned=90), 0)
    assert page.layer is not None
    assert page.layer.width > page.layer.height
    heading = next(word for word in page.layer.words if word.text == "Harvest")
    # The page's top is on the right now, its left side on top, and its text runs down.
    assert heading.box[3] - heading.box[1] > 2 * (heading.box[2] - heading.box[0])
    assert heading.box[0] > 0.8 * page.layer.width


def test_a_locked_pdf_says_so() -> None:
    with pytest.raises(InputError, match="locked by a password"):
        count_pages(files.pdf(password="secret"), "letter.pdf")


@pytest.mark.parametrize("data", [b"%PDF-1.7\n", b"%PDF-1.4 garbage", files.pdf()[:200]])
def test_a_damaged_pdf_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableImage, match="damaged"):
        count_pages(data, "letter.pdf")


def test_a_page_that_is_not_there_says_so() -> None:
    with pytest.raises(UnreadableImage, match="page 3"):
        read_page(files.pdf(2), 2)


def nested(levels: int, times: int) -> bytes:
    """A PDF whose page draws a form that draws a form `times` times, and so on, `levels` deep."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", b""]

    def add(dictionary: bytes, content: bytes) -> int:
        objects.append(b"<<%s/Length %d>>stream\n%s\nendstream" % (dictionary, len(content), content))
        return len(objects)

    form = b"/Type/XObject/Subtype/Form/BBox[0 0 99 99]"
    number = add(form, b"0 0 10 10 re f")
    for _ in range(levels):
        number = add(b"%s/Resources<</XObject<</X %d 0 R>>>>" % (form, number), b"/X Do " * times)
    content = add(b"", b"/X Do")
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents %d 0 R/Resources<</XObject<</X %d 0 R>>>>>>"
    objects[2] = page % (content, number)
    out, offsets = b"%PDF-1.4\n", []
    for place, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (place, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + trailer


@pytest.mark.parametrize(("levels", "times"), [(5, 30), (12, 12)], ids=["wide", "deep"])
def test_forms_within_forms_are_refused_at_a_bounded_cost(levels: int, times: int) -> None:
    data = nested(levels, times)
    assert len(data) < 8192
    before = time.process_time()
    with pytest.raises(ImageTooLarge, match="page 1"):
        count_pages(data, "letter.pdf")
    # What it costs is the small process's, not ours.
    assert time.process_time() - before < 1


def test_a_form_or_two_within_another_is_an_ordinary_page() -> None:
    data = nested(2, 3)
    assert count_pages(data) == 1
    assert read_page(data, 0).image.shape[0] > 0
