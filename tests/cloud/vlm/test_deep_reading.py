import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from docferry.document import Line, Page, Region, RegionType
from docferry_cloud.engine import Cost, Crop, Effort, PageInput
from docferry_cloud.vlm.answers import Content, Reply, read_answer
from docferry_cloud.vlm.layout import parse_layout
from docferry_cloud.vlm.local import LocalModel, Options
from docferry_cloud.vlm.merge import agreement, merged, with_layout
from docferry_cloud.vlm.prompts import Ask
from docferry_cloud.vlm.reader import FullReader, layout_in_doubt
from docferry_cloud.vlm.servers import Servers
from tests.cloud.vlm.openai_server import fake_server
from tests.cloud.vlm.tiny_model import ANSWERS, LAYOUT

EDGE, MODEL = "edge:small@aaaaaa", "cloud:vlm-tiny@bbbbbb"


class Recorder:
    """Answers by prompt, and keeps what it was asked."""

    provenance = MODEL

    def __init__(self, tell=None):
        self.asked = []
        self._tell = tell or (lambda question: ANSWERS[question.prompt])

    def ask(self, questions, cancelled):
        self.asked += questions
        return [Reply(self._tell(question), tokens_in=10, tokens_out=5, seconds=0.5) for question in questions]


def png(width=400, height=300):
    image = np.random.default_rng(3).integers(0, 256, (height, width, 3)).astype(np.uint8)
    data = io.BytesIO()
    Image.fromarray(image).save(data, "PNG")
    return data.getvalue()


def line(text, y0, y1, confidence=0.5, name="r1.l1"):
    return Line(name, text, ((0.1, y0), (0.9, y0), (0.9, y1), (0.1, y1)), 0.9, confidence, EDGE)


def region(*lines, kind=RegionType.TEXT, name="r1", box=(0.1, 0.1, 0.9, 0.2), **changes):
    return Region(name, kind, box, 0, 0.9, lines=lines, **changes)


def never():
    return False


def read(reader, page, before, effort=Effort.DEEP):
    return reader.deepen(page, before, effort, never)


@pytest.mark.xdist_group("vlm")
def test_in_process_and_over_http_one_at_a_time_or_four_the_page_is_the_same(model, model_directory):
    given_page, nothing = PageInput(image=png()), Page(400, 300)
    single = LocalModel.load(model_directory, Options(batch=1))

    def tell(prompt, picture, body):
        from docferry_cloud.vlm.model import Question

        shown = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))[..., ::-1]
        ask = next(ask for ask in Ask if Question(ask, None).prompt == prompt)
        (reply,) = model.ask([Question(ask, shown, tokens=body["max_tokens"])], never)
        return {"text": f"{reply.text}<|im_end|>", "logprobs": list(reply.logprobs)}

    pages = [read(FullReader(made), given_page, nothing)[0] for made in (model, single)]
    with fake_server(tell) as server:
        remote = Servers([server.url], form="png")
        pages.append(read(FullReader(remote), given_page, nothing)[0])
        remote.close()
    title, text, table, formula = pages[0].regions
    assert [each.type.value for each in pages[0].regions] == ["title", "text", "table", "equation"]
    assert (title.lines[0].text, text.lines[0].text) == ("The quick brown fox", "The quick brown fox")
    assert table.html == '<table><tr><td colspan="2">A</td></tr><tr><td>1</td><td>2</td></tr></table>'
    assert formula.latex == "E=mc^{2}"
    for page in pages:
        assert all(not each.marks for each in page.regions)
    assert _said(pages[0]) == _said(pages[1]) == _said(pages[2])


def _said(page):
    return [(each.type, each.box, [one.text for one in each.lines], each.html, each.latex) for each in page.regions]


def test_only_what_is_in_doubt_goes_to_the_model():
    sure, doubtful = line("TOTAL 9.00", 0.1, 0.2, 0.99), line("T0TAL", 0.3, 0.4, 0.4, "r2.l1")
    table = region(
        kind=RegionType.TABLE, name="r3", box=(0.1, 0.5, 0.9, 0.7), html="<table><tr><td>1</td></tr></table>"
    )
    formula = region(kind=RegionType.EQUATION, name="r4", box=(0.1, 0.8, 0.9, 0.9))
    before = Page(400, 300, (region(sure), region(doubtful, name="r2", box=(0.1, 0.3, 0.9, 0.4)), table, formula))
    model = Recorder()
    after, cost = read(FullReader(model), PageInput(reading=before, image=png()), before)
    assert [question.ask for question in model.asked] == [Ask.TEXT, Ask.FORMULA]
    assert (after.regions[0], after.regions[2]) == (before.regions[0], table)
    assert after.regions[3].latex == "E=mc^{2}"
    assert (cost.questions, cost.tokens_in, cost.tokens_out, cost.seconds) == (2, 20, 10, 1.0)


def test_of_a_reading_with_crops_only_places_that_a_crop_shows_are_asked_about():
    first, second = line("T0TAL", 0.1, 0.2), line("9.O0", 0.6, 0.7, name="r2.l1")
    before = Page(400, 300, (region(first), region(second, name="r2", box=(0.1, 0.6, 0.9, 0.7))))
    model = Recorder(lambda question: "TOTAL")
    page = PageInput(reading=before, crops=(Crop("c1", (0.0, 0.05, 1.0, 0.25), png(800, 120)),), overview=png(40, 30))
    after, _ = read(FullReader(model), page, before)
    (question,) = model.asked
    assert question.image.shape[1] > question.image.shape[0]
    assert [each.lines[0].text for each in after.regions] == ["TOTAL", "9.O0"]


def test_fast_asks_nothing_and_neither_does_a_page_without_pixels():
    before = Page(400, 300, (region(line("T0TAL", 0.1, 0.2)),))
    model = Recorder()
    reader = FullReader(model)
    assert read(reader, PageInput(reading=before, image=png()), before, Effort.FAST)[0] is before
    assert read(reader, PageInput(reading=before), before)[0] is before
    empty = replace(before, regions=())
    # Its layout is in doubt, which DEEP would ask about.
    assert read(reader, PageInput(reading=empty, image=png()), empty, Effort.FAST) == (empty, Cost())
    assert model.asked == []


def test_the_page_pass_is_for_a_layout_in_doubt_only():
    loose = Page(400, 300, (replace(region(line("abc", 0.1, 0.2)), score=0.0),))
    assert layout_in_doubt(Page(400, 300))
    assert layout_in_doubt(loose)
    assert not layout_in_doubt(Page(400, 300, (region(line("abc", 0.1, 0.2)),)))


def test_a_layout_that_cannot_be_read_is_said_on_the_page():
    model = Recorder(lambda question: "I am a teapot")
    after, _ = read(FullReader(model), PageInput(image=png()), Page(400, 300))
    assert "LAYOUT_MALFORMED" in {mark.code for mark in after.regions[0].marks}


def test_lines_keep_their_place_and_id_under_a_new_layout():
    lines = line("A title", 0.05, 0.09, name="r1.l1"), line("Some text", 0.2, 0.25, name="r1.l2")
    outside = line("Page 7", 0.95, 0.99, name="r1.l3")
    before = Page(400, 300, (region(*lines, outside),))
    layout = parse_layout(LAYOUT)
    after = with_layout(before, layout.blocks, layout.marks, MODEL)
    assert [[each.id for each in one.lines] for one in after.regions] == [["r1.l1"], ["r1.l2"], [], [], ["r1.l3"]]
    assert len({each.id for each in after.regions}) == 5
    assert [each.order for each in after.regions] == [0, 1, 2, 3, 4]


def test_a_paragraph_goes_back_to_the_lines_it_was_printed_on():
    lines = [line("The qu1ck brown", 0.1, 0.13), line("fox jumps ovcr the", 0.14, 0.17, name="r1.l2")]
    content = read_answer(Ask.TEXT, Reply("The quick brown fox jumps over the"))
    after = merged(region(*lines), content, MODEL)
    assert [one.text for one in after.lines] == ["The quick brown", "fox jumps over the"]
    assert [one.polygon for one in after.lines] == [one.polygon for one in lines]
    assert {one.provenance for one in after.lines} == {MODEL}
    assert [mark.code for mark in after.marks] == ["DISAGREEMENT"] * 2
    assert "The qu1ck brown" in after.marks[0].detail


def test_readers_that_agree_are_believed_more_and_those_that_do_not_less():
    content = Content(lines=("TOTAL 9.00",), score=0.8)
    agreed = merged(region(line("TOTAL 9.00", 0.1, 0.2, 0.7)), content, MODEL).lines[0]
    assert (agreed.provenance, agreed.confidence) == (EDGE, pytest.approx(0.7 * 0.8 / (0.56 + 0.06)))
    surer = merged(region(line("TOTAL 9.80", 0.1, 0.2, 0.94)), content, MODEL)
    assert (surer.lines[0].text, surer.lines[0].confidence) == ("TOTAL 9.80", pytest.approx(0.94 * 0.2 / (1 - 0.752)))
    assert "TOTAL 9.00" in surer.marks[0].detail


def test_a_wholly_different_or_broken_answer_replaces_nothing_and_is_kept():
    before = region(line("TOTAL 9.00", 0.1, 0.2, 0.6))
    after = merged(before, Content(lines=("A poem about the sea",), score=0.9), MODEL)
    assert after.lines[0].text == "TOTAL 9.00"
    assert after.lines[0].confidence < 0.6
    assert "A poem about the sea" in after.marks[0].detail
    cut = merged(before, read_answer(Ask.TEXT, Reply("TOTAL 9", finished=False)), MODEL)
    assert cut.lines[0].text == "TOTAL 9.00"
    assert [mark.code for mark in cut.marks] == ["CUT", "DISAGREEMENT"]


def test_a_table_that_broke_off_does_not_replace_one_that_stands():
    html = "<table><tr><td>a</td><td>b</td></tr></table>"
    before = region(kind=RegionType.TABLE, html=html)
    cut = merged(before, read_answer(Ask.TABLE, Reply("<fcel>a", finished=False)), MODEL)
    assert (cut.html, [mark.code for mark in cut.marks]) == (html, ["CUT"])
    other = merged(before, read_answer(Ask.TABLE, Reply("<fcel>a<fcel>c<nl>")), MODEL)
    assert other.html == "<table><tr><td>a</td><td>c</td></tr></table>"
    assert "a b" in other.marks[0].detail
    bare = merged(region(kind=RegionType.TABLE), read_answer(Ask.TABLE, Reply("no tokens at all")), MODEL)
    assert (bare.lines[0].text, bare.html) == ("no tokens at all", None)


TEXTS = st.text("abc 19.,\n<&", max_size=30)


@settings(deadline=None)
@given(st.lists(TEXTS.map(lambda text: " ".join(text.split())), max_size=4), TEXTS, st.booleans(), st.floats(0, 1))
def test_no_answer_takes_a_line_away(texts, said, finished, sure):
    lines = [line(text, 0.1 * n, 0.1 * n + 0.05, sure, f"r1.l{n}") for n, text in enumerate(texts)]
    after = merged(region(*lines), read_answer(Ask.TEXT, Reply(said, finished=finished)), MODEL)
    if lines:
        assert [one.id for one in after.lines] == [one.id for one in lines]
        assert all(one.text or not old.text for one, old in zip(after.lines, lines, strict=True))
    for one in after.lines:
        assert one.confidence is None or 0.0 <= one.confidence <= 1.0
    assert 0.0 <= agreement(" ".join(texts), said) <= 1.0
