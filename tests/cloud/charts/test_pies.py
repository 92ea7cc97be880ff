"""Pie charts measured from drawn pictures and known texts."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from benchmarks.generator.charts import ChartShape, draw_chart
from benchmarks.generator.truth import Split
from docferry.vision.images import Pixels
from docferry_cloud.charts import ChartKind, Label
from docferry_cloud.charts.pies import pie

COLOURS = [(180, 119, 31), (14, 127, 255), (44, 160, 44)]
"""BGR."""


def disc(shares: list[float]) -> tuple[Pixels, list[Label]]:
    """A pie, clockwise from the top, with a name beside each piece."""
    image, labels, start = np.full((300, 400, 3), 255, dtype=np.uint8), [], -90.0
    for share, colour, name in zip(shares, COLOURS, ("rye", "oats", "hay"), strict=True):
        end = start + 3.6 * share
        cv2.ellipse(image, (200, 150), (100, 100), 0, start, end, colour, -1)
        angle = math.radians((start + end) / 2)
        x, y = 200 + 125 * math.cos(angle), 150 + 115 * math.sin(angle)
        labels.append(Label(name, (x - 15, y - 6, x + 15, y + 6), 12))
        start = end
    return image, labels


def test_pieces_are_worth_their_share_of_the_turn_and_take_the_name_beside_them() -> None:
    chart = pie(*disc([50, 30, 20]))
    assert chart is not None
    assert (chart.kind, chart.categories) == (ChartKind.PIE, ("rye", "oats", "hay"))
    assert chart.series[0].values == pytest.approx((50, 30, 20), abs=0.7)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_pies_are_measured_though_print_stands_on_them(seed: int) -> None:
    drawn = draw_chart(seed, Split.CALIBRATE, ChartShape.PIE)
    chart = pie(drawn.pixels, [])
    assert chart is not None
    found, truth = sorted(chart.series[0].values), sorted(drawn.truth.series[0][1])
    assert found == pytest.approx(truth, rel=0.05, abs=0.3)


def test_a_picture_without_a_disc_of_several_colours_is_no_pie() -> None:
    image, labels = disc([100, 0, 0])
    assert pie(image, labels) is None
    square = np.full((300, 300, 3), 255, dtype=np.uint8)
    square[50:250, 50:150], square[50:250, 150:250] = COLOURS[0], COLOURS[1]
    assert pie(square, []) is None
    assert pie(np.full((200, 200, 3), 255, dtype=np.uint8), []) is None
