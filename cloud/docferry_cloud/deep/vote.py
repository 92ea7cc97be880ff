"""Several readings of one line make one: stretch by stretch, the readings with the most weight behind them win.

After ROVER (Fiscus, 1997), but a stretch on which the readings differ is voted on as a whole: letter by letter, half
of one reading and half of another make what nobody has read. Spaces are voted on apart, since these recognisers lose
a space far more often than they invent one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from docferry_cloud.deep.alignment import matches

_LOST_POINT = 2.0
"""Weight of a reading that has a decimal point which others lack: points vanish ten times as often as they appear."""

_TRUST = 4
"""A reading counts by its mean score to this power: one at 0.7 has a quarter of the say of one that is certain."""

_SILENCE = 0.5
"""What a reading of nothing counts like: it tells against print, but little."""

_POINT = re.compile(r"[.,]")


@dataclass(frozen=True, slots=True)
class Witness:
    """One reading of a line.

    Attributes:
        text: What it reads.
        scores: One for each character of `text`, 0..1.
        weight: How much it counts beside others that are as sure of themselves, above 0.
        spaces: Whether it is to be believed where it sees a space.
    """

    text: str
    scores: tuple[float, ...]
    weight: float = 1.0
    spaces: bool = True


@dataclass(frozen=True, slots=True)
class Voted:
    """What the witnesses agreed on.

    Attributes:
        text: Letters and spaces.
        support: For each letter, spaces left out, the scores behind it as a share of all witnesses' say, 0..1.
        shares: The same as a share of the scores that were given: 1 where nobody read anything else.
    """

    text: str
    support: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def letters(self) -> int:
        """How many characters it has besides spaces."""
        return len(self.support)

    @property
    def mean_support(self) -> float:
        """Mean of `support`; 0 for nothing read."""
        return sum(self.support) / len(self.support) if self.support else 0.0

    @property
    def belief(self) -> float:
        """Product of `support`: all letters must be right, and as many doubts as it has add up; 0 for nothing read."""
        return math.prod(self.support) if self.support else 0.0

    @property
    def mean_share(self) -> float:
        """Mean of `shares`; 0 for nothing read."""
        return sum(self.shares) / len(self.shares) if self.shares else 0.0


@dataclass(frozen=True, slots=True)
class _Bare:
    """A witness without its spaces: letters, their scores, the letters that have a space before them, and its say."""

    letters: str
    scores: tuple[float, ...]
    spaced: frozenset[int]
    weight: float
    spaces: bool

    def mean(self, start: int, end: int) -> float:
        """Mean score of a stretch; of its neighbours where it is empty."""
        if start == end:
            start, end = max(0, start - 1), min(len(self.letters), end + 1)
        return sum(self.scores[start:end]) / (end - start) if end > start else 0.0


@dataclass(frozen=True, slots=True)
class _Place:
    """How one witness lies along the pivot: for each of the pivot's letters, its own letter there or None."""

    witness: _Bare
    at: tuple[int | None, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Its own letters between the pivot's `start` and `end`; the letters around them are matched in all."""
        first = 0 if start == 0 else _known(self.at[start - 1]) + 1
        last = len(self.witness.letters) if end == len(self.at) else _known(self.at[end])
        return first, last


@dataclass(slots=True)
class _Built:
    """The voted line as it grows."""

    text: list[str] = field(default_factory=list)
    support: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def add(self, letters: str, spaced: frozenset[int], support: float, share: float) -> None:
        for number, letter in enumerate(letters):
            if number in spaced and self.text:
                self.text.append(" ")
            self.text.append(letter)
            # Sums of weights may round to a hair above their share.
            self.support.append(min(1.0, support))
            self.shares.append(share)


def vote(witnesses: Sequence[Witness]) -> Voted:
    """The line that the witnesses agree on; the first one that read anything settles ties.

    A witness that read nothing counts against all others in `support`.
    """
    heard = [_bare(witness) for witness in witnesses if witness.text.strip()]
    silent = sum(witness.weight for witness in witnesses if not witness.text.strip())
    whole = sum(bare.weight for bare in heard) + _SILENCE * silent
    if not heard:
        return Voted("")
    pivot = heard[0]
    places = [_placed(pivot, other) for other in heard]
    built = _Built()
    done = 0
    for start, end in _stretches(places):
        _unanimous(built, places, done, start, whole)
        _contested(built, places, start, end, whole)
        done = end
    _unanimous(built, places, done, len(pivot.letters), whole)
    return Voted("".join(built.text), tuple(built.support), tuple(built.shares))


def _bare(witness: Witness) -> _Bare:
    letters: list[str] = []
    scores: list[float] = []
    spaced: set[int] = set()
    for letter, score in zip(witness.text, witness.scores, strict=True):
        if letter.isspace():
            spaced.add(len(letters))
        else:
            letters.append(letter)
            scores.append(score)
    # Above 0, so that readings without any score still are readings.
    weight = witness.weight * max(sum(scores) / len(scores), 0.01) ** _TRUST
    return _Bare("".join(letters), tuple(scores), frozenset(spaced), weight, witness.spaces)


def _placed(pivot: _Bare, other: _Bare) -> _Place:
    at: list[int | None] = [None] * len(pivot.letters)
    for mine, theirs in matches(pivot.letters, other.letters):
        at[mine] = theirs
    return _Place(other, tuple(at))


def _stretches(places: Sequence[_Place]) -> list[tuple[int, int]]:
    """Where along the pivot anyone differs: `(start, end)`, empty for an insertion, apart from one another."""
    spans = sorted(span for place in places for span in _differing(place))
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _differing(place: _Place) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    mine, theirs = 0, 0
    ends = [*((a, b) for a, b in enumerate(place.at) if b is not None), (len(place.at), len(place.witness.letters))]
    for a, b in ends:
        if a > mine or b > theirs:
            spans.append((mine, a))
        mine, theirs = a + 1, b + 1
    return spans


def _unanimous(built: _Built, places: Sequence[_Place], start: int, end: int, whole: float) -> None:
    for at in range(start, end):
        here = [(place.witness, _known(place.at[at])) for place in places]
        letter = places[0].witness.letters[at]
        spaced = any(own in witness.spaced for witness, own in here if witness.spaces)
        won = sum(witness.weight * witness.scores[own] for witness, own in here)
        built.add(letter, frozenset({0}) if spaced else frozenset(), won / whole, 1.0)


def _contested(built: _Built, places: Sequence[_Place], start: int, end: int, whole: float) -> None:
    votes: dict[str, float] = {}
    backers: dict[str, list[tuple[_Bare, int]]] = {}
    for place in places:
        first, last = place.span(start, end)
        letters = place.witness.letters[first:last]
        votes[letters] = votes.get(letters, 0.0) + place.witness.weight * place.witness.mean(first, last)
        backers.setdefault(letters, []).append((place.witness, first))
    before = built.text[-1] if built.text else ""
    after = places[0].witness.letters[end : end + 1]
    weighed = {letters: score * _prior(before, letters, after, votes) for letters, score in votes.items()}
    winner = max(weighed, key=lambda letters: weighed[letters])
    spaced = max((_spaces(witness, first, len(winner)) for witness, first in backers[winner]), key=len)
    given = sum(votes.values())
    built.add(winner, spaced, votes[winner] / whole, votes[winner] / given if given else 0.0)


def _spaces(witness: _Bare, first: int, count: int) -> frozenset[int]:
    if not witness.spaces:
        return frozenset()
    return frozenset(at - first for at in witness.spaced if first <= at < first + count)


def _prior(before: str, letters: str, after: str, votes: dict[str, float]) -> float:
    """More for a reading whose only difference from another one is a point between digits."""
    if not _POINT.search(letters):
        return 1.0
    around = before + letters + after
    between = re.search(r"[0-9][.,][0-9]", around)
    return _LOST_POINT if between and _POINT.sub("", letters) in votes else 1.0


def _known(index: int | None) -> int:
    if index is None:
        raise AssertionError("letters around a contested stretch are matched in every reading")
    return index
