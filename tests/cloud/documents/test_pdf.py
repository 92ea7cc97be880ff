"""PDFs: what they hold, and what is said of those that cannot be read."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from docferry.errors import ImageTooLarge, InputError, UnreadableImage
from docferry_cloud.documents import pdf
from docferry_cloud.documents.files import FileKind, count_pages, kind_of
from docferry_cloud.documents.pdf import PdfFiles, read_page
from docferry_cloud.documents.pdf_process import Limits, PdfProcess
from tests.cloud.documents import files

LIMITS = Limits(seconds_a_page=5, patience_s=10, memory=1 << 29, idle_s=10)


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


def nested(levels: int, times: int, pages: int = 1) -> bytes:
    """A PDF whose page, shown so many times, draws a form that draws a form `times` times, and so on, `levels` deep."""
    kids = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b"3 0 R " * pages, pages)
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", kids, b""]

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
        PdfFiles(LIMITS).page_count(data, "letter.pdf")
    # What it costs is the small process's, not ours.
    assert time.process_time() - before < 1


def test_costly_pages_are_counted_within_one_allowance_however_many_they_are() -> None:
    data = nested(4, 8, pages=500)
    assert len(data) < 8192
    pages = PdfFiles(Limits(seconds_a_page=1, seconds_to_open=0))
    with pytest.raises(ImageTooLarge, match="takes more than 1 s"):
        pages.page_count(data)


def test_a_process_that_counts_for_ever_is_ended_after_its_time(hostile: list[PdfProcess]) -> None:
    hostile.append(PdfProcess(b"", "letter.pdf", Limits(patience_s=0.3), "tests.cloud.documents.hostile:counting"))
    with pytest.raises(ImageTooLarge, match="takes more"):
        hostile[0].count()


def test_a_form_or_two_within_another_is_an_ordinary_page() -> None:
    data = nested(2, 3)
    assert count_pages(data) == 1
    assert read_page(data, 0).image.shape[0] > 0


@pytest.fixture
def hostile() -> Iterator[list[PdfProcess]]:
    """Holds processes of programs in `hostile.py`, and ends them all."""
    made: list[PdfProcess] = []
    yield made
    for process in made:
        process.close()


@pytest.mark.parametrize(
    ("program", "error", "why"),
    [
        ("crash", UnreadableImage, "page 3 breaks the PDF reader .SIGSEGV"),
        ("spin", ImageTooLarge, "page 3 takes more than 5 s or 512 MiB"),
        ("killed", ImageTooLarge, "page 3 takes more"),
        ("flood", UnreadableImage, "absurd size"),
        ("garbage", UnreadableImage, "an answer that is none"),
        ("fault", RuntimeError, "ended with 3"),
    ],
)
def test_whatever_a_file_makes_of_its_process_the_document_fails_with_the_reason(
    hostile: list[PdfProcess], program: str, error: type[Exception], why: str
) -> None:
    hostile.append(PdfProcess(b"", "letter.pdf", LIMITS, f"tests.cloud.documents.hostile:{program}"))
    with pytest.raises(error, match=why):
        hostile[0].read(2, 200, 3500)


@pytest.mark.parametrize("program", ["lie", "silent"])
def test_an_answer_that_does_not_fit_together_fails_the_document(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    program = f"tests.cloud.documents.hostile:{program}"
    monkeypatch.setattr(pdf, "PdfProcess", lambda data, name, limits: PdfProcess(data, name, limits, program))
    pages = PdfFiles(LIMITS)
    with pytest.raises(UnreadableImage, match="an answer that is none"):
        pages.read_page(b"", 0, "letter.pdf")
    pages.close()


def test_a_count_that_is_none_fails_the_document(hostile: list[PdfProcess]) -> None:
    hostile.append(PdfProcess(b"", "letter.pdf", LIMITS, "tests.cloud.documents.hostile:silent"))
    with pytest.raises(UnreadableImage, match="an answer that is none"):
        hostile[0].count()


def test_no_more_pages_are_read_than_are_opened() -> None:
    pages = PdfFiles(Limits(most_pages=2))
    with pytest.raises(ImageTooLarge, match="3 pages, and at most 2"):
        pages.page_count(files.pdf(3))


def test_a_process_that_hangs_is_ended_after_its_time(hostile: list[PdfProcess]) -> None:
    limits = Limits(patience_s=0.2)
    hostile.append(PdfProcess(b"", "letter.pdf", limits, "tests.cloud.documents.hostile:hang"))
    with pytest.raises(ImageTooLarge, match="page 1 takes more"):
        hostile[0].read(0, 200, 3500)


def test_a_page_that_takes_too_much_is_given_up_and_the_next_file_is_read() -> None:
    pages = PdfFiles(LIMITS)
    with pytest.raises(ImageTooLarge, match=r"letter.pdf: page 1 takes more than 5 s or 512 MiB"):
        pages.read_page(nested(12, 12), 0, "letter.pdf")
    assert pages.read_page(files.pdf(), 0).layer is not None


def test_one_process_serves_a_files_pages_and_a_new_one_where_it_has_ended() -> None:
    pages = PdfFiles(LIMITS)
    data = files.pdf(3)
    assert pages.page_count(data) == 3
    (kept,) = pages._idle.values()
    assert pages.read_page(data, 0).layer is not None
    assert list(pages._idle.values()) == [kept]
    # As it does by itself when it is not asked anything.
    assert kept._process.stdin is not None
    kept._process.stdin.close()
    with Path(os.devnull).open("wb", buffering=0) as nowhere:
        kept._process.stdin = nowhere
        assert kept._process.wait(10) == 0
        assert pages.read_page(data, 1).layer is not None
    assert list(pages._idle.values()) != [kept]
    assert pages.read_page(data, 2).layer is not None
    assert not pages._idle


def test_a_process_ends_by_itself_when_nobody_asks() -> None:
    process = PdfProcess(files.pdf(), "letter.pdf", Limits(idle_s=0.05))
    assert process._process.wait(10) == 0
    process.close()


def test_a_signal_to_all_processes_of_the_service_is_not_taken_for_a_bad_file() -> None:
    pages = PdfFiles(LIMITS)
    data = files.pdf(2)
    try:
        assert pages.page_count(data) == 2
        (kept,) = pages._idle.values()
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(kept._process.pid, number)
        assert pages.read_page(data, 0).layer is not None
    finally:
        pages.close()


def test_several_threads_read_pages_of_one_file() -> None:
    pages = PdfFiles(LIMITS)
    data, found = files.pdf(4), [""] * 4

    def read(number: int) -> None:
        layer = pages.read_page(data, number).layer
        assert layer is not None
        found[number] = next(word.text for word in layer.words if word.text.isdigit())

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pages.close()
    assert found == ["1", "2", "3", "4"]
