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
class PicturePlan:
    """A whole page to send: its long side in pixels (never enlarged to that) and its WebP quality, 1..100."""

    side: int
    quality: int


@dataclass(frozen=True, slots=True)
class CropPlan:
    """One piece of a page to send.

    Attributes:
        page: Page number, from 0.
        box: Relative to the page.
        scale: Pixels along a side for one of the prepared page; above 1 the captured frame must have them.
        quality: WebP quality, 1..100; 0 leaves it to whoever packs.
    """

    page: int
    box: Box
    scale: float = 1.0
    quality: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to pack: the route, the crops it asks for, and how large overview and page are where it holds one.

    Attributes:
        overview: How large it is; None where none goes, except that with Decision.OVERVIEW whoever packs says.
        page: How large the page is; None leaves that to whoever packs.
        bytes: What all of it is predicted to cost on the wire.
        remaining: Predicted share of wrong lines in the finished answer, after the cloud has read the pictures, 0..1.
    """

    route: Route
    crops: tuple[CropPlan, ...] = ()
    overview: PicturePlan | None = None
    page: PicturePlan | None = None
    bytes: int = 0
    remaining: float = 1.0
