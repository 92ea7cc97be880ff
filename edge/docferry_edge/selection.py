"""Which lines to send so that the rest meets the target, and as which crops: pure, and the same on every machine.

What must be sent is stated by a rule as a demand: every line has a weight, and lines must go until the weights of those
that go reach a sum. Of all choices that reach it the cheapest is wanted, a covering knapsack; it is solved greedily by
weight for each byte, and then every line that turns out not to be needed stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from docferry.document import Box
from docferry.rectangles import around
from docferry_edge.assess import LineRisk

MAX_CROPS = 200
"""An envelope takes 256 parts."""

_LOOK_BACK = 12
"""Crops that a crop may be joined with: those before it in reading order."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What must be sent.

    Attributes:
        weights: One for each line; only lines with a weight above 0 are worth sending.
        least: What the weights of the lines that are sent must come to; not above 0 means that none must.
    """

    weights: tuple[float, ...]
    least: float


Rule = Callable[[Sequence[LineRisk], float], Demand]
"""From lines and a target risk to what must be sent."""


def mean_risk(lines: Sequence[LineRisk], target: float) -> Demand:
    """The rule that the mean risk of the lines that stay must not exceed the target.

    Of n lines with risks r those that stay, S, must satisfy sum(r in S) <= target * |S|, so of the excesses r - target
    those that are sent must hold as much as all of them together.
    """
    excess = tuple(line.risk - target for line in lines)
    return Demand(excess, sum(excess))


def above(threshold: float) -> Rule:
    """The rule that every line whose confidence is below a fitted threshold must be sent."""

    def rule(lines: Sequence[LineRisk], target: float) -> Demand:  # noqa: ARG001 - the threshold was fitted for it
        weights = tuple(float(1.0 - line.risk < threshold) for line in lines)
        return Demand(weights, sum(weights))

    return rule


def cover(demand: Demand, costs: Sequence[float], forced: Collection[int]) -> list[int]:
    """Numbers of the lines to send, those of most weight for a byte first.

    Args:
        costs: Bytes of each line alone, above 0.
        forced: Lines that go whatever they cost; they come first.
    """
    chosen = sorted(forced)
    left = demand.least - sum(demand.weights[number] for number in chosen)
    order = sorted(
        (number for number, weight in enumerate(demand.weights) if weight > 0 and number not in forced),
        key=lambda number: (-demand.weights[number] / costs[number], number),
    )
    taken: list[int] = []
    for number in order:
        # A hair of tolerance: sums of floats must not send a line that the target does not ask for.
        if left <= 1e-9:
            break
        taken.append(number)
        left -= demand.weights[number]
    for number in sorted(taken, key=lambda number: (-costs[number], number)):
        if left + demand.weights[number] <= 1e-9:
            taken.remove(number)
            left += demand.weights[number]
    return [*chosen, *taken]


@dataclass(frozen=True, slots=True)
class Piece:
    """A box on a page that is to be sent, and what it costs."""

    page: int
    box: Box
    bytes: float


def joined(pieces: Sequence[Piece], price: Callable[[int, Box], float]) -> list[Piece]:
    """Pieces of the same page joined wherever one crop is no dearer than two, in reading order.

    Args:
        price: Bytes of a box on a page.
    """
    found = sorted(pieces, key=_place)
    while True:
        swept = _swept(found, price)
        if len(swept) == len(found):
            return swept
        found = sorted(swept, key=_place)


def _swept(pieces: Sequence[Piece], price: Callable[[int, Box], float]) -> list[Piece]:
    kept: list[Piece] = []
    for piece in pieces:
        best, saving = -1, 0.0
        for at in range(max(0, len(kept) - _LOOK_BACK), len(kept)):
            if kept[at].page == piece.page:
                gain = kept[at].bytes + piece.bytes - price(piece.page, around((kept[at].box, piece.box)))
                if gain > saving or (best < 0 and gain == 0.0):
                    best, saving = at, gain
        if best < 0:
            kept.append(piece)
        else:
            box = around((kept[best].box, piece.box))
            kept[best] = Piece(piece.page, box, price(piece.page, box))
    return kept


def _place(piece: Piece) -> tuple[int, float, float, float, float]:
    x0, y0, x1, y1 = piece.box
    return piece.page, y0, x0, y1, x1


def with_margin(box: Box) -> Box:
    """A line's box with some paper around it: a detector needs it, and glyphs stick out of tight boxes."""
    x0, y0, x1, y1 = box
    down = 0.5 * (y1 - y0)
    # The sides are relative to different lengths, so the horizontal margin follows the box's own width too.
    across = max(0.01, 0.03 * (x1 - x0))
    return max(0.0, x0 - across), max(0.0, y0 - down), min(1.0, x1 + across), min(1.0, y1 + down)
