"""Diagrams of boxes and arrows drawn by matplotlib, with who is connected to whom; the same seed, the same diagram."""

from __future__ import annotations

import random
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text

from benchmarks.generator.drawing import Pixels
from benchmarks.generator.figures import FACES, pixels_of, through_jpeg
from benchmarks.generator.truth import Language, Split
from benchmarks.generator.words import words


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow between two boxes; `label` is empty without one."""

    start: str
    end: str
    label: str


@dataclass(frozen=True, slots=True)
class DrawnDiagram:
    """A diagram's picture and truth; `texts` are its lines of print with their boxes, in pixels."""

    pixels: Pixels
    names: tuple[str, ...]
    links: tuple[Link, ...]
    texts: tuple[tuple[str, tuple[float, float, float, float]], ...]


_FORMS = {
    Split.TRAIN: ("square", "round"),
    Split.CALIBRATE: ("square", "round", "ellipse"),
    Split.JUDGE: ("square", "round4", "ellipse"),
}
_HEADS = {
    Split.TRAIN: ("-|>",),
    Split.CALIBRATE: ("-|>", "->"),
    Split.JUDGE: ("-|>", "->", "simple"),
}
_FILLS = {
    Split.TRAIN: ("white",),
    Split.CALIBRATE: ("white", "lightyellow", "lightsteelblue"),
    Split.JUDGE: ("white", "lavender", "mistyrose", "honeydew", "gold"),
}
_LABELS = ("yes", "no", "sends", "asks", "", "")
_CLOSE = 4.0
"""Points between an arrow's tip and its box, at most."""


def draw_diagram(seed: int, split: Split) -> DrawnDiagram:
    """One diagram of three to nine boxes on a grid."""
    rng = random.Random(f"diagram/{split.value}/{seed}")
    columns, rows = rng.choice(((3, 1), (2, 2), (3, 2), (2, 3), (3, 3)))
    cells = [(x, y) for y in range(rows) for x in range(columns)]
    nouns = list(dict.fromkeys(word.split()[0] for word in words(split, Language.EN)["nouns"]))
    names = dict(zip(cells, rng.sample(nouns, len(cells)), strict=True))
    pairs = [
        (one, other)
        for one in cells
        for other in cells
        if one != other and abs(one[0] - other[0]) <= 1 and abs(one[1] - other[1]) <= 1
    ]
    rng.shuffle(pairs)
    chosen: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for one, other in pairs:
        if len(chosen) < len(cells) and (other, one) not in chosen:
            chosen.append((one, other))
    labelled = rng.random() < 0.5
    links = tuple(
        # Never on a slanted line: where two cross, their labels would lie on each other.
        Link(names[one], names[other], rng.choice(_LABELS) if labelled and 0 in _way(one, other) else "")
        for one, other in chosen
    )
    with mpl.rc_context({"font.family": rng.choice(FACES[split]), "font.size": rng.uniform(9, 12)}):
        figure = Figure(figsize=(2.3 * columns, 1.3 * rows + 0.2), dpi=rng.choice((100, 120, 150)))
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(-0.5, columns - 0.5)
        axes.set_ylim(rows - 0.5, -0.5)
        drawn = _draw(rng, canvas, axes, split, names, list(zip(chosen, links, strict=True)))
        pixels = pixels_of(canvas)
    texts = tuple((text.get_text(), _box(text, pixels.shape[0])) for text in drawn)
    return DrawnDiagram(through_jpeg(pixels, rng.choice((0, 95, 85))), tuple(names.values()), links, texts)


def _way(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return other[0] - one[0], other[1] - one[1]


def _draw(
    rng: random.Random,
    canvas: FigureCanvasAgg,
    axes: Axes,
    split: Split,
    names: dict[tuple[int, int], str],
    links: list[tuple[tuple[tuple[int, int], tuple[int, int]], Link]],
) -> list[Text]:
    form, fill = rng.choice(_FORMS[split]), rng.choice(_FILLS[split])
    thick, colour = rng.uniform(0.8, 1.8), rng.choice(("black", "dimgray", "navy"))
    boxes = {
        cell: axes.text(
            *cell,
            name,
            ha="center",
            va="center",
            bbox={"boxstyle": f"{form},pad=0.6", "facecolor": fill, "edgecolor": colour, "linewidth": thick},
        )
        for cell, name in names.items()
    }
    canvas.draw()  # type: ignore[no-untyped-call]
    head, dashed = rng.choice(_HEADS[split]), rng.random() < 0.25
    printed = list(boxes.values())
    for (one, other), link in links:
        ends = [boxes[cell].get_bbox_patch() for cell in (one, other)]
        axes.add_patch(
            FancyArrowPatch(
                one,
                other,
                patchA=ends[0],
                patchB=ends[1],
                shrinkA=0,
                shrinkB=rng.uniform(0, _CLOSE),
                arrowstyle=head if head != "simple" else "-|>,head_length=0.6,head_width=0.3",
                mutation_scale=rng.uniform(12, 18),
                linewidth=thick,
                linestyle="--" if dashed and head != "->" else "-",
                color=colour,
            )
        )
        if link.label:
            # Nearer to the tail than to the head, as people write it.
            x, y = (0.55 * a + 0.45 * b for a, b in zip(one, other, strict=True))
            back = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            printed.append(axes.text(x, y, link.label, ha="center", va="center", fontsize=8, bbox=back, zorder=5))
    return printed


def _box(text: Text, height: int) -> tuple[float, float, float, float]:
    """Of the print itself, from the top."""
    text.set_bbox(None)
    extent = text.get_window_extent()
    return (extent.x0, height - extent.y1, extent.x1, height - extent.y0)
