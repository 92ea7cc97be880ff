"""From a clean page to a photograph of it: how it was printed, aged, laid down, lit and taken."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass, fields, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.generator import ink as inks
from benchmarks.generator import light
from benchmarks.generator.marks import circle_total, stamp
from benchmarks.generator.truth import Kind, Points, Truth
from benchmarks.generator.warp import Curl, Warp, to_quad

Pixels = NDArray[np.uint8]


class Bed(enum.Enum):
    """What lies under the paper."""

    WHITE = "white scanner lid"
    BLACK = "dark scanner bed"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Scene:
    """How a page was printed and taken. All strengths are 0 for none; lengths are in pixels of the page.

    Attributes:
        dots: Dots of the print head across the page; 0 for a laser printer.
        needles: Dots of a needle printer across the page; 0 for another printer.
        cold, fading, voids: 0..1; see `ink`.
        streaks: Number of dead elements.
        spread: Pixels the ink ran; negative for starved.
        contrast: Darkness of full ink, 0..1.
        rotation: Degrees clockwise.
        perspective: Largest move of a corner, as a share of the page's width.
        curl: Largest bend, as a share of the page's width.
        shadow, glare, warmth, noise, blur, shake: See `light`.
        margin: Background around the page, as a share of its width.
        quality: JPEG quality.
    """

    bed: Bed = Bed.WHITE
    dots: int = 0
    needles: int = 0
    cold: float = 0.0
    fading: float = 0.0
    voids: float = 0.0
    streaks: int = 0
    spread: float = 0.0
    contrast: float = 1.0
    texture: float = 0.0
    creases: int = 0
    rotation: float = 0.0
    perspective: float = 0.0
    curl: float = 0.0
    shadow: float = 0.0
    glare: float = 0.0
    warmth: float = 0.0
    noise: float = 0.0
    blur: float = 0.0
    shake: float = 0.0
    stamped: bool = False
    circled: bool = False
    margin: float = 0.0
    quality: int = 95

    @classmethod
    def drawn(cls, rng: random.Random, kind: Kind) -> Scene:
        """A scene as a kiosk or an office scanner would see it."""
        scene = _printing(rng, kind)
        return _photo(rng, scene) if rng.random() < PHOTO_SHARE else _scan(rng, scene)

    def strengths(self) -> tuple[tuple[str, float], ...]:
        """Everything that was done, by name."""
        plain = (f.name for f in fields(self) if f.name not in {"bed", "contrast", "margin"})
        return tuple((name, float(getattr(self, name))) for name in plain if getattr(self, name))


PHOTO_SHARE = 0.5


def _printing(rng: random.Random, kind: Kind) -> Scene:
    if kind is not Kind.RECEIPT:
        return Scene(
            spread=rng.uniform(-0.3, 0.4),
            contrast=rng.uniform(0.8, 1.0),
            texture=rng.uniform(0, 0.02),
            stamped=kind is Kind.INVOICE and rng.random() < 0.25,
            streaks=rng.choice((0, 0, 1)),
        )
    if rng.random() < 0.1:
        return Scene(needles=rng.randint(300, 400), contrast=rng.uniform(0.6, 0.9), texture=rng.uniform(0, 0.02))
    worn = rng.random() < 0.45
    return Scene(
        dots=rng.randint(400, 620),
        cold=rng.uniform(0.6, 0.95) if rng.random() < 0.15 else 0.0,
        fading=rng.uniform(0.3, 0.85) if worn else rng.uniform(0, 0.3),
        voids=rng.uniform(0.2, 0.7) if worn else rng.uniform(0, 0.15),
        streaks=rng.randint(0, 6) if worn else 0,
        spread=rng.uniform(-0.4, 0.6),
        contrast=rng.uniform(0.65, 1.0),
        texture=rng.uniform(0, 0.03),
        creases=rng.randint(0, 4) if worn else 0,
        stamped=rng.random() < 0.06,
        circled=rng.random() < 0.1,
    )


def _scan(rng: random.Random, scene: Scene) -> Scene:
    return replace(
        scene,
        bed=Bed.WHITE if rng.random() < 0.7 else Bed.BLACK,
        rotation=rng.gauss(0, 0.8),
        curl=rng.uniform(0, 0.004),
        blur=rng.uniform(0.3, 0.9),
        noise=rng.uniform(0, 0.015),
        margin=rng.uniform(0.01, 0.06),
        quality=rng.randint(70, 95),
    )


def _photo(rng: random.Random, scene: Scene) -> Scene:
    return replace(
        scene,
        bed=Bed.TABLE,
        rotation=rng.gauss(0, 2.5),
        perspective=rng.uniform(0.005, 0.05),
        curl=rng.uniform(0, 0.02),
        shadow=rng.uniform(0.1, 0.55),
        glare=rng.uniform(0.3, 0.8) if rng.random() < 0.25 else 0.0,
        warmth=rng.uniform(-0.5, 1.0),
        noise=rng.uniform(0.01, 0.04),
        blur=rng.uniform(0.4, 1.3),
        shake=rng.uniform(1, 3) if rng.random() < 0.25 else 0.0,
        margin=rng.uniform(0.04, 0.2),
        quality=rng.randint(60, 92),
    )


def photograph(page: Pixels, truth: Truth, scene: Scene, rng: np.random.Generator) -> tuple[Pixels, Truth]:
    """Take `page` (H x W x 3, BGR) as `scene` says; the truth comes back in pixels of the picture."""
    page, truth = _marked(page, truth, scene, rng)
    warp, size = _placed(page.shape[1], page.shape[0], scene, rng)
    paper = _aged(page, scene, rng)
    taken = _laid(paper, warp, size, scene, rng)
    taken = _exposed(taken, scene, rng)
    pixels = np.clip(np.rint(taken * 255), 0, 255).astype(np.uint8)
    pixels = light.jpeg(pixels, scene.quality)
    moved = truth.moved(warp.forward)
    return pixels, replace(moved, width=size[0], height=size[1], degradations=scene.strengths())


def _marked(page: Pixels, truth: Truth, scene: Scene, rng: np.random.Generator) -> tuple[Pixels, Truth]:
    if scene.circled:
        page = circle_total(page, truth, rng)
    if scene.stamped:
        page, truth = stamp(page, truth, rng)
    return page, truth


def _aged(page: Pixels, scene: Scene, rng: np.random.Generator) -> light.Picture:
    ink = (1 - page.astype(np.float32) / 255).astype(np.float32)
    dot = page.shape[1] / scene.dots if scene.dots else 2.0
    if scene.spread:
        ink = inks.spread(ink, scene.spread)
    if scene.needles:
        ink = inks.dot_matrix(ink, max(2, round(page.shape[1] / scene.needles)))
    if scene.dots:
        ink = inks.printed(ink, scene.dots, scene.cold, rng)
    if scene.voids:
        ink = inks.voids(ink, scene.voids, dot, rng)
    if scene.fading:
        ink = inks.faded(ink, scene.fading, rng)
    if scene.streaks:
        ink = inks.streaked(ink, scene.streaks, dot, rng)
    height, width = page.shape[:2]
    tone = 1 - scene.texture * inks.clouds(rng, (height, width), (12, 8)) - 0.02
    paper = tone[:, :, None] * (1 - scene.contrast * ink)
    return _creased(paper.astype(np.float32), scene.creases, rng)


def _creased(paper: light.Picture, count: int, rng: np.random.Generator) -> light.Picture:
    """Folds: a thin dark and a thin light line side by side, mostly across the paper."""
    height, width = paper.shape[:2]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    for _ in range(count):
        angle = float(rng.normal(np.pi / 2, 0.35))
        offset = (x - width / 2) * np.cos(angle) + (y - float(rng.uniform(0.1, 0.9)) * height) * np.sin(angle)
        fold = np.exp(-((offset / 1.5) ** 2)) - 0.7 * np.exp(-(((offset - 3) / 2.5) ** 2))
        paper = paper + (0.12 * fold)[:, :, None]
    return np.clip(paper, 0, 1).astype(np.float32)


def _placed(width: int, height: int, scene: Scene, rng: np.random.Generator) -> tuple[Warp, tuple[int, int]]:
    """The warp of the page and the size of the picture that holds all of it."""
    phases = tuple(float(value) for value in rng.uniform(0, 2 * np.pi, 3))
    bend = scene.curl * width
    curl = Curl(
        width,
        height,
        bend,
        bend * float(rng.uniform(0, 1)),
        min(0.3, 4 * scene.curl),
        (phases[0], phases[1], phases[2]),
    )
    angle = np.deg2rad(scene.rotation)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float64)
    moves = rng.uniform(-1, 1, (4, 2)) * scene.perspective * width
    quad = corners @ turn.T + moves
    warp = Warp(curl, to_quad(width, height, quad))
    edge = warp.forward(_outline(width, height))
    low, high = edge.min(axis=0), edge.max(axis=0)
    margins = scene.margin * width * rng.uniform(0.5, 1.5, 4)
    shift = np.array([[1, 0, margins[0] - low[0]], [0, 1, margins[1] - low[1]], [0, 0, 1]])
    size = np.ceil(high - low + margins[:2] + margins[2:]).astype(int)
    return Warp(curl, shift @ warp.matrix), (int(size[0]), int(size[1]))


def _outline(width: float, height: float) -> Points:
    steps = np.linspace(0, 1, 32)
    sides = [(steps, 0 * steps), (steps, 0 * steps + 1), (0 * steps, steps), (0 * steps + 1, steps)]
    return np.concatenate([np.stack([x * width, y * height], axis=1) for x, y in sides])


def _laid(
    paper: light.Picture, warp: Warp, size: tuple[int, int], scene: Scene, rng: np.random.Generator
) -> light.Picture:
    across, down = warp.maps(*size)
    page = cv2.remap(paper, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    height, width = paper.shape[:2]
    inside = np.minimum(np.minimum(across + 0.5, width - 0.5 - across), np.minimum(down + 0.5, height - 0.5 - down))
    cover = np.clip(inside + 0.5, 0, 1)[:, :, None].astype(np.float32)
    if scene.curl:
        page = page * (1 + 2.5 * scene.curl * warp.curl.shade(across))[:, :, None]
    under = _background(scene.bed, (size[1], size[0]), rng)
    if scene.bed is not Bed.WHITE:
        thickness = max(2.0, 0.008 * width)
        moved = cv2.GaussianBlur(
            np.roll(cover[:, :, 0], (round(thickness), round(thickness / 2)), (0, 1)), (0, 0), thickness
        )
        under = under * (1 - 0.45 * moved)[:, :, None]
    return np.asarray(under * (1 - cover) + page * cover, dtype=np.float32)


def _background(bed: Bed, shape: tuple[int, int], rng: np.random.Generator) -> light.Picture:
    if bed is Bed.WHITE:
        return np.full((*shape, 3), 0.985, np.float32)
    if bed is Bed.BLACK:
        return np.full((*shape, 3), float(rng.uniform(0.03, 0.12)), np.float32)
    colours = ((0.32, 0.45, 0.58), (0.22, 0.30, 0.40), (0.62, 0.63, 0.64), (0.30, 0.30, 0.31), (0.48, 0.42, 0.36))
    colour = np.array(colours[int(rng.integers(len(colours)))], np.float32)
    # Wood and stone alike: long soft bands with a finer grain on top, seldom as fine as print.
    bands = 0.6 * inks.clouds(rng, shape, (3, 40)) + 0.4 * inks.clouds(rng, shape, (8, 120))
    grain = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.012)
    return (colour * (0.8 + 0.35 * bands + grain)[:, :, None]).astype(np.float32)


def _exposed(picture: light.Picture, scene: Scene, rng: np.random.Generator) -> light.Picture:
    if scene.shadow:
        picture = light.shadowed(picture, scene.shadow, rng)
    if scene.glare:
        picture = light.glared(picture, scene.glare, rng)
    if scene.warmth:
        picture = light.balanced(picture, scene.warmth)
    picture = light.blurred(picture, scene.blur)
    if scene.shake:
        picture = light.shaken(picture, scene.shake, float(rng.uniform(0, np.pi)))
    return light.noisy(picture, scene.noise, rng) if scene.noise else picture
