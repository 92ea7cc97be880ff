"""What light, lens and sensor do. Pictures are H x W x 3 float32, 0 black .. 1 white, BGR."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.generator.ink import clouds

Picture = NDArray[np.float32]


def shadowed(picture: Picture, strength: float, rng: np.random.Generator) -> Picture:
    """A soft-edged shadow over one side and a slow fall-off of the light; `strength` 0..1 is what is taken away."""
    height, width = picture.shape[:2]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    angle = float(rng.uniform(0, 2 * np.pi))
    along = (x / width - 0.5) * np.cos(angle) + (y / height - 0.5) * np.sin(angle)
    edge = 1 / (1 + np.exp(-(along - float(rng.uniform(-0.2, 0.35))) / float(rng.uniform(0.02, 0.12))))
    dark = 0.7 * edge + 0.3 * clouds(rng, (height, width), (2, 2))
    return np.asarray(picture * (1 - strength * dark)[:, :, None], dtype=np.float32)


def glared(picture: Picture, strength: float, rng: np.random.Generator) -> Picture:
    """A lamp mirrored in the paper: an oval where everything tends to white; `strength` 0..1 at its centre."""
    height, width = picture.shape[:2]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    centre = rng.uniform(0.15, 0.85, 2)
    radius = rng.uniform(0.12, 0.3, 2)
    distance = ((x / width - centre[0]) / radius[0]) ** 2 + (
        (y / height - centre[1]) / radius[1] * (height / width) / 1.5
    ) ** 2
    spot = (strength * np.exp(-distance))[:, :, None]
    return np.asarray(picture + (1 - picture) * spot, dtype=np.float32)


def blurred(picture: Picture, sigma: float) -> Picture:
    """Out of focus by a Gaussian of `sigma` pixels."""
    return cv2.GaussianBlur(picture, (0, 0), sigma).astype(np.float32) if sigma > 0.05 else picture


def shaken(picture: Picture, length: float, angle: float) -> Picture:
    """Moved during exposure by `length` pixels in the direction `angle` (radians)."""
    if length < 1:
        return picture
    size = 2 * int(np.ceil(length)) + 1
    kernel = np.zeros((size, size), np.float32)
    middle = size // 2
    reach = np.array([np.cos(angle), np.sin(angle)]) * length / 2
    start, end = middle - reach, middle + reach
    ends = [(round(float(x)), round(float(y))) for x, y in (start, end)]
    cv2.line(kernel, ends[0], ends[1], (1.0,), 1)
    return cv2.filter2D(picture, -1, kernel / kernel.sum()).astype(np.float32)


def noisy(picture: Picture, sigma: float, rng: np.random.Generator) -> Picture:
    """Sensor noise: shot noise that grows with the light's root, and a little of its own; `sigma` 0..1."""
    level = sigma * np.sqrt(0.3 + 0.7 * np.clip(picture, 0, 1))
    grey = rng.standard_normal(picture.shape[:2], dtype=np.float32)[:, :, None]
    colour = rng.standard_normal(picture.shape, dtype=np.float32)
    return np.asarray(picture + level * (0.8 * grey + 0.4 * colour), dtype=np.float32)


def balanced(picture: Picture, warmth: float) -> Picture:
    """White balance off by `warmth` (-1 blue .. 1 yellow)."""
    gains = np.array([1 - 0.12 * warmth, 1.0, 1 + 0.06 * warmth], np.float32)
    return (picture * gains).astype(np.float32)


def jpeg(pixels: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """Through a JPEG of `quality` 1..100 and back."""
    done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), dtype=np.uint8)
