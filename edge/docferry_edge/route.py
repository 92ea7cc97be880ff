"""What leaves the device: the fewest crops that leave the target met, and more when in doubt.

The target speaks of the lines that are accepted as the edge read them: at most this share of them may be wrong. The
riskiest lines are therefore sent as crops, to be read again, until the mean risk of the rest meets it. A first plan:
the overview always goes along; when it can stay at home is for measured calibration to say.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from docferry.document import Box
from docferry.route import CropPlan, Decision, Plan, Reason, Route
from docferry_edge.assess import Assessment, LineRisk


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator asks for.

    Attributes:
        target_risk: Of the lines accepted as the edge read them at most this share may be wrong, 0..1.
        audit_share: Share of documents that go up whole so that drift is seen, 0..1.
        crop_lines: Most lines to crop; when the target needs more, the page goes up instead.
    """

    target_risk: float = 0.02
    audit_share: float = 0.01
    crop_lines: int = 24


def plan(assessment: Assessment, policy: Policy, document_id: str) -> Plan:
    """The route for one document, with its reasons."""
    if assessment.page_reasons:
        return _whole_page(assessment.page_reasons, policy)
    if is_audited(document_id, policy.audit_share):
        detail = "in the audit slice: sent whole, whatever its risk"
        return _whole_page((Reason("AUDIT", detail, policy.audit_share),), policy)
    chosen, remaining = _choose(assessment, policy.target_risk)
    if not chosen:
        reason = Reason("RISK_MET", "the predicted risk meets the target without crops", assessment.risk)
        return Plan(Route(Decision.OVERVIEW, (reason,), assessment.risk, policy.target_risk))
    if len(chosen) > policy.crop_lines:
        detail = f"{len(chosen)} lines are in doubt, more than {policy.crop_lines}"
        return _whole_page((Reason("LINE_RISK", detail, assessment.risk), *assessment.line_reasons), policy)
    reason = Reason("LINE_RISK", f"{len(chosen)} lines are in doubt", assessment.risk)
    return Plan(
        Route(Decision.CROPS, (*assessment.line_reasons, reason), remaining, policy.target_risk),
        crops=_crops(chosen),
    )


def is_audited(document_id: str, share: float) -> bool:
    """Whether a document is in the audit slice: the same answer for the same id, on every machine."""
    first = int.from_bytes(hashlib.sha256(document_id.encode()).digest()[:8], "big")
    return first < share * 2**64


def _whole_page(reasons: tuple[Reason, ...], policy: Policy) -> Plan:
    # The cloud reads everything again: nothing is accepted as the edge read it.
    return Plan(Route(Decision.PAGE, reasons, 0.0, policy.target_risk))


def _choose(assessment: Assessment, target: float) -> tuple[list[LineRisk], float]:
    """Lines to send: those that must be seen, then the riskiest; with the mean risk of the lines that are left."""
    forced = [line for line in assessment.lines if (line.page, line.line.id) in assessment.must_see]
    left = [line for line in assessment.lines if (line.page, line.line.id) not in assessment.must_see]
    risk = sum(line.risk for line in left)
    taken = 0
    while taken < len(left) and risk > target * (len(left) - taken):
        risk -= left[taken].risk
        taken += 1
    rest = len(left) - taken
    return [*forced, *left[:taken]], max(0.0, risk / rest) if rest else 0.0


def _crops(chosen: list[LineRisk]) -> tuple[CropPlan, ...]:
    """Boxes with a margin around the lines; those that touch become one."""
    crops: list[CropPlan] = []
    for page in sorted({doubt.page for doubt in chosen}):
        boxes = sorted(_margin(doubt.line.box) for doubt in chosen if doubt.page == page)
        crops += [CropPlan(page, box) for box in _merged(boxes)]
    return tuple(sorted(crops, key=lambda crop: (crop.page, crop.box[1], crop.box[0])))


def _margin(box: Box) -> Box:
    x0, y0, x1, y1 = box
    # Half a line's height around it: the detector needs some paper, and glyphs stick out of tight boxes. The
    # sides are relative to different lengths, so the horizontal margin follows the box's own width too.
    dy = 0.5 * (y1 - y0)
    dx = max(0.01, 0.03 * (x1 - x0))
    return max(0.0, x0 - dx), max(0.0, y0 - dy), min(1.0, x1 + dx), min(1.0, y1 + dy)


def _merged(boxes: list[Box]) -> list[Box]:
    merged: list[Box] = []
    for box in boxes:
        current = box
        while touching := next((other for other in merged if _touch(current, other)), None):
            merged.remove(touching)
            current = (
                min(current[0], touching[0]),
                min(current[1], touching[1]),
                max(current[2], touching[2]),
                max(current[3], touching[3]),
            )
        merged.append(current)
    return merged


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
