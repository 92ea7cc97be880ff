"""From an examined document to what leaves the device: masked, planned, packed, and held to its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from docferry.document import Document
from docferry.route import Decision, Plan, Reason
from docferry.v1 import envelope_pb2
from docferry_edge.cutting import geometry_of, sharpness
from docferry_edge.examine import Examined
from docferry_edge.pack import Identity, Packed, Pictures, pack
from docferry_edge.policies import Policies
from docferry_edge.prices import Prices, default_prices
from docferry_edge.redact import masked_name, redact
from docferry_edge.route import Mode, Policy, Room, most_bytes, plan

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What becomes of a document.

    Attributes:
        document: As read, masked where the policy asks for it: the edge's own answer.
        plan: What leaves, and why.
        packed: What leaves; None where nothing does.
    """

    document: Document
    plan: Plan
    packed: Packed | None

    @property
    def size(self) -> int:
        """Bytes that leave, the messages around later parts not counted."""
        if self.packed is None:
            return 0
        return len(self.packed.request) + sum(len(part.data) for part in self.packed.parts)


def dispatch(
    identity: Identity,
    examined: Examined,
    policies: Policies,
    pictures: Pictures,
    *,
    room: Room | None = None,
    prices: Prices | None = None,
    effort: envelope_pb2.Effort.ValueType = envelope_pb2.EFFORT_AUTO,
    reasons: Sequence[Reason] = (),
) -> Dispatched:
    """Mask, plan and pack one document.

    Prices are predictions. Where a limit on bytes holds and the packed document passes it, prices are corrected by what
    it really cost and the plan is made anew.

    Args:
        room: What limits by the hour leave; no limit when None.
        prices: What parts cost and are worth; those that ship with the package when None.
        reasons: More reasons for the answer, such as what a reader left out.

    Raises:
        EnvelopeTooLarge: The structure alone does not fit.
    """
    policy = policies.of(examined.assessment.reading.document)
    redaction = redact(examined, policy.redact)
    safe = redaction.examined
    if redaction.blind and policy.mode not in {Mode.OFFLINE, Mode.NO_IMAGES}:
        policy = replace(policy, mode=Mode.NO_IMAGES)
    named = replace(identity, file_name=masked_name(identity.file_name, policy.redact))
    more = (*redaction.reasons, *reasons)
    prices = prices or default_prices()
    for _ in range(_ATTEMPTS):
        chosen = _planned(safe, policy, identity.document_id, room, prices, more)
        document = safe.assessment.reading.document
        if chosen.route.decision is Decision.NOTHING:
            return Dispatched(document, chosen, None)
        made = Dispatched(document, chosen, pack(named, safe, chosen, pictures, effort))
        factor = _over(made, policy, room, prices)
        if factor is None:
            break
        prices = prices.scaled(factor)
    return made


def _planned(
    examined: Examined,
    policy: Policy,
    document_id: str,
    room: Room | None,
    prices: Prices,
    more: tuple[Reason, ...],
) -> Plan:
    sharp = 1.0
    if examined.frame is not None:
        geometry = geometry_of(examined.page, examined.frame)
        sharp = sharpness(geometry) if geometry is not None else 1.0
    chosen = plan(examined.assessment, policy, document_id, room=room, prices=prices, sharpness=sharp)
    return replace(chosen, route=replace(chosen.route, reasons=(*chosen.route.reasons, *more)))


def _over(made: Dispatched, policy: Policy, room: Room | None, prices: Prices) -> float | None:
    """By how much the pictures' prices were too low, if that broke a limit that a new plan could keep."""
    most = most_bytes(policy, room or Room())[0]
    forced = any(reason.code == "OVER_LIMIT" for reason in made.plan.route.reasons)
    if made.size <= most or forced or not (made.plan.crops or made.plan.page or made.plan.overview):
        return None
    document = made.document
    reading = prices.reading(len(document.lines), sum(len(line.text) for line in document.lines))
    return 1.05 * max(1.0, made.size - reading) / max(1.0, made.plan.bytes - reading)
