"""What every kind of document hands to the degradations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.generator.truth import TruthLine, TruthRegion

Pixels = NDArray[np.uint8]
"""H x W x 3, BGR."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A clean, flat page with its truth in the page's own pixels."""

    pixels: Pixels
    lines: tuple[TruthLine, ...]
    regions: tuple[TruthRegion, ...]
    fields: dict[str, str]
    normalized: dict[str, str]
