"""Curves as plain SVG: points only, so that nothing has to be drawn by a script."""

from __future__ import annotations

from dataclasses import dataclass

from docferry.v1 import operator_service_pb2 as pb
from docferry_cloud.console.render import moment

WIDTH, HEIGHT = 640, 160
_EDGE = 8
_ROWS = 8
ENOUGH = 30
"""Lines that people looked at, from which on a curve says anything."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line over the days.

    Attributes:
        name: Class and words.
        points: As SVG writes them, within `WIDTH` times `HEIGHT`.
        highest: What its highest point stands for.
    """

    name: str
    points: str
    highest: float
    first_day: str
    last_day: str


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """Risk against coverage: what was found and what had been expected, both as SVG writes points.

    Attributes:
        highest: Risk, 0..1, that the upper edge stands for.
        rows: Coverage, risk found and risk expected at some of the points, for those who read tables.
    """

    found: str
    expected: str
    highest: float
    rows: tuple[tuple[float, float, float], ...]


def risk_curve(figures: pb.GetFiguresResponse) -> RiskCurve | None:
    """The curve from people's corrections; None while there are too few of them."""
    points = list(figures.risk_curve)
    if figures.reviewed_lines < ENOUGH or len(points) < 2:
        return None
    highest = max(max(point.risk, point.predicted) for point in points) or 1.0
    found = _points([(point.coverage, point.risk / highest) for point in points])
    expected = _points([(point.coverage, point.predicted / highest) for point in points])
    shown = points[:: max(1, len(points) // _ROWS)]
    shown = shown if shown[-1] is points[-1] else [*shown, points[-1]]
    return RiskCurve(found, expected, highest, tuple((each.coverage, each.risk, each.predicted) for each in shown))


def _points(shares: list[tuple[float, float]]) -> str:
    """Shares of width and height, from the lower left corner, as SVG writes points."""
    return " ".join(
        f"{_EDGE + across * (WIDTH - 2 * _EDGE):.1f},{HEIGHT - _EDGE - up * (HEIGHT - 2 * _EDGE):.1f}"
        for across, up in shares
    )


def day_lines(figures: pb.GetFiguresResponse) -> list[Curve]:
    """How predicted risk, the share of documents that sent pixels, and doubts move: drift shows here."""
    days = list(figures.days)
    if len(days) < 2:
        return []
    begin, end = days[0].day.seconds, days[-1].day.seconds
    curves = []
    for name, values in (
        ("risk", [day.risk for day in days]),
        ("escalated", [day.escalated for day in days]),
        ("doubts", [day.doubts for day in days]),
    ):
        highest = max(values) or 1.0
        when = [(day.day.seconds - begin) / (end - begin) for day in days]
        points = _points([(share, value / highest) for share, value in zip(when, values, strict=True)])
        curves.append(Curve(name, points, max(values), moment(days[0].day)[:10], moment(days[-1].day)[:10]))
    return curves
