"""What printers and time do to ink. Every function takes and gives ink, H x W x 3 float32, 0 none .. 1 full."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Ink = NDArray[np.float32]


def clouds(rng: np.random.Generator, shape: tuple[int, int], cells: tuple[int, int]) -> NDArray[np.float32]:
    """A smooth random field, H x W, 0..1, with about `cells` (down, across) bumps."""
    coarse = rng.random((cells[0] + 1, cells[1] + 1)).astype(np.float32)
    field = cv2.resize(coarse, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
    return np.clip(field, 0, 1)


def printed(ink: Ink, dots: int, cold: float, rng: np.random.Generator) -> Ink:
    """As a print head of `dots` across makes it: on a grid, each dot burnt or not, with a soft edge.

    Heat spreads to the neighbours, so where the head is `cold` (0..1 at its coldest) thin strokes get pale and what
    stands alone, such as a decimal point, does not burn at all.
    """
    height, width = ink.shape[:2]
    size = dots, max(1, round(height * dots / width))
    coarse = cv2.resize(ink, size, interpolation=cv2.INTER_AREA)
    if cold:
        heat = cv2.GaussianBlur(coarse, (0, 0), 1.1)
        strokes = heat[coarse > 0.5]
        # What half of the printed dots reach is what this head is set for; a fine font is not lost as a whole.
        usual = float(np.median(strokes)) if strokes.size else 0.5
        needed = usual * cold * (0.7 + 0.3 * clouds(rng, (size[1], size[0]), (5, 3)))[:, :, None]
        burnt = np.clip((heat - needed) * (2.0 / usual) + 0.15, 0, 1)
    else:
        burnt = np.clip((coarse - 0.30) * 3.0, 0, 1)
    return np.asarray(cv2.resize(burnt, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def dot_matrix(ink: Ink, pitch: int) -> Ink:
    """As a needle printer makes it: round dots `pitch` pixels apart that nearly touch."""
    height, width = ink.shape[:2]
    coarse = cv2.resize(ink, (max(1, width // pitch), max(1, height // pitch)), interpolation=cv2.INTER_AREA)
    struck = (coarse > 0.32).astype(np.float32)
    blocks = cv2.resize(struck, (width, height), interpolation=cv2.INTER_NEAREST)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    offset = (pitch - 1) / 2
    distance = np.hypot((x % pitch) - offset, (y % pitch) - offset)
    needle = np.clip(1.35 - distance / (pitch * 0.55), 0, 1)
    return np.asarray(blocks * needle[:, :, None], dtype=np.float32)


def faded(ink: Ink, strength: float, rng: np.random.Generator) -> Ink:
    """Thermal paper after some weeks, unevenly pale; `strength` 0..1 is the loss at its palest."""
    shape = ink.shape[0], ink.shape[1]
    loss = 0.65 * clouds(rng, shape, (4, 2)) + 0.35 * clouds(rng, shape, (2, 7))
    return (ink * (1 - strength * loss)[:, :, None]).astype(np.float32)


def streaked(ink: Ink, count: int, dot: float, rng: np.random.Generator) -> Ink:
    """`count` dead elements of the print head: pale upright lines, each about a `dot` (pixels) wide."""
    out = ink.copy()
    for _ in range(count):
        x = int(rng.integers(0, ink.shape[1]))
        width = max(1, round(dot * float(rng.uniform(0.8, 1.8))))
        out[:, x : x + width] *= float(rng.uniform(0.1, 0.6))
    return out


def voids(ink: Ink, strength: float, dot: float, rng: np.random.Generator) -> Ink:
    """Dots that did not take: `strength` is the share of dots lost where the paper touched the head worst."""
    height, width = ink.shape[:2]
    size = max(1, round(width / dot)), max(1, round(height / dot))
    patchy = clouds(rng, (size[1], size[0]), (9, 5)) ** 2
    kept = (rng.random((size[1], size[0])) > strength * patchy).astype(np.float32)
    mask = cv2.resize(kept, (width, height), interpolation=cv2.INTER_LINEAR)
    return (ink * mask[:, :, None]).astype(np.float32)


def spread(ink: Ink, pixels: float) -> Ink:
    """Ink that ran (positive) or was starved (negative), by about `pixels`."""
    size = 2 * int(np.ceil(abs(pixels))) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    grown = cv2.dilate(ink, kernel) if pixels > 0 else cv2.erode(ink, kernel)
    share = np.float32(abs(pixels) / np.ceil(abs(pixels))) if pixels else np.float32(0)
    return ((1 - share) * ink + share * grown).astype(np.float32)
