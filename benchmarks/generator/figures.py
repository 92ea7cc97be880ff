"""What drawn figures have in common: the faces of their print, and their way to pixels."""

from __future__ import annotations

import cv2
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from benchmarks.generator.drawing import Pixels
from benchmarks.generator.light import jpeg
from benchmarks.generator.truth import Split

FACES = {
    Split.TRAIN: ("DejaVu Sans",),
    Split.CALIBRATE: ("DejaVu Serif",),
    Split.JUDGE: ("DejaVu Sans", "DejaVu Serif", "STIXGeneral"),
}


def pixels_of(canvas: FigureCanvasAgg) -> Pixels:
    """What is drawn on a canvas, BGR."""
    canvas.draw()  # type: ignore[no-untyped-call]
    shown = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    return np.asarray(cv2.cvtColor(shown, cv2.COLOR_RGBA2BGR), dtype=np.uint8)


def through_jpeg(pixels: Pixels, quality: int) -> Pixels:
    """The same after a JPEG of that quality; 0 leaves it as it is."""
    return jpeg(pixels, quality) if quality else pixels
