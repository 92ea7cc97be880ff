"""Charts measured from drawn pictures and known texts: no text reader is needed to judge the geometry."""

from __future__ import annotations

from itertools import pairwise

import cv2
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from docferry.vision.images import Pixels
from docferry_cloud.charts import Chart, ChartKind, Label, Series, chart_grid, measured
from docferry_cloud.charts.axes import number_of, value_axis

WIDE, HIGH, GROUND, LEFT = 400, 300, 250, 60
BLUE, ORANGE, WHITE = (180, 119, 31), (14, 127, 255), (255, 255, 255)
"""BGR."""


def label(text: str, x: float, y: float, size: float = 12) -> Label:
    half = len(text) * size / 4
    return Label(text, (x - half, y - size / 2, x + half, y + size / 2), size)


def axis_labels(step: float = 20) -> list[Label]:
    """0 at the ground, then a number every 40 pixels."""
    return [label(f"{step * number:g}", 40, GROUND - 40 * number) for number in range(6)]


def sheet() -> Pixels:
    image = np.full((HIGH, WIDE, 3), 255, dtype=np.uint8)
    cv2.line(image, (LEFT, 20), (LEFT, GROUND), (0, 0, 0), 1)
    cv2.line(image, (LEFT, GROUND), (WIDE - 10, GROUND), (0, 0, 0), 1)
    return image


def names(*texts: str) -> list[Label]:
    return [label(text, 100 + 80 * number, GROUND + 14) for number, text in enumerate(texts)]


def bar(image: Pixels, x: int, top: float, colour: tuple[int, int, int], *, foot: float = 0, wide: int = 20) -> None:
    """A bar from `foot` to `top`, in the axis's values."""
    upper, lower = GROUND - round(2 * top), GROUND - round(2 * foot) - 1
    cv2.rectangle(image, (x, upper), (x + wide - 1, lower), colour, -1)


def test_bars_side_by_side_are_measured_and_named_by_the_legend() -> None:
    image = sheet()
    for number, (blue, orange) in enumerate([(30, 60), (75, 15), (50, 90)]):
        bar(image, 80 + 80 * number, blue, BLUE)
        bar(image, 100 + 80 * number, orange, ORANGE)
    cv2.rectangle(image, (300, 30), (320, 38), BLUE, -1)
    cv2.rectangle(image, (300, 50), (320, 58), ORANGE, -1)
    legend = [label("hay", 345, 34), label("oats", 345, 54)]
    chart = measured(image, [*axis_labels(), *names("May", "June", "July"), *legend])
    assert chart is not None
    assert (chart.kind, chart.categories) == (ChartKind.BARS, ("May", "June", "July"))
    hay, oats = chart.series
    assert (hay.name, oats.name) == ("hay", "oats")
    assert hay.values == pytest.approx((30, 75, 50), abs=1)
    assert oats.values == pytest.approx((60, 15, 90), abs=1)


def test_bars_upon_bars_are_worth_their_own_height() -> None:
    image = sheet()
    for number, (blue, orange) in enumerate([(30, 40), (50, 20)]):
        bar(image, 90 + 80 * number, blue, BLUE)
        bar(image, 90 + 80 * number, blue + orange, ORANGE, foot=blue)
    chart = measured(image, [*axis_labels(), *names("2001", "2002")])
    assert chart is not None
    assert [series.values for series in chart.series] == [
        pytest.approx((30, 50), abs=1),
        pytest.approx((40, 20), abs=1),
    ]


def test_lying_bars_are_read_from_the_axis_at_the_bottom() -> None:
    image = np.full((HIGH, WIDE, 3), 255, dtype=np.uint8)
    for number, value in enumerate((30, 80, 55)):
        y = 200 - 60 * number
        cv2.rectangle(image, (LEFT, y), (LEFT + 3 * value - 1, y + 24), BLUE, -1)
    ticks = [label(str(20 * number), LEFT + 60 * number, GROUND + 12) for number in range(6)]
    sides = [label(text, 30, 212 - 60 * number) for number, text in enumerate(("ale", "beer", "cider"))]
    chart = measured(image, [*ticks, *sides])
    assert chart is not None
    assert chart.categories == ("ale", "beer", "cider")
    assert chart.series[0].values == pytest.approx((30, 80, 55), abs=1)


def test_lines_are_measured_where_they_bend_though_others_cross_them() -> None:
    image = sheet()
    drawn = {BLUE: (20, 80, 40), ORANGE: (70, 30, 90)}
    for colour, values in drawn.items():
        places = [(100 + 80 * number, GROUND - 2 * value) for number, value in enumerate(values)]
        for one, other in pairwise(places):
            cv2.line(image, one, other, colour, 2, cv2.LINE_AA)
    chart = measured(image, [*axis_labels(), *names("1999", "2000", "2001")])
    assert chart is not None
    assert (chart.kind, chart.categories) == (ChartKind.LINES, ("1999", "2000", "2001"))
    found = sorted(series.values for series in chart.series)
    assert found[0] == pytest.approx((20, 80, 40), abs=1.5)
    assert found[1] == pytest.approx((70, 30, 90), abs=1.5)


def test_a_picture_without_an_axis_of_values_is_no_chart() -> None:
    image = sheet()
    bar(image, 80, 50, BLUE)
    bar(image, 160, 70, BLUE)
    assert measured(image, names("May", "June")) is None
    assert measured(sheet(), axis_labels()) is None


def test_a_number_that_was_misread_does_not_bend_the_axis() -> None:
    labels = axis_labels(0.5)
    labels[3] = label("15", labels[3].x, labels[3].y)
    axis = value_axis(labels)
    assert axis is not None
    assert axis.value(GROUND - 80) == pytest.approx(1.0)
    assert len(axis.labels) == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,000", 1000),
        ("1.5", 1.5),
        ("05", 0.5),
        ("-20", -20),
        ("−20", -20),
        ("40 %", 40),
        ("$2.5M", 2.5e6),
        ("7k", 7000),
        ("May", None),
        ("1.2.3", None),
    ],
)
def test_ticks_are_numbers_as_people_print_them(text: str, value: float | None) -> None:
    assert number_of(text) == value


def test_a_chart_becomes_a_table_with_no_more_digits_than_a_pixel_tells() -> None:
    chart = Chart(ChartKind.BARS, ("May", "June"), (Series("hay", (30.26, None)), Series("", (-0.01, 7.0))), 0.4)
    assert chart_grid(chart).texts() == [["", "hay", "Series 2"], ["May", "30.3", "0"], ["June", "", "7.0"]]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.text(max_size=6), st.floats(-50, 450), st.floats(-50, 350), st.floats(0.5, 40)),
        max_size=12,
    )
)
def test_any_texts_give_a_chart_or_none(texts: list[tuple[str, float, float, float]]) -> None:
    image = sheet()
    bar(image, 80, 50, BLUE)
    bar(image, 160, 70, ORANGE)
    labels = [Label(text, (x, y, x + 30, y + size), size) for text, x, y, size in texts]
    chart = measured(image, [*axis_labels(), *labels])
    assert chart is None or all(len(series.values) == len(chart.categories) for series in chart.series)
