"""Kind, seed and split to a photograph with its truth."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from benchmarks.generator.degrade import Scene, photograph
from benchmarks.generator.drawing import Drawing, Pixels
from benchmarks.generator.invoices import draw_invoice
from benchmarks.generator.pages import draw_page
from benchmarks.generator.receipts import draw_receipt
from benchmarks.generator.truth import Kind, Language, Split, Truth

PAINTERS = {Kind.RECEIPT: draw_receipt, Kind.INVOICE: draw_invoice, Kind.PAGE: draw_page}


@dataclass(frozen=True, slots=True)
class Sample:
    """A photograph (H x W x 3, BGR, uint8) and what it says."""

    image: Pixels
    truth: Truth


def draw(kind: Kind, seed: int, split: Split, language: Language = Language.EN) -> Drawing:
    """The clean, flat page of a sample, before anything happened to it."""
    return PAINTERS[kind](random.Random(f"{split.value}/{kind.value}/{language.value}/{seed}"), split, language)


def generate(
    kind: Kind, seed: int, split: Split, *, language: Language = Language.EN, scene: Scene | None = None
) -> Sample:
    """One sample: the same arguments always give the same pixels and the same truth.

    Args:
        seed: Any integer from 0; splits never share a stream.
        scene: How it was taken; None draws one from the seed.
    """
    drawing = draw(kind, seed, split, language)
    name = f"{split.value}-{kind.value}-{language.value}-{seed:06d}"
    truth = Truth(
        name,
        kind,
        language,
        split,
        seed,
        drawing.fields,
        drawing.normalized,
        drawing.lines,
        drawing.regions,
        drawing.pixels.shape[1],
        drawing.pixels.shape[0],
    )
    rng = random.Random(f"scene/{name}")
    image, truth = photograph(
        drawing.pixels, truth, scene or Scene.drawn(rng, kind), np.random.default_rng(rng.getrandbits(64))
    )
    return Sample(image, truth)
