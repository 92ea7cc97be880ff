"""The demo's four photos, made again by `python -m benchmarks.generator.samples`."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.generator.degrade import Bed, Scene
from benchmarks.generator.make import Sample, generate
from benchmarks.generator.truth import Kind, Language, Split

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "shared" / "docferry" / "samples"
TRUTH = Path(__file__).with_name("samples_truth.json")

KIOSK = Scene(
    bed=Bed.TABLE,
    rotation=1.2,
    perspective=0.02,
    curl=0.006,
    shadow=0.22,
    warmth=0.3,
    noise=0.006,
    blur=0.6,
    margin=0.08,
    contrast=0.92,
    texture=0.01,
    quality=92,
)
THERMAL = Scene(
    bed=Bed.TABLE,
    dots=560,
    fading=0.35,
    voids=0.12,
    streaks=1,
    spread=0.2,
    contrast=0.88,
    texture=0.02,
    creases=1,
    rotation=-1.5,
    perspective=0.025,
    curl=0.012,
    shadow=0.3,
    warmth=0.5,
    noise=0.01,
    blur=0.7,
    margin=0.1,
    quality=92,
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One sample: what `generate` is asked for, and the JPEG's quality."""

    name: str
    kind: Kind
    language: Language
    seed: int
    scene: Scene
    quality: int


RECIPES = (
    Recipe("thermal_receipt", Kind.RECEIPT, Language.EN, 90_022, THERMAL, 80),
    Recipe("invoice_table", Kind.INVOICE, Language.EN, 90_002, KIOSK, 72),
    Recipe("two_column_page", Kind.PAGE, Language.EN, 90_003, KIOSK, 66),
    Recipe("chinese_receipt", Kind.RECEIPT, Language.ZH, 90_004, THERMAL, 80),
)


def make(recipe: Recipe) -> Sample:
    """The sample's photograph, before its last JPEG, and its truth."""
    return generate(recipe.kind, recipe.seed, Split.JUDGE, language=recipe.language, scene=recipe.scene)


def encode(image: NDArray[np.uint8], quality: int) -> bytes:
    """The sample's file."""
    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_OPTIMIZE, 1])
    assert done
    return data.tobytes()


def main() -> None:
    """Write the four photos and their truth."""
    argparse.ArgumentParser(prog="python -m benchmarks.generator.samples", description=__doc__).parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    truths = {}
    for recipe in RECIPES:
        sample = make(recipe)
        file = FOLDER / f"{recipe.name}.jpg"
        file.write_bytes(encode(sample.image, recipe.quality))
        kib = file.stat().st_size / 1024
        truths[recipe.name] = sample.truth.as_dict(file.name)
        print(f"{file.relative_to(REPOSITORY)}  {sample.truth.width} x {sample.truth.height}  {kib:.0f} KiB")
    TRUTH.write_text(json.dumps(truths, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
