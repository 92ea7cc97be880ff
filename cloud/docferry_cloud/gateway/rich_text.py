"""What was read as HTML: Markdown with its tables, formulas as MathML. Nothing here trusts what a model wrote.

Markdown is made into HTML, formulas into MathML on the server, so that no page needs a script or an inline style for
them. Whatever comes of it, from documents, from models or from the converters, passes one list of harmless elements
and attributes at the end; everything else is taken out.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import cache

import nh3
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin

LONGEST = 200_000
"""Characters of one text; a longer one is shown as it is written, as is what nests too deeply."""
LONGEST_FORMULA = 2_000
"""Characters of one formula; a longer one is shown as its source."""

_MATHML = frozenset(
    (  # noqa: SIM905 - a list of one a line is no easier to read
        "math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt"
        " mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none"
    ).split()
)
_TEXT = frozenset(
    (  # noqa: SIM905
        "blockquote br caption code em h1 h2 h3 h4 h5 h6 hr li ol p pre s strong sub sup table tbody td tfoot th thead"
        " tr ul"
    ).split()
)
_CELL = {"colspan", "rowspan"}
_ATTRIBUTES = {
    "math": {"display"},
    "mi": {"mathvariant"},
    "mo": {"fence", "form", "largeop", "lspace", "movablelimits", "rspace", "separator", "stretchy"},
    "mfrac": {"linethickness"},
    "mover": {"accent"},
    "mspace": {"width"},
    "mtable": {"columnalign", "columnspacing", "rowspacing"},
    "mtd": {"columnalign"},
    "munder": {"accentunder"},
    "ol": {"start"},
    "td": _CELL,
    "th": _CELL | {"scope"},
}


def rendered(markdown: str) -> Markup:
    """Markdown, as `docferry.markdown` writes it, as HTML that does nothing but show.

    Headings begin at the third level, below those of the page around it. Links and pictures stay text: none of them
    was made by the person who looks at the page.
    """
    if len(markdown) > LONGEST:
        return _as_written(markdown)
    try:
        made = _markdown().render(markdown)
    except RecursionError:
        return _as_written(markdown)
    return Markup(_clean(made))  # noqa: S704 - this is what makes it harmless


def formula(latex: str) -> Markup:
    """LaTeX as MathML; as its source, marked as code, where it is no formula that can be shown."""
    return Markup(_clean(_formula(latex, block=True)))  # noqa: S704 - this is what makes it harmless


def _formula(latex: str, *, block: bool) -> str:
    source = latex.strip()
    if not source or len(source) > LONGEST_FORMULA:
        return _code(source, block=block)
    try:
        # Tags in the source would come through as they are.
        made: str = convert(source.replace("<", r"\lt ").replace(">", r"\gt "), display="block" if block else "inline")
    # What is no LaTeX ends in errors of the converter's own or in any of Python's.
    except Exception:  # noqa: BLE001
        return _code(source, block=block)
    return made


def _code(source: str, *, block: bool) -> str:
    code = f"<code>{html.escape(source)}</code>"
    return f"<pre>{code}</pre>" if block else code


def _as_written(text: str) -> Markup:
    return Markup("<pre>{}</pre>").format(text)


def _clean(made: str) -> str:
    return nh3.clean(
        made,
        tags=set(_TEXT | _MATHML),
        attributes=_ATTRIBUTES,
        clean_content_tags={"script", "style"},
        url_schemes=set(),
        link_rel=None,
        strip_comments=True,
    )


@cache
def _markdown() -> MarkdownIt:
    # Tables come as HTML, so HTML has to pass here; `_clean` sees to what of it stays. What nests deeper than its limit
    # the library leaves out without a word, so the limit is one that Python reaches first.
    made = MarkdownIt("commonmark", {"html": True, "maxNesting": 100_000}).enable(["table", "strikethrough"])
    made.disable(["link", "image", "autolink", "reference"])
    renderer: Callable[[str, dict[str, bool]], str] = _math
    made.use(dollarmath_plugin, renderer=renderer, allow_digits=False, double_inline=False)
    made.core.ruler.push("lower_headings", _lower_headings)
    return made


def _math(content: str, options: dict[str, bool]) -> str:
    return _formula(content, block=options.get("display_mode", False))


def _lower_headings(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
