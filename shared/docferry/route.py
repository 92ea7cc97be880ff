"""The plan: what leaves the device, and why."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from docferry.document import Box


class Decision(enum.StrEnum):
    """What leaves the device, from least to most."""

    NOTHING = "nothing"
    STRUCTURE = "structure"
    OVERVIEW = "overview"
    CROPS = "crops"
    PAGE = "page"
    ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a route was taken: an UPPER_SNAKE_CASE code, plain words, and the number behind them if there is one."""

    code: str
    detail: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """The decision that travels with every answer.

    Attributes:
        risk: Predicted share of wrong lines among those accepted as the edge read them, 0..1.
        target_risk: The stated target, 0..1.
    """

    decision: Decision
    reasons: tuple[Reason, ...] = ()
    risk: float = 1.0
    target_risk: float = 0.0


@dataclass(frozen=True, slots=True)
class CropPlan:
    """One piece of a page to send: its page number (from 0) and its relative box."""

    page: int
    box: Box


@dataclass(frozen=True, slots=True)
class Plan:
    """What to pack: the route and the crops it asks for."""

    route: Route
    crops: tuple[CropPlan, ...] = ()
