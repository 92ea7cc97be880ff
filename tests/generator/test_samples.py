"""The demo's photos are what the generator makes."""

import json

import cv2
import numpy as np
import pytest

from benchmarks.generator.samples import RECIPES, TRUTH, make
from docferry import samples


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_committed_sample_is_what_the_generator_makes(recipe):
    path = next(path for path in samples.paths() if path.stem == recipe.name)
    sample = make(recipe)
    committed = cv2.imread(str(path)).astype(np.float32)
    assert committed.shape == sample.image.shape
    # JPEG and sine tables differ a little between library versions; the picture must not.
    assert np.abs(committed - sample.image).mean() < 6
    assert json.loads(TRUTH.read_text(encoding="utf-8"))[recipe.name] == sample.truth.as_dict(path.name)


def test_the_samples_are_small_files():
    sizes = [path.stat().st_size for path in samples.paths()]
    assert len(sizes) == 4
    assert all(60_000 <= size <= 250_000 for size in sizes)
