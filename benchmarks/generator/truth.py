"""What a generated document really says, and where: the ground truth in pixels of the photograph."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docferry.document import RegionType

Points = NDArray[np.float64]
"""N x 2, x then y, pixels, origin at the top left of the image."""


class Kind(enum.StrEnum):
    """What sort of document."""

    RECEIPT = "receipt"
    INVOICE = "invoice"
    PAGE = "page"


class Split(enum.StrEnum):
    """Three seed ranges that share neither fonts nor layouts nor words."""

    TRAIN = "train"
    CALIBRATE = "calibrate"
    JUDGE = "judge"


class Language(enum.StrEnum):
    """The document's main language; Chinese means simplified characters."""

    EN = "en"
    ZH = "zh"


@dataclass(frozen=True, slots=True)
class TruthLine:
    """One printed run of text: `polygon` is 4 x 2, clockwise from the text's top left; `region` an index or -1."""

    polygon: Points
    text: str
    region: int = -1


@dataclass(frozen=True, slots=True)
class TruthRegion:
    """One block of the layout, in reading order; `polygon` 4 x 2; `html` for tables."""

    type: RegionType
    polygon: Points
    html: str | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """Everything that is known about one generated document.

    Attributes:
        fields: company, date, address, total, and what else was printed, as printed.
        normalized: The same where they are dates (ISO 8601) or amounts (plain decimals).
        lines: In reading order.
        regions: In reading order.
        degradations: Name and strength of what was done to the picture, in the order it was done.
    """

    id: str
    kind: Kind
    language: Language
    split: Split
    seed: int
    fields: dict[str, str]
    normalized: dict[str, str]
    lines: tuple[TruthLine, ...]
    regions: tuple[TruthRegion, ...]
    width: int = 0
    height: int = 0
    degradations: tuple[tuple[str, float], ...] = field(default=())

    def moved(self, move: Callable[[Points], Points]) -> Truth:
        """The same truth with every polygon sent through `move` (N x 2 pixels to N x 2 pixels).

        Straight edges stay exact. One that `move` bends is replaced by the straight edge that fits it best.
        """
        return replace(
            self,
            lines=tuple(replace(line, polygon=_moved(line.polygon, move)) for line in self.lines),
            regions=tuple(replace(region, polygon=_moved(region.polygon, move)) for region in self.regions),
        )

    def as_dict(self, image: str) -> dict[str, Any]:
        """The ground-truth JSON object of the picture stored as `image`."""
        return {
            "id": self.id,
            "image": image,
            "kind": self.kind.value,
            "language": self.language.value,
            "split": self.split.value,
            "seed": self.seed,
            "width": self.width,
            "height": self.height,
            "fields": self.fields,
            "normalized": self.normalized,
            "lines": [
                {"poly": _rounded(line.polygon.reshape(-1)), "text": line.text, "region": line.region}
                for line in self.lines
            ],
            "order": list(range(len(self.lines))),
            "regions": [
                {"type": region.type.value, "bbox": _box(region.polygon), "poly": _rounded(region.polygon.reshape(-1))}
                for region in self.regions
            ],
            "tables": [
                {"box": _box(region.polygon), "html": region.html} for region in self.regions if region.html is not None
            ],
            "degradations": [{"name": name, "strength": round(strength, 4)} for name, strength in self.degradations],
        }


_ALONG = np.linspace(0, 1, 17)[:, None]


def _moved(polygon: Points, move: Callable[[Points], Points]) -> Points:
    a, b, c, d = polygon
    top, bottom = _fitted_edge(move(a + _ALONG * (b - a))), _fitted_edge(move(d + _ALONG * (c - d)))
    return np.array([top[0], top[1], bottom[1], bottom[0]])


def _fitted_edge(points: Points) -> Points:
    """The two ends of `points`, moved across their chord onto the line of least squares."""
    start, chord = points[0], points[-1] - points[0]
    length = float(np.hypot(chord[0], chord[1]))
    if length < 1e-9:
        return points[[0, -1]]
    along = chord / length
    across = np.array([-along[1], along[0]])
    u = (points - start)[:, 0] * along[0] + (points - start)[:, 1] * along[1]
    v = (points - start)[:, 0] * across[0] + (points - start)[:, 1] * across[1]
    middle, rise = u.mean(), u - u.mean()
    slope = float((rise * v).sum() / (rise * rise).sum())
    ends = np.array([[0.0], [length]])
    fitted: Points = start + ends * along + (v.mean() + slope * (ends - middle)) * across
    return fitted


def _rounded(values: Points) -> list[float]:
    return [round(float(value), 2) for value in values]


def _box(polygon: Points) -> list[float]:
    return _rounded(np.concatenate([polygon.min(axis=0), polygon.max(axis=0)]))
