import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    # What torch and its friends say about themselves while they are imported.
    warnings.simplefilter("ignore")
    import torch
    from transformers import Qwen2VLForConditionalGeneration

from PIL import Image

from benchmarks.reader_model.model import Shape, new_config, new_tokenizer, save
from docferry_cloud.diffusion.qwen2vl import Qwen2VLReader

BLOCK = 4


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The directory of a model that answers nonsense, but with something like conviction."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = new_tokenizer()
    config = new_config(tokenizer, Shape(hidden=64, layers=2, feed=64, seen=32, depth=2))
    config.text_config.initializer_range = config.vision_config.initializer_range = config.initializer_range = 0.4
    torch.manual_seed(3)
    save(Qwen2VLForConditionalGeneration(config), tokenizer, folder)
    return folder


@pytest.fixture(scope="session")
def reader(tiny):
    return Qwen2VLReader.load(tiny, block_length=BLOCK)


@pytest.fixture(scope="session")
def images():
    """Pictures of four widths, the same in every run."""
    noise = np.random.default_rng(5)
    return [Image.fromarray(noise.integers(0, 256, (28, 28 * width, 3)).astype(np.uint8)) for width in (2, 5, 1, 3)]
