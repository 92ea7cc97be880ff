"""What leaves the device: the cheapest parts whose predicted risk meets the target, and why.

The target speaks of the lines that are accepted as the edge read them: at most this share of them may be wrong. In
order, and each step with its reason: a policy may forbid that anything, or any picture, leaves; the fail-safe rules
send the page, whatever it costs; the audit slice goes up whole; and then the cheapest of structure alone, crops of the
lines in doubt, and the page, is taken. Limits on bytes, time and rate cut that plan, and then it says what remains at
risk.
"""

from __future__ import annotations

import enum
import hashlib
import math
from dataclasses import dataclass, field, replace

from docferry.fields.sensitive import Sensitive
from docferry.route import Decision, PicturePlan, Plan, Reason, Route
from docferry_edge.assess import Assessment
from docferry_edge.offers import Market, Offer, cheapest, least_risk
from docferry_edge.prices import Prices, default_prices
from docferry_edge.selection import Rule, mean_risk


class Mode(enum.StrEnum):
    """What may leave the device at all, from most to least."""

    NORMAL = "normal"
    METERED = "metered"
    NO_IMAGES = "no_images"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator asks for.

    Attributes:
        target_risk: Of the lines accepted as the edge read them at most this share may be wrong, 0..1.
        audit_share: Share of documents that go up whole so that drift is seen, 0..1; in mode NORMAL only.
        mode: METERED holds every document to `metered_bytes`; NO_IMAGES sends the structure alone; OFFLINE nothing.
        always_overview: Whether an overview goes along even where the target is met without it.
        max_bytes: Most bytes of a document's request, 0 for no limit.
        metered_bytes: The same on a metered link.
        deadline_s, link_kbps: A document may take so long on a link that carries so many kilobits a second; 0 for no
            limit.
        overview: How large an overview is.
        redact: What is masked in text and pictures before anything leaves; see `docferry_edge.redact`.
    """

    target_risk: float = 0.02
    audit_share: float = 0.01
    mode: Mode = Mode.NORMAL
    always_overview: bool = False
    max_bytes: int = 0
    metered_bytes: int = 8_000
    deadline_s: float = 0.0
    link_kbps: float = 0.0
    overview: PicturePlan = field(default_factory=lambda: PicturePlan(768, 40))
    redact: frozenset[Sensitive] = frozenset()


@dataclass(frozen=True, slots=True)
class Room:
    """What limits by the hour leave at this moment: bytes, and whole pages; None for no limit."""

    bytes: int | None = None
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class _Limits:
    """Most bytes of pictures (infinite for no limit), and where that comes from; whether a page may go by choice."""

    bytes: float
    why: str
    pages: bool


def plan(
    assessment: Assessment,
    policy: Policy,
    document_id: str,
    *,
    room: Room | None = None,
    prices: Prices | None = None,
    rule: Rule = mean_risk,
    sharpness: float = 1.0,
) -> Plan:
    """The route for one document, with its reasons. The same arguments give the same plan on every machine.

    Args:
        assessment: What the edge thinks of its reading.
        policy: What the operator asks for.
        document_id: Puts the document into the audit slice or not.
        room: What limits by the hour leave; no limit when None.
        prices: What parts cost and are worth; those that ship with the package when None.
        rule: Which lines may stay unseen.
        sharpness: Pixels along a side that the captured frame has for one of the prepared page.
    """
    prices = prices or default_prices()
    document = assessment.reading.document
    reading = prices.reading(len(document.lines), sum(len(line.text) for line in document.lines))
    if policy.mode is Mode.OFFLINE:
        return _without_pictures(assessment, policy, Decision.NOTHING, _unsent(assessment, policy), 0.0)
    if policy.mode is Mode.NO_IMAGES:
        return _without_pictures(assessment, policy, Decision.STRUCTURE, _unsent(assessment, policy), reading)
    market = Market(prices, rule, sharpness)
    limits = _limits(policy, room or Room(), reading)
    if assessment.page_reasons:
        return _fail_safe(assessment, policy, market, limits, reading)
    if policy.mode is Mode.NORMAL and is_audited(document_id, policy.audit_share):
        page = cheapest(market.page_offers(assessment))
        if limits.pages and page.bytes <= limits.bytes:
            reason = Reason("AUDIT", "in the audit slice: sent whole, whatever its risk", policy.audit_share)
            return _of(page, policy, (reason,), reading)
    return _cheapest_plan(assessment, policy, market, limits, reading)


def is_audited(document_id: str, share: float) -> bool:
    """Whether a document is in the audit slice: the same answer for the same id, on every machine."""
    first = int.from_bytes(hashlib.sha256(document_id.encode()).digest()[:8], "big")
    return first < share * 2**64


def most_bytes(policy: Policy, room: Room) -> tuple[float, str]:
    """The tightest limit on a request's bytes and where it comes from; infinite without one."""
    allowed: list[tuple[float, str]] = [(math.inf, "")]
    if policy.max_bytes:
        allowed.append((policy.max_bytes, "the limit for a document"))
    if policy.mode is Mode.METERED:
        allowed.append((policy.metered_bytes, "the limit on a metered link"))
    if policy.deadline_s and policy.link_kbps:
        carried = policy.deadline_s * policy.link_kbps * 125
        allowed.append((carried, f"what the link carries in {policy.deadline_s:g} s"))
    if room.bytes is not None:
        allowed.append((room.bytes, "what is left of this hour's bytes"))
    return min(allowed)


def _limits(policy: Policy, room: Room, reading: float) -> _Limits:
    """What the structure leaves of the tightest limit."""
    most, why = most_bytes(policy, room)
    return _Limits(max(0.0, most - reading), why, room.pages is None or room.pages > 0)


def _fail_safe(assessment: Assessment, policy: Policy, market: Market, limits: _Limits, reading: float) -> Plan:
    """The page goes up: within the limits if one of the grades allows it, else the cheapest, and the plan says so."""
    offers = market.page_offers(assessment)
    fitting = [offer for offer in offers if offer.bytes <= limits.bytes]
    if fitting and limits.pages:
        return _of(cheapest(fitting), policy, assessment.page_reasons, reading)
    least = min(offers, key=lambda offer: offer.bytes)
    over = f"about {least.bytes:.0f} bytes pass {limits.why}" if not fitting else "this hour's pages are used up"
    reason = Reason("OVER_LIMIT", f"{over}; what the edge cannot vouch for goes up all the same", round(least.bytes))
    return _of(least, policy, (*assessment.page_reasons, reason), reading)


def _cheapest_plan(assessment: Assessment, policy: Policy, market: Market, limits: _Limits, reading: float) -> Plan:
    if not assessment.must_see and market.rule(assessment.lines, policy.target_risk).least <= 0:
        reason = Reason("RISK_MET", "the predicted risk meets the target without pictures", assessment.risk)
        plain = Plan(
            Route(Decision.STRUCTURE, (reason,), assessment.risk, policy.target_risk),
            bytes=round(reading),
            remaining=assessment.risk,
        )
        return _with_overview(plain, assessment, policy, market, limits.bytes) if policy.always_overview else plain
    crops = market.crop_offers(assessment, policy.target_risk)
    pages = market.page_offers(assessment) if limits.pages else []
    options = [cheapest(offers) for offers in (crops, pages) if offers]
    fitting = [offer for offer in options if offer.bytes <= limits.bytes]
    doubt = _doubt(assessment)
    if not fitting:
        return _cut(assessment, policy, market, limits, reading, (*doubt, *assessment.line_reasons))
    best = min(fitting, key=lambda offer: offer.bytes)
    others = [offer for offer in options if offer is not best]
    made = _of(best, policy, (*assessment.line_reasons, *doubt, _why(best, others)), reading)
    if policy.always_overview and made.page is None:
        return _with_overview(made, assessment, policy, market, limits.bytes - best.bytes)
    return made


def _cut(
    assessment: Assessment,
    policy: Policy,
    market: Market,
    limits: _Limits,
    reading: float,
    reasons: tuple[Reason, ...],
) -> Plan:
    """The least risk for the bytes that are allowed; lines that must be seen go whatever the limit."""
    pages = [offer for offer in market.page_offers(assessment) if offer.bytes <= limits.bytes] if limits.pages else []
    offers = [*market.cut_offers(assessment, limits.bytes), *pages]
    best = least_risk(offers)
    detail = (
        f"{limits.bytes:.0f} bytes for pictures ({limits.why}) are too few: of the "
        f"{len(assessment.lines) - best.shown} lines not sent {best.accepted:.4f} may be wrong"
    )
    made = _of(best, policy, (Reason("LIMIT", detail, round(best.accepted, 5)), *reasons), reading)
    # The target is not met, so the overview goes along as far as the limit lets it.
    return (
        made if made.page is not None else _with_overview(made, assessment, policy, market, limits.bytes - best.bytes)
    )


def _of(offer: Offer, policy: Policy, reasons: tuple[Reason, ...], reading: float) -> Plan:
    decision = Decision.PAGE if offer.page is not None else Decision.CROPS if offer.crops else Decision.STRUCTURE
    return Plan(
        route=Route(decision, reasons, offer.accepted, policy.target_risk),
        crops=offer.crops,
        page=offer.page,
        bytes=round(reading + offer.bytes),
        remaining=offer.remaining,
    )


def _with_overview(made: Plan, assessment: Assessment, policy: Policy, market: Market, left: float) -> Plan:
    cost = market.overview(assessment, policy.overview)
    if cost > left:
        return made
    decision = Decision.OVERVIEW if made.route.decision is Decision.STRUCTURE else made.route.decision
    return replace(
        made, route=replace(made.route, decision=decision), overview=policy.overview, bytes=made.bytes + round(cost)
    )


def _without_pictures(
    assessment: Assessment, policy: Policy, decision: Decision, reasons: tuple[Reason, ...], reading: float
) -> Plan:
    route = Route(decision, reasons, assessment.risk, policy.target_risk)
    return Plan(route, bytes=round(reading), remaining=assessment.risk)


def _unsent(assessment: Assessment, policy: Policy) -> tuple[Reason, ...]:
    """Why pictures stay here, and what that leaves open."""
    what = "nothing leaves the device" if policy.mode is Mode.OFFLINE else "no picture ever leaves the device"
    open_ = (*assessment.page_reasons, *assessment.line_reasons)
    met = not open_ and assessment.risk <= policy.target_risk
    detail = "the target is met" if met else f"the target is not met: {assessment.risk:.4f} of the lines may be wrong"
    return (Reason(policy.mode.upper(), f"{what} ({policy.mode} policy); {detail}", assessment.risk), *open_)


def _doubt(assessment: Assessment) -> tuple[Reason, ...]:
    detail = f"of {len(assessment.lines)} lines {assessment.risk:.4f} may be wrong"
    return (Reason("LINE_RISK", detail, round(assessment.risk, 5)),)


def _why(best: Offer, others: list[Offer]) -> Reason:
    """What is sent, and what it was cheaper than."""
    sent = "the page" if best.page is not None else f"{len(best.crops)} crops of {best.shown} lines"
    how = f"{best.grade.text_height:.0f} px a line, quality {best.grade.quality}"
    other = "".join(
        f"; {'the page' if offer.page is not None else f'{len(offer.crops)} crops'} would cost {offer.bytes:.0f}"
        for offer in others
    )
    left = f"of the lines not sent {best.accepted:.4f} may be wrong" if best.page is None else "no line stays unseen"
    code = "CHEAPEST_CROPS" if best.page is None else "CHEAPEST_PAGE"
    return Reason(code, f"{sent} at {how}: about {best.bytes:.0f} bytes{other}; {left}", round(best.bytes))
