"""The ways in which a document's pictures can be sent, each with its predicted bytes and what risk it leaves. Pure.

An offer is a grade (how high a line is in the picture, and at which quality) with the crops or the page it takes. Of
those that meet the target the cheapest is taken, among grades that repair nearly as much as the best one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from docferry.document import Box, Page
from docferry.route import CropPlan, Decision, PicturePlan, Plan
from docferry_edge.assess import Assessment, LineRisk
from docferry_edge.prices import Grade, Prices
from docferry_edge.selection import MAX_CROPS, Piece, Rule, cover, joined, mean_risk, with_margin

SLACK = 0.1
"""Share of what the best grade repairs that a cheaper one may lack."""

_INSIDE = 0.002
"""How far, relative to the page, a line may stick out of a crop that shows it; as the cloud has it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One way to send pictures.

    Attributes:
        crops, page: What is sent; a page stands for the whole document.
        bytes: Predicted, for the pictures alone.
        shown: How many lines the pictures show.
        accepted: Predicted share of wrong lines among those they do not show, 0..1; 0 if they show all.
        remaining: Predicted share of wrong lines of the document once the cloud has read the pictures, 0..1.
    """

    grade: Grade
    bytes: float
    shown: int
    accepted: float
    remaining: float
    crops: tuple[CropPlan, ...] = ()
    page: PicturePlan | None = None


@dataclass(frozen=True, slots=True)
class Market:
    """What offers are made from.

    Attributes:
        prices: What parts cost and are worth.
        rule: What must be sent.
        sharpness: Pixels along a side that the captured frame has for one of the prepared page.
    """

    prices: Prices
    rule: Rule = mean_risk
    sharpness: float = 1.0

    def crop_offers(self, assessment: Assessment, target: float) -> list[Offer]:
        """For every grade, the cheapest crops after which the lines that are left meet the target.

        Empty if that takes more crops than an envelope has room for.
        """
        lines = assessment.lines
        forced = _forced(assessment)
        demand = self.rule(lines, target)
        offers = []
        for cut in self._cuts(assessment, self.sharpness):
            chosen = cover(demand, cut.costs(lines), forced)
            offer = cut.offer(lines, chosen)
            if offer is not None:
                offers.append(offer)
        return offers

    def cut_offers(self, assessment: Assessment, most: float) -> list[Offer]:
        """For every grade, the crops that take most risk away for at most so many bytes; forced lines always go."""
        lines = assessment.lines
        forced = _forced(assessment)
        offers: list[Offer] = []
        for cut in self._cuts(assessment, self.sharpness):
            costs = cut.costs(lines)
            order = sorted(
                (number for number in range(len(lines)) if number not in forced and lines[number].risk > 0),
                key=lambda number: (-lines[number].risk / costs[number], number),
            )
            prefixes = [*forced], order
            made = _most_that_fit(cut, lines, prefixes, most)
            if made is not None:
                offers.append(made)
        return offers

    def page_offers(self, assessment: Assessment) -> list[Offer]:
        """For every grade, the whole page; at full size where nothing was read, for the size of print is unknown."""
        pages = assessment.reading.document.pages
        if not pages:
            return []
        side = max(pages[0].width, pages[0].height)
        lines = assessment.lines
        total = sum(line.risk for line in lines)
        offers = []
        for cut in self._cuts(assessment, 1.0):
            remaining = (1.0 - cut.grade.repair) * total / len(lines) if lines else 1.0 - cut.grade.repair
            pixels = sum(page.width * page.height for page in pages) * cut.scale**2
            picture = PicturePlan(max(1, round(side * cut.scale)), cut.grade.quality)
            bytes_ = self.prices.page(pixels, cut.grade)
            offers.append(Offer(cut.grade, bytes_, len(lines), 0.0, remaining, page=picture))
        return offers

    def overview(self, assessment: Assessment, picture: PicturePlan) -> float:
        """Predicted bytes of an overview."""
        page = assessment.reading.document.pages[0]
        scale = min(1.0, picture.side / max(1, page.width, page.height))
        grade = self.prices.at(scale * (text_height(page) or 20.0), picture.quality)
        return self.prices.page(page.width * page.height * scale**2, grade)

    def _cuts(self, assessment: Assessment, sharpness: float) -> Iterator[_Cut]:
        pages = assessment.reading.document.pages
        heights = [height for page in pages if (height := text_height(page))]
        height = median(heights) if heights else 0.0
        seen: set[tuple[float, int]] = set()
        # Where no print was measured it is taken for as small as can be: full size, as good as there is.
        for grade in self.prices.grades if height else reversed(self.prices.grades):
            most = max(1.0, sharpness)
            scale = round(min(most, grade.text_height / height), 4) if height else 1.0
            # Beyond what the frame has, every grade is the same picture.
            key = (scale, grade.quality)
            if key not in seen:
                seen.add(key)
                reached = self.prices.at(scale * height, grade.quality) if height else grade
                yield _Cut(self.prices, reached, scale, pages)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Cutting a document's pages at one grade."""

    prices: Prices
    grade: Grade
    scale: float
    pages: tuple[Page, ...]

    def price(self, page: int, box: Box) -> float:
        """Bytes of one box on a page."""
        width, height = (box[2] - box[0]) * self.pages[page].width, (box[3] - box[1]) * self.pages[page].height
        return self.prices.crop(width * height * self.scale**2, self.grade)

    def costs(self, lines: Sequence[LineRisk]) -> list[float]:
        """Bytes of each line as a crop of its own."""
        return [self.price(line.page, with_margin(line.line.box)) for line in lines]

    def offer(self, lines: Sequence[LineRisk], chosen: Iterable[int]) -> Offer | None:
        """The crops that show the chosen lines; None if they are too many for an envelope."""
        boxes = [(lines[number].page, with_margin(lines[number].line.box)) for number in chosen]
        pieces = joined([Piece(page, box, self.price(page, box)) for page, box in boxes], self.price)
        if len(pieces) > MAX_CROPS:
            return None
        shown = [
            any(piece.page == line.page and _holds(piece.box, line.line.box) for piece in pieces) for line in lines
        ]
        left = sum(line.risk for line, seen in zip(lines, shown, strict=True) if not seen)
        sent = sum(line.risk for line, seen in zip(lines, shown, strict=True) if seen)
        count = len(lines) - sum(shown)
        return Offer(
            grade=self.grade,
            bytes=sum(piece.bytes for piece in pieces),
            shown=sum(shown),
            accepted=left / count if count else 0.0,
            remaining=(left + (1.0 - self.grade.repair) * sent) / len(lines) if lines else 1.0,
            crops=tuple(CropPlan(piece.page, piece.box, self.scale, self.grade.quality) for piece in pieces),
        )


def cheapest(offers: Sequence[Offer]) -> Offer:
    """The offer with the fewest bytes among those that repair nearly as much as the best one.

    A picture that nobody could read would meet the target too, for its lines are no longer accepted unseen; it would
    only be of no use.
    """
    best = max(offer.grade.repair for offer in offers)
    return min((offer for offer in offers if offer.grade.repair >= (1.0 - SLACK) * best), key=_by_bytes)


def least_risk(offers: Sequence[Offer]) -> Offer:
    """The offer that leaves the least risk, the cheaper one of equals."""
    return min(offers, key=lambda offer: (round(offer.remaining, 6), *_by_bytes(offer)))


def text_height(page: Page) -> float:
    """Median height of a line in pixels of the prepared page; 0 if there is none."""
    if page.quality.text_height > 0:
        return page.quality.text_height
    return median([(line.box[3] - line.box[1]) * page.height for line in page.lines]) if page.lines else 0.0


def _by_bytes(offer: Offer) -> tuple[float, float, int]:
    return offer.bytes, -offer.grade.text_height, offer.grade.quality


def _forced(assessment: Assessment) -> tuple[int, ...]:
    must = assessment.must_see
    return tuple(number for number, line in enumerate(assessment.lines) if (line.page, line.line.id) in must)


def _most_that_fit(
    cut: _Cut, lines: Sequence[LineRisk], order: tuple[Sequence[int], Sequence[int]], most: float
) -> Offer | None:
    """The longest start of the order whose crops cost at most so much; its first part goes whatever it costs."""
    forced, others = order

    def made(count: int) -> Offer | None:
        return cut.offer(lines, [*forced, *others[:count]])

    def cost(count: int) -> float:
        offer = made(count)
        return offer.bytes if offer is not None else math.inf

    # Joining makes the cost a little less than rising; what is found fits all the same.
    count = bisect_right(range(len(others) + 1), most, key=cost) - 1
    while count > 0 and cost(count) > most:
        count -= 1
    return made(max(0, count))


def _holds(outer: Box, box: Box) -> bool:
    return (
        box[0] >= outer[0] - _INSIDE
        and box[1] >= outer[1] - _INSIDE
        and box[2] <= outer[2] + _INSIDE
        and box[3] <= outer[3] + _INSIDE
    )


def accepted(assessment: Assessment, plan: Plan) -> tuple[str, ...]:
    """Ids of the lines of a one-page document that a plan leaves as the edge read them."""
    if plan.route.decision is Decision.PAGE:
        return ()
    return tuple(
        line.line.id
        for line in assessment.lines
        if not any(crop.page == line.page and _holds(crop.box, line.line.box) for crop in plan.crops)
    )
