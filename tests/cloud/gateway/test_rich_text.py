"""What was read is shown as text, tables and formulas, and does nothing, whoever wrote it."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.markdown import escaped
from docferry_cloud.gateway.rich_text import LONGEST, LONGEST_FORMULA, formula, rendered

HARMLESS = {"colspan", "rowspan", "scope", "start", "display", "mathvariant", "fence", "form", "stretchy", "accent"}
HARMLESS |= {"largeop", "lspace", "movablelimits", "rspace", "separator", "linethickness", "width", "columnalign"}
HARMLESS |= {"columnspacing", "rowspacing", "accentunder"}
ACTIVE = {"a", "img", "script", "style", "svg", "iframe", "object", "embed", "form", "input", "link", "meta", "base"}
MALICE = (
    "<script>hit()</script>",
    '<img src=x onerror="hit()">',
    "<svg onload=hit()>",
    "</math><svg onload=hit()>",
    "<math><mtext><style><img src=x onerror=hit()></style></mtext></math>",
    "[x](javascript:hit())",
    "![x](https://example.com/x.png)",
    "<https://example.com/>",
    r"$\text{<img src=x onerror=hit()>}$",
    r"$$\href{javascript:hit()}{x}$$",
    r"$$\style{background:url(x)}{x}$$",
    "<table onclick=hit()><tr><td style=color:red>1</td></tr></table>",
    "[x]: javascript:hit()\n\n[x]",
    "&lt;script&gt;hit()&lt;/script&gt;",
)


class Elements(HTMLParser):
    """Elements and attributes of a piece of HTML, and its text."""

    def __init__(self, made):
        super().__init__()
        self.tags, self.names, self.text = [], set(), ""
        self.feed(made)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def harmless(made):
    found = Elements(str(made))
    return not ACTIVE & set(found.tags) and found.names <= HARMLESS


@pytest.mark.parametrize("text", MALICE)
def test_malice_comes_out_harmless_in_text_and_in_formulas(text):
    assert harmless(rendered(text))
    assert harmless(formula(text))
    assert "hit()" not in "".join(Elements(str(rendered(text))).names)


@given(st.lists(st.sampled_from([*MALICE, "\n\n", "$$", "$", "|", "<", "&", "\\", "{", "}", "a"]), max_size=8))
def test_no_mixture_of_malice_comes_through(pieces):
    text = "".join(pieces)
    assert harmless(rendered(text))
    assert harmless(formula(text))


@given(st.text(max_size=200))
def test_any_text_can_be_shown(text):
    assert harmless(rendered(text))
    assert harmless(formula(text))


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30))
def test_a_printed_line_is_shown_as_it_stands(word):
    assert Elements(str(rendered(f"x {escaped(word)}"))).text.split() == ["x", *word.split()]


def test_headings_tables_and_lists_are_what_they_were_and_stand_below_the_pages_own():
    made = rendered(
        "# A\n\n## B\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        '<table><tr><th scope="col" colspan="2">c</th></tr></table>\n'
    )
    tags = Elements(str(made)).tags
    assert tags[:2] == ["h3", "h4"]
    assert tags.count("li") == 2
    assert tags.count("table") == 2
    assert 'colspan="2"' in made


@pytest.mark.parametrize("around", ["$$\n{}\n$$", "so ${}$ it is"])
def test_formulas_become_mathml(around):
    made = rendered(around.format(r"\frac{a}{b} < \sqrt{x}"))
    assert {"math", "mfrac", "msqrt"} <= set(Elements(str(made)).tags)
    assert "&lt;" in made


@pytest.mark.parametrize("latex", [r"\begin{matrix", "{" * 800, "x" * (LONGEST_FORMULA + 1)])
def test_what_is_no_formula_is_shown_as_its_source(latex):
    found = Elements(str(formula(latex)))
    assert found.tags == ["pre", "code"]
    assert found.text == latex


def test_amounts_are_no_formulas():
    assert "math" not in Elements(str(rendered("between $5.00 and $6.00"))).tags


@pytest.mark.parametrize("text", ["x" * (LONGEST + 1), ">" * 5000 + " deep", "- " * 3000 + "deep"])
def test_what_is_too_long_or_too_deep_is_still_shown(text):
    found = Elements(str(rendered(text)))
    assert not ACTIVE & set(found.tags)
    assert text.split()[-1][-4:] in found.text
