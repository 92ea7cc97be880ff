"""What a picture is like, in numbers, and the one thing a person could do better.

All measures are taken on a grey copy whose long side is at most 1000 pixels, so that they mean the same at any
resolution. The bounds of the hints lie far from anything seen on pages that read well: hints advise, never refuse.
"""

from __future__ import annotations

import math
from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt

from docferry.document import Quality
from docferry.vision.images import Pixels

Grey = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

SIDE = 1000
"""Long side in pixels at which the measures are taken."""

_CLIPPED = 250
_NEAREST_LETTERS = 8


def measured(quality: Quality, pixels: Pixels) -> Quality:
    """The report with sharpness, blur, brightness, contrast, glare and the hint filled in."""
    grey = grey_at(pixels, SIDE)
    # A fourth of the pixels has the same percentiles, and sorting all would cost more than everything else here.
    low, high = np.percentile(grey[::2, ::2], (5, 95))
    quality = replace(
        quality,
        sharpness=round(float(cv2.Laplacian(grey, cv2.CV_32F).var()), 2),
        blur=round(blur(grey), 2),
        brightness=round(float(grey.mean()) / 255, 4),
        contrast=round(float(high - low) / 255, 4),
        glare=round(glare(grey), 4),
    )
    return replace(quality, hint=hint(quality))


def hint(quality: Quality) -> str:
    """What a person could do better, in one sentence, the worst fault first; empty when nothing stands out."""
    faults = (
        (quality.brightness < 0.15, "Too dark: please bring more light."),
        (quality.contrast < 0.04 and quality.sharpness < 30, "Nothing to be seen: please put the page into view."),
        (quality.sharpness < 30 or quality.blur > 2.2, "Blurred: please hold still."),
        (quality.glare > 0.03, "Glare: please tilt the page or move the lamp."),
        (0 < quality.text_height < 10, "Too small: please move closer."),
        (quality.cropped_edges > 0, "The page is cut off: please put all of it into view."),
    )
    return next((words for found, words in faults if found), "")


def grey_at(pixels: Pixels, longest: int) -> Grey:
    """The picture in grey, its long side at most `longest`."""
    return shrunk(np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY), dtype=np.uint8), longest)


def shrunk(grey: Grey, longest: int) -> Grey:
    """A grey picture, its long side at most `longest`."""
    scale = longest / max(grey.shape)
    if scale >= 1:
        return grey
    size = (max(1, round(grey.shape[1] * scale)), max(1, round(grey.shape[0] * scale)))
    times = int(1 / scale)
    if times > 1 and min(size) > 1:
        # OpenCV averages whole blocks many times faster than broken ones: whole ones first, the rest afterwards.
        height, width = (side // times * times for side in grey.shape)
        blocks = (width // times, height // times)
        grey = np.asarray(cv2.resize(grey[:height, :width], blocks, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    how = cv2.INTER_AREA if times > 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(grey, size, interpolation=how), dtype=np.uint8)


def blur(grey: Grey) -> float:
    """How wide edges are: the standard deviation, in pixels, of the blur that would make them so; 0 without edges.

    A step of height C behind a Gaussian blur has the greatest slope C / (sigma sqrt(2 pi)), so sigma follows from
    the range of grey around a strong edge and its steepest slope, whatever the contrast. Sharp print gives about 0.8.
    """
    near = np.ones((13, 13), np.uint8)
    span = cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, near)
    strong = span >= max(24.0, float(np.percentile(span[::3, ::3], 95)))
    if not strong.any():
        return 0.0
    across = cv2.Sobel(grey, cv2.CV_32F, 1, 0, scale=1 / 8)
    down = cv2.Sobel(grey, cv2.CV_32F, 0, 1, scale=1 / 8)
    # In halves of a grey level, which fit a byte: the dilation is what costs, and bytes are four times faster.
    steepest = cv2.dilate(cv2.convertScaleAbs(cv2.magnitude(across, down), alpha=2), near)
    widths = span[strong] / (math.sqrt(2 * math.pi) * np.maximum(steepest[strong] / 2, 0.25))
    return float(np.median(widths))


def glare(grey: Grey) -> float:
    """Share of the page that a reflection has blown out, 0..1.

    A reflection is white, fades out softly, and lies on paper that is not white itself; a scan's white paper and a
    white box on a slide are none.
    """
    small = shrunk(grey, 250)
    paper = cv2.morphologyEx(small, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    blown = cv2.morphologyEx((paper >= _CLIPPED).astype(np.uint8), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    around = (cv2.dilate(blown, np.ones((5, 5), np.uint8)) > 0) & (blown == 0)
    plain = ((paper > 60) & (paper < 240)).mean()
    if plain < 0.25 or not around.any() or float(np.median(paper[around])) < 235:
        return 0.0
    return float(blown.mean())


def cropped_edges(pixels: Pixels) -> int:
    """How many of the picture's four edges cut through print, judged by letters that lie on the edge."""
    height, width = pixels.shape[:2]
    longest = max(height, width)
    if min(height, width) < 0.1 * longest or longest < 100:
        return 0
    scale = min(1.0, SIDE / longest)
    depth = round(24 / scale)
    turned = pixels.transpose(1, 0, 2)
    bands = (pixels[:depth], pixels[::-1][:depth], turned[:depth], turned[::-1][:depth])
    return sum(_cut_letters(_shrunk_band(band, scale)) >= _NEAREST_LETTERS for band in bands)


def _shrunk_band(band: Pixels, scale: float) -> Grey:
    grey = cv2.cvtColor(np.ascontiguousarray(band), cv2.COLOR_BGR2GRAY)
    size = (max(1, round(grey.shape[1] * scale)), max(1, round(grey.shape[0] * scale)))
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _cut_letters(band: Grey) -> int:
    """Runs of ink, each no longer than a letter, on the outermost rows of a band along an edge."""
    paper = cv2.morphologyEx(band, cv2.MORPH_CLOSE, np.ones((15, 15), np.uint8)).astype(np.int16)
    ink = (paper - band) > np.maximum(40, paper // 3)
    line = np.concatenate([[False], ink[:5].all(axis=0), [False]]).astype(np.int8)
    turns = np.flatnonzero(np.diff(line))
    lengths = turns[1::2] - turns[::2]
    # Long dark stretches are the table beyond the paper's edge, and the short ones beside them its ragged rim.
    if lengths[lengths > 20].sum() > 0.05 * len(line):
        return 0
    return int((lengths <= 20).sum())
