"""A page without pixels: its text on a blank sheet, whatever that text is."""

import math
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from docferry.document import Line, Page, Region, RegionType
from docferry_cloud.phone.sheet import drawn

NAMESPACE = "{http://www.w3.org/2000/svg}"
numbers = st.floats(0, 1, width=32)
quads = st.tuples(*(st.tuples(numbers, numbers) for _ in range(4)))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(st.lists(st.tuples(texts, quads), max_size=5), st.integers(0, 5000), st.integers(0, 5000))
def test_any_text_at_any_place_is_text_in_a_well_formed_picture(found, width, height):
    lines = tuple(Line(f"l{n}", text, quad, 0.9) for n, (text, quad) in enumerate(found))
    page = Page(width, height, (Region("r1", RegionType.TEXT, (0, 0, 1, 1), 0, lines=lines),))
    root = ET.fromstring(drawn(page))
    assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= {"svg", "rect", "g", "text"}
    shown = root.findall(f".//{NAMESPACE}text")
    assert len(shown) == len(lines)
    for element in shown:
        assert set(element.attrib) == {"x", "y", "font-size", "textLength", "lengthAdjust"}
        assert all(math.isfinite(float(element.get(name))) for name in ("x", "y", "font-size", "textLength"))


def test_markup_in_a_line_stays_text():
    line = Line("l1", "</text><script>alert(1)</script>&<\x00", ((0, 0), (1, 0), (1, 0.1), (0, 0.1)), 0.9)
    root = ET.fromstring(drawn(Page(100, 100, (Region("r1", RegionType.TEXT, (0, 0, 1, 1), 0, lines=(line,)),))))
    (text,) = root.findall(f".//{NAMESPACE}text")
    assert text.text == "</text><script>alert(1)</script>&< "
