"""Loops: an answer that ends in the same piece again and again, as greedy decoding does when it is lost. Pure."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_TIMES = 6
"""A piece comes at least this often in a loop, ..."""
LEAST_LENGTH = 60
"""... and the loop has at least this many characters: rows of dots and empty cells are print."""
FINISHED_TIMES = 24
"""An answer that came to its end by itself is believed longer: tables do hold the same row many times."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Where a text begins to repeat itself, the piece, and how often it comes."""

    start: int
    piece: str
    times: int


def find_loop(text: str, *, finished: bool) -> Loop | None:
    """The longest loop that the text ends in, or None. Linear in its length.

    Args:
        finished: Whether the answer ended by itself, and not at its token limit.
    """
    backwards = text[::-1]
    borders = _borders(backwards)
    least = FINISHED_TIMES if finished else LEAST_TIMES
    for length in range(len(text), LEAST_LENGTH - 1, -1):
        period = length - borders[length]
        if length >= least * period:
            # A loop that broke off within the piece began a part of a piece earlier than its whole ones.
            start = len(text) - length
            return Loop(start, text[start : start + period], length // period)
    return None


def without_loop(text: str, loop: Loop) -> str:
    """The text with the piece once."""
    return text[: loop.start] + loop.piece


def _borders(text: str) -> list[int]:
    """For every prefix the length of its longest proper border (Knuth, Morris and Pratt, 1977)."""
    borders = [0] * (len(text) + 1)
    matched = 0
    for at in range(1, len(text)):
        while matched and text[at] != text[matched]:
            matched = borders[matched]
        matched += text[at] == text[matched]
        borders[at + 1] = matched
    return borders
