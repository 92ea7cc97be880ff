"""Bar, line and pie charts drawn by matplotlib, with the values that they show; the same seed, the same chart."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.generator.drawing import Pixels
from benchmarks.generator.figures import FACES, pixels_of, through_jpeg
from benchmarks.generator.truth import Language, Split
from benchmarks.generator.words import words


class ChartShape(Enum):
    """What a chart draws its values as."""

    BARS = "bars"
    LYING_BARS = "lying bars"
    STACKED_BARS = "stacked bars"
    LINES = "lines"
    PIE = "pie"


@dataclass(frozen=True, slots=True)
class ChartTruth:
    """What a chart shows.

    Attributes:
        categories: Along the axis of names, from its origin on.
        series: Names and values, one for each category; the name is empty where there is no legend.
    """

    shape: ChartShape
    categories: tuple[str, ...]
    series: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A chart's picture and truth."""

    pixels: Pixels
    truth: ChartTruth


_PALETTES = {
    Split.TRAIN: ("tab10", "Set1", "Dark2"),
    Split.CALIBRATE: ("Set1", "Paired", "tab10"),
    Split.JUDGE: ("tab10", "Set2", "Dark2", "viridis"),
}


def draw_chart(seed: int, split: Split, shape: ChartShape | None = None) -> DrawnChart:
    """One chart.

    Args:
        shape: None lets the seed choose one with an axis of values.
    """
    rng = random.Random(f"chart/{split.value}/{seed}")
    shape = shape or rng.choice([one for one in ChartShape if one is not ChartShape.PIE])
    truth = _truth(rng, shape, split)
    with mpl.rc_context({"font.family": rng.choice(FACES[split]), "font.size": rng.uniform(8.5, 12)}):
        figure = Figure(figsize=(rng.uniform(4.5, 7.5), rng.uniform(3, 5)), dpi=rng.choice((90, 100, 120, 150)))
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        (_draw_pie if shape is ChartShape.PIE else _draw)(rng, axes, truth, split)
        figure.tight_layout()
        pixels = pixels_of(canvas)
    return DrawnChart(through_jpeg(pixels, rng.choice((0, 95, 85, 75))), truth)


def _truth(rng: random.Random, shape: ChartShape, split: Split) -> ChartTruth:
    table = words(split, Language.EN)
    count = rng.randint(3, 8)
    if shape is ChartShape.PIE:
        names = tuple(dict.fromkeys(word.split()[0] for word in rng.sample(table["nouns"], min(count, 6))))
        parts = [rng.uniform(0.3, 2) for _ in names]
        shares = tuple(round(100 * part / sum(parts), 1) for part in parts)
        return ChartTruth(shape, names, (("%", shares),))
    if shape is ChartShape.LINES or rng.random() < 0.4:
        first = rng.randint(1960, 2015)
        categories = tuple(str(first + number) for number in range(count))
    else:
        categories = tuple(word.split()[0] for word in rng.sample(table["nouns"], count))
    if len(set(categories)) < count:
        categories = tuple(f"{word} {number}" for number, word in enumerate(categories, 1))
    several = 1 if shape is ChartShape.LYING_BARS else rng.choice((1, 2, 3))
    several = max(2, several) if shape is ChartShape.STACKED_BARS else several
    names = tuple(word.split()[0] for word in rng.sample(table["nouns"], several)) if several > 1 else ("",)
    scale = rng.choice((1, 10, 100, 1000, 50_000))
    series = tuple(
        (name, tuple(round(scale * rng.uniform(0.15, 1), 2 if scale < 100 else 0) for _ in categories))
        for name in names
    )
    return ChartTruth(shape, categories, series)


def _draw(rng: random.Random, axes: Axes, truth: ChartTruth, split: Split) -> None:
    lying = truth.shape is ChartShape.LYING_BARS
    values, names = (axes.xaxis, axes.yaxis) if lying else (axes.yaxis, axes.xaxis)
    if rng.random() < 0.6:
        axes.grid(visible=True, axis="x" if lying else "y", alpha=rng.uniform(0.3, 1))
        axes.set_axisbelow(True)
    if rng.random() < 0.5:
        axes.spines[["top", "right"]].set_visible(False)
    (_draw_lines if truth.shape is ChartShape.LINES else _draw_bars)(rng, axes, truth, _colours(rng, truth, split))
    names.set_ticks(np.arange(len(truth.categories)), truth.categories)
    if max(max(drawn) for _, drawn in truth.series) >= 1000:
        style = rng.choice(("{:,.0f}", "{:.0f}"))
        values.set_major_formatter(FuncFormatter(lambda value, _: style.format(value)))
    if rng.random() < 0.7:
        axes.set_title(" ".join(truth.categories[:2]) if rng.random() < 0.2 else "Development of the harvest")
    if rng.random() < 0.5:
        values.set_label_text(rng.choice(("Thousand tons", "Share in %", "Count")))
    if len(truth.series) > 1:
        axes.legend(frameon=rng.random() < 0.6, loc="best")


def _colours(rng: random.Random, truth: ChartTruth, split: Split) -> list[tuple[float, ...]]:
    palette = mpl.colormaps[rng.choice(_PALETTES[split])]
    start = rng.randint(0, 4)
    # A palette of few colours is counted through, a shade of many is taken at intervals.
    places = (start + number if palette.N < 64 else 0.15 + 0.3 * number for number in range(len(truth.series)))
    return [palette(place) for place in places]


def _draw_pie(rng: random.Random, axes: Axes, truth: ChartTruth, split: Split) -> None:
    palette = mpl.colormaps[rng.choice(_PALETTES[split])]
    count = len(truth.categories)
    places = range(count) if palette.N < 64 else np.linspace(0.05, 0.95, count).tolist()
    beside, shown = rng.random() < 0.5, rng.random() < 0.5
    axes.pie(
        truth.series[0][1],
        labels=truth.categories if beside else None,
        colors=[palette(place) for place in places],
        startangle=rng.uniform(0, 360),
        autopct="%.0f%%" if shown else None,
        wedgeprops={"edgecolor": "white"} if rng.random() < 0.5 else {},
    )
    if not beside:
        axes.legend(truth.categories, loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_lines(rng: random.Random, axes: Axes, truth: ChartTruth, colours: Sequence[tuple[float, ...]]) -> None:
    for (name, drawn), colour in zip(truth.series, colours, strict=True):
        mark = rng.choice(("", "o", "s", "^"))
        axes.plot(range(len(drawn)), drawn, color=colour, label=name, marker=mark, lw=rng.uniform(1.2, 2.5))
    if rng.random() < 0.5:
        axes.set_ylim(bottom=0)


def _draw_bars(rng: random.Random, axes: Axes, truth: ChartTruth, colours: Sequence[tuple[float, ...]]) -> None:
    places, count = np.arange(len(truth.categories)), len(truth.series)
    width, bottom = rng.uniform(0.5, 0.85), np.zeros(len(places))
    for number, ((name, drawn), colour) in enumerate(zip(truth.series, colours, strict=True)):
        if truth.shape is ChartShape.LYING_BARS:
            axes.barh(places, drawn, color=colour, height=width)
        elif truth.shape is ChartShape.STACKED_BARS:
            axes.bar(places, drawn, bottom=bottom, color=colour, label=name, width=width)
            bottom += np.array(drawn)
        else:
            shift = (number - (count - 1) / 2) * width / count
            axes.bar(places + shift, drawn, color=colour, label=name, width=width / count)
