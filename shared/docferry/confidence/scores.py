"""What the networks' own scores say: the mean hides one bad glyph among thirty, so the low end is looked at too.

All are logarithms of a doubt, floored: near certainty it is the number of nines that tells lines apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from docferry.document import Line, Trace

NAMES = (
    "doubt_sum",
    "doubt_mean",
    "doubt_worst",
    "doubt_second",
    "doubt_tenth",
    "doubt_digits",
    "doubt_gap",
    "doubt_detector",
    "ink_before",
    "ink_after",
    "ink_top",
    "ink_bottom",
    "pale",
)
"""The signals of `score_signals`, in its order."""

_FLOOR = 1e-4
_DIGITS = frozenset("0123456789.,")


def score_signals(line: Line) -> tuple[float, ...]:
    """The signals named in `NAMES`, each about -9 (sure) to 3; a line without a trace counts with its score alone."""
    trace = line.trace
    scores = trace.characters if trace is not None and trace.characters else (line.score,)
    doubts = sorted((_doubt(score) for score in scores), reverse=True)
    surprise = -math.fsum(math.log(max(1.0 - doubt, _FLOOR)) for doubt in doubts)
    return (
        math.log(surprise + _FLOOR),
        _log(math.fsum(doubts) / len(doubts)),
        _log(doubts[0]),
        _log(doubts[1] if len(doubts) > 1 else doubts[0]),
        _log(doubts[len(doubts) // 10]),
        _log(_worst_digit(line.text, scores)),
        *(_NO_TRACE if trace is None else _traced(trace)),
    )


_NO_TRACE = (math.log(0.01), math.log(0.1), 0.0, 0.0, 0.0, 0.0, 0.5)
"""Middling values, for lines read elsewhere."""


def _traced(trace: Trace) -> tuple[float, ...]:
    ink = trace.ink
    return (
        _log(trace.gap),
        _log(_doubt(trace.detector)),
        math.log1p(50 * ink.before),
        math.log1p(50 * ink.after),
        ink.top,
        ink.bottom,
        1.0 - ink.contrast,
    )


def _doubt(score: float) -> float:
    """1 - score, 0..1; an impossible score is a whole doubt."""
    return 1.0 - score if 0.0 <= score <= 1.0 else 1.0


def _log(doubt: float) -> float:
    return math.log(doubt + _FLOOR)


def _worst_digit(text: str, scores: Sequence[float]) -> float:
    """The largest doubt among digits, points and commas; 0 without any, the largest of all where glyphs were folded."""
    if len(text) != len(scores):
        return _doubt(min(scores)) if any(glyph in _DIGITS for glyph in text) else 0.0
    return max((_doubt(score) for glyph, score in zip(text, scores, strict=True) if glyph in _DIGITS), default=0.0)
