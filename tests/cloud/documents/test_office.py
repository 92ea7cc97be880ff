"""Office and HTML files in the document tree."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from pptx.oxml.ns import qn

from docferry.document import Page, RegionType
from docferry.errors import ImageTooLarge, InputError, UnreadableImage
from docferry.tables import from_html
from docferry_cloud.documents.files import FileKind, count_pages, kind_of
from docferry_cloud.documents.office import read_office
from tests.cloud.documents import files


def texts(page: Page, kind: RegionType) -> list[str]:
    return [line.text for region in page.regions if region.type is kind for line in region.lines]


def tables(page: Page) -> list[list[list[str]]]:
    return [from_html(region.html).texts() for region in page.regions if region.html]


def test_a_word_document_keeps_headings_lists_and_merged_cells() -> None:
    assert kind_of(files.word()) is FileKind.DOCX
    page = read_office(files.word(), "docx", 0)
    assert texts(page, RegionType.TITLE) == ["Harvest report"]
    assert texts(page, RegionType.LIST_ITEM) == ["dry it"]
    (table,) = tables(page)
    assert table[1][0] == table[2][0] == "Walnuts Almonds"
    assert table[3] == files.ROWS[3]


def test_every_slide_is_a_page_with_its_title_first() -> None:
    assert count_pages(files.slides()) == 2
    page = read_office(files.slides(), "pptx", 1)
    assert page.regions[0].type is RegionType.TITLE
    assert [line.text for line in page.lines] == ["Slide 2", "First point", "Second point"]


def test_every_sheet_is_a_page_with_a_table() -> None:
    assert count_pages(files.workbook()) == 2
    (table,) = tables(read_office(files.workbook(), "xlsx", 0))
    assert table[1] == ["Walnuts", "12", "3.5"]
    assert tables(read_office(files.workbook(), "xlsx", 1)) == []


def test_html_gives_what_is_shown_and_no_script() -> None:
    source = (
        b"<!doctype html><html><head><title>x</title></head><body><h1>Harvest</h1><script>evil()</script>"
        b"<p>It was <b>good</b>.</p><ul><li>dry it</li></ul><table><tr><td>a</td><td>b</td></tr></table></body></html>"
    )
    assert kind_of(source) is FileKind.HTML
    page = read_office(source, "html", 0)
    assert texts(page, RegionType.TITLE) == ["Harvest"]
    assert texts(page, RegionType.TEXT) == ["It was good."]
    assert texts(page, RegionType.LIST_ITEM) == ["dry it"]
    assert tables(page) == [[["a", "b"]]]


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_as_html_give_a_page_or_a_clear_error(data: bytes) -> None:
    try:
        page = read_office(b"<html><body>" + data, "html", 0)
    except UnreadableImage:
        return
    assert all(0 <= side <= 1 for region in page.regions for side in region.box)


@pytest.mark.parametrize("data", [b"PK\x03\x04 cut", files.word()[:500]])
def test_a_damaged_office_file_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableImage, match="damaged"):
        kind_of(data, "a.docx")


def test_an_old_or_locked_office_file_says_what_to_do() -> None:
    with pytest.raises(InputError, match="password or older"):
        kind_of(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "a.doc")


def word_with(body: str) -> bytes:
    """A Word document with this XML before its own paragraphs."""
    import docx
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    document = docx.Document(io.BytesIO(files.word()))
    for element in reversed(parse_xml(f"<w:body {nsdecls('w')}>{body}</w:body>")):
        document.element.body.insert(0, element)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def test_word_text_in_content_controls_and_tracked_insertions_is_read_and_deleted_text_is_not() -> None:
    body = (
        f"<w:sdt><w:sdtContent><w:p>{run('in a control')}</w:p></w:sdtContent></w:sdt>"
        f"<w:p>{run('kept ')}<w:ins w:id='1' w:author='a'>{run('inserted ')}</w:ins>"
        "<w:del w:id='2' w:author='a'><w:r><w:delText>gone</w:delText></w:r></w:del>"
        f"<w:sdt><w:sdtContent>{run('controlled')}</w:sdtContent></w:sdt></w:p>"
    )
    page = read_office(word_with(body), "docx", 0)
    assert texts(page, RegionType.TEXT)[:2] == ["in a control", "kept inserted controlled"]


def test_a_word_table_inside_a_cell_is_text_of_that_cell() -> None:
    inner = f"<w:tbl><w:tr><w:tc><w:p>{run('inner')}</w:p></w:tc></w:tr></w:tbl>"
    cells = f"<w:tc><w:p>{run('outer')}</w:p>{inner}<w:p/></w:tc><w:tc><w:p>{run('b')}</w:p></w:tc>"
    outer = f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
    assert tables(read_office(word_with(outer), "docx", 0))[0] == [["outer inner", "b"]]


def test_a_tall_vertical_merge_in_word_is_one_cell() -> None:
    rows = "".join(
        f"<w:tr><w:tc><w:tcPr><w:vMerge{' w:val=' + chr(34) + 'restart' + chr(34) if number == 0 else ''}/></w:tcPr>"
        f"<w:p>{run('a') if number == 0 else ''}</w:p></w:tc><w:tc><w:p>{run(str(number))}</w:p></w:tc></w:tr>"
        for number in range(3000)
    )
    table = tables(read_office(word_with(f"<w:tbl>{rows}</w:tbl>"), "docx", 0))[0]
    assert (table[0], table[2999], len(table)) == (["a", "0"], ["a", "2999"], 3000)


@pytest.mark.parametrize("span", ["w:gridSpan", "w:gridBefore"])
def test_a_word_table_of_absurd_width_is_refused(span: str) -> None:
    wide = f'<{span} w:val="2000000000"/>'
    row = f"<w:trPr>{wide}</w:trPr>" if span == "w:gridBefore" else ""
    cell = f"<w:tcPr>{wide}</w:tcPr>" if span == "w:gridSpan" else ""
    table = f"<w:tbl><w:tr>{row}<w:tc>{cell}<w:p>{run('a')}</w:p></w:tc></w:tr></w:tbl>"
    with pytest.raises(ImageTooLarge, match="columns"):
        read_office(word_with(table), "docx", 0)


def rewritten(data: bytes, name: str, change: Callable[[str], str]) -> bytes:
    """An archive with one of its files changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.namelist():
            content = old.read(entry)
            new.writestr(entry, change(content.decode()).encode() if entry == name else content)
    return out.getvalue()


def test_a_merge_over_a_whole_sheet_is_refused_before_the_workbook_is_loaded() -> None:
    merge = '<mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    data = rewritten(
        files.workbook(), "xl/worksheets/sheet1.xml", lambda xml: xml.replace("</sheetData>", f"</sheetData>{merge}")
    )
    with pytest.raises(ImageTooLarge, match="merges"):
        count_pages(data)


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ('<row r="9"><c r="XFD9"><v>1</v></c></row>', "a cell XFD9"),
        ('<row r="1048576"><c r="A1048576"><v>1</v></c></row>', "a cell A1048576"),
        (f"<row>{'<c/>' * 1_000_001}</row>", "more than 1000000 cells"),
    ],
    ids=["far right", "far down", "many"],
)
def test_a_sheet_of_absurd_size_is_refused_before_the_workbook_is_loaded(cells: str, why: str) -> None:
    data = rewritten(
        files.workbook(), "xl/worksheets/sheet1.xml", lambda xml: xml.replace("</sheetData>", f"{cells}</sheetData>")
    )
    with pytest.raises(ImageTooLarge, match=why):
        count_pages(data)


def renamed(data: bytes, old: str, new: str) -> bytes:
    """An archive with one of its files under another name, also where others speak of it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.namelist():
            target.writestr(new if entry == old else entry, source.read(entry).replace(old.encode(), new.encode()))
    return out.getvalue()


def test_a_sheet_under_another_name_is_looked_at_too() -> None:
    merge = '<mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    data = rewritten(
        files.workbook(), "xl/worksheets/sheet1.xml", lambda xml: xml.replace("</sheetData>", f"</sheetData>{merge}")
    )
    with pytest.raises(ImageTooLarge, match="merges"):
        count_pages(renamed(data, "xl/worksheets/sheet1.xml", "xl/media/sheet1.png"))


def test_a_loosely_written_drawing_beside_the_sheets_does_no_harm() -> None:
    out = io.BytesIO(files.workbook())
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("xl/drawings/vmlDrawing1.vml", "<xml><br>&nbsp;</xml>")
    assert count_pages(out.getvalue()) == 2


def test_xml_under_a_pictures_name_counts_as_xml() -> None:
    out = io.BytesIO(files.word())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/a.png", "<a>" + " " * (65 << 20) + "</a>")
    with pytest.raises(ImageTooLarge, match="bytes of XML"):
        read_office(out.getvalue(), "docx", 0)


def test_an_archive_that_inflates_is_refused_before_it_is_unpacked() -> None:
    data = rewritten(files.word(), "docProps/app.xml", lambda _: "<a>" + " " * (65 << 20) + "</a>")
    assert len(data) < 1 << 20
    with pytest.raises(ImageTooLarge, match="bytes of XML"):
        read_office(data, "docx", 0)


def test_shapes_in_groups_stand_where_the_slide_shows_them() -> None:
    import pptx
    from pptx.util import Emu

    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    group = slide.shapes.add_group_shape()
    inner = group.shapes.add_group_shape()
    box = inner.shapes.add_textbox(Emu(0), Emu(0), Emu(100), Emu(100))
    box.text_frame.text = "in a group of a group"
    wide, high = presentation.slide_width or 0, presentation.slide_height or 0
    places = ((inner, (0, 0), (100, 100)), (group, (wide // 2, high // 2), (wide // 4, high // 4)))
    for element, offset, extent in places:
        frame = element.element.grpSpPr.get_or_add_xfrm()
        for child in list(frame):
            frame.remove(child)
        for name, keys, values in (
            ("off", "xy", offset),
            ("ext", ("cx", "cy"), extent),
            ("chOff", "xy", (0, 0)),
            ("chExt", ("cx", "cy"), (100, 100)),
        ):
            attributes = {key: str(value) for key, value in zip(keys, values, strict=True)}
            frame.append(frame.makeelement(qn(f"a:{name}"), attributes))
    out = io.BytesIO()
    presentation.save(out)
    (region,) = read_office(out.getvalue(), "pptx", 0).regions
    assert region.lines[0].text == "in a group of a group"
    assert region.box == pytest.approx((0.5, 0.5, 0.75, 0.75), abs=0.01)


def test_html_inside_a_paragraph_gives_no_script_or_style_either() -> None:
    source = b"<html><body><p>shown<script>evil()</script><style>p{}</style> too</p></body></html>"
    assert texts(read_office(source, "html", 0), RegionType.TEXT) == ["shown too"]
