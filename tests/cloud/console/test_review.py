"""What a form of the review settles: what a person looked at and touched, and nothing else."""

from docferry.v1 import analysis_pb2, document_pb2
from docferry_cloud.console.review import MOST_ITEMS, correction, items


def _document(*texts: str, total: str = "") -> document_pb2.Document:
    lines = [
        document_pb2.Line(line_id=f"r1.l{number}", text=text, confidence=0.3, polygon=[0.1, 0.1, 0.6, 0.2])
        for number, text in enumerate(texts)
    ]
    page = document_pb2.Page(width=100, height=200, regions=[document_pb2.Region(region_id="r1", lines=lines)])
    fields = [document_pb2.Field(name="total", value=total, normalized="9.00", confidence=0.3)] if total else []
    return document_pb2.Document(pages=[page], fields=fields)


def _settled(document, texts, checked=()):
    return correction(analysis_pb2.Analysis(analysis_id="a"), document, 2, texts, checked)


def _shown(document):
    """What a browser sends of a form that nobody touched: its one-line fields drop line breaks."""
    found = items(analysis_pb2.Analysis(), document)[:MOST_ITEMS]
    return {entry.name: entry.text.replace("\r", "").replace("\n", "") for item in found for entry in item.entries}


def test_a_form_that_nobody_touched_settles_nothing_whatever_stands_around_its_texts():
    document = _document("  Invoice 4711 ", "two\r\nlines", "\tplain", total=" 9.00\n")
    request = _settled(document, _shown(document))
    assert not request.lines
    assert not request.fields
    trimmed = {name: text.strip() for name, text in _shown(document).items()}
    assert not _settled(document, trimmed).lines


def test_what_was_not_shown_stays_in_doubt_even_if_it_is_checked():
    document = _document(*(f" line {number} " for number in range(MOST_ITEMS + 20)))
    texts = _shown(document)
    assert len(texts) == MOST_ITEMS
    hidden = f"line:0:r1.l{MOST_ITEMS + 5}"
    request = _settled(document, texts | {"line:0:r1.l3": "right"}, {"line:0:r1.l4", hidden})
    assert [(line.line_id, line.text) for line in request.lines] == [("r1.l3", "right"), ("r1.l4", " line 4 ")]


def test_confirming_a_text_sends_it_as_it_was_read_and_a_change_goes_without_the_spaces():
    document = _document(" Total ", total=" 9.00 ")
    request = _settled(document, _shown(document), {"field:total", "line:0:r1.l0"})
    assert [line.text for line in request.lines] == [" Total "]
    assert [(field.value, field.normalized) for field in request.fields] == [(" 9.00 ", "9.00")]
    request = _settled(document, _shown(document) | {"field:total:0": " 9,500.00 "})
    assert [(field.value, field.normalized) for field in request.fields] == [("9,500.00", "9500.00")]
