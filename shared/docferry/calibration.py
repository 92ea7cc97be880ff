"""From a network's score to a probability: a monotone map with the sample it was fitted on."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from docferry.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Calibration:
    """A piecewise linear, monotone map from score to P(line is exactly right).

    Attributes:
        knots: Pairs (score, probability), both rising, each 0..1; constant beyond the first and the last.
        reader: The reader whose scores it is for.
        documents, lines: The size of the sample it was fitted on.
        data: What that sample was, in words.
        data_sha256: Hash of the sample's labelled scores.
        date: When it was fitted, ISO 8601.
    """

    knots: tuple[tuple[float, float], ...]
    reader: str
    documents: int
    lines: int
    data: str
    data_sha256: str
    date: str

    def confidence(self, score: float) -> float:
        """Calibrated probability for `score`; 0 for a score no network should give (NaN, outside 0..1)."""
        if math.isnan(score) or not 0.0 <= score <= 1.0:
            return 0.0
        scores = [knot[0] for knot in self.knots]
        right = bisect_right(scores, score)
        if right == 0:
            return self.knots[0][1]
        if right == len(scores):
            return self.knots[-1][1]
        (x0, y0), (x1, y1) = self.knots[right - 1], self.knots[right]
        return y0 + (y1 - y0) * (score - x0) / (x1 - x0)


def load_calibration(text: str, source: str) -> Calibration:
    """A calibration from its JSON artefact.

    Raises:
        ConfigurationError: It is not one, or its map is not monotone; `source` names it in the error.
    """
    try:
        tree: dict[str, Any] = json.loads(text)
        knots = tuple((float(score), float(probability)) for score, probability in tree.pop("knots"))
        calibration = Calibration(knots=knots, **tree)
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(
            f"{source}: not a calibration: {error}", remedy="use one that a fit has written"
        ) from None
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(knots))
    if not knots or not rising or not all(0.0 <= value <= 1.0 for knot in knots for value in knot):
        raise ConfigurationError(f"{source}: the map is not monotone within 0..1", remedy="fit it again")
    return calibration
