"""Curves as plain SVG: points only, so that nothing has to be drawn by a script."""

from __future__ import annotations

from dataclasses import dataclass

from docferry.v1 import operator_service_pb2 as pb
from docferry_cloud.console.render import moment

WIDTH, HEIGHT = 640, 160
_EDGE = 8


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
        points = " ".join(
            f"{_EDGE + (day.day.seconds - begin) / (end - begin) * (WIDTH - 2 * _EDGE):.1f},"
            f"{HEIGHT - _EDGE - value / highest * (HEIGHT - 2 * _EDGE):.1f}"
            for day, value in zip(days, values, strict=True)
        )
        curves.append(Curve(name, points, max(values), moment(days[0].day)[:10], moment(days[-1].day)[:10]))
    return curves
