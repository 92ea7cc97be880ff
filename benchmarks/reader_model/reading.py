"""Unseen crops, and reading them one token after another: what diffusion is compared with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from PIL import Image
from transformers import Qwen2VLForConditionalGeneration

from benchmarks.generator.truth import Split
from benchmarks.reader_model.crops import draw_crop, draw_text
from benchmarks.reader_model.training import BLOCK, Plan
from docferry_cloud.diffusion.pictures import IMAGE, STOPS, TEXT_PROMPT, Encoder
from docferry_cloud.diffusion.qwen2vl import Qwen2VLReader

LONGEST_ANSWER = 2 * BLOCK
"""Tokens; more than any crop holds."""

ENDS = STOPS
"""Marks that end an answer."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """A crop whose text no training has had, as it comes from a page."""

    image: Image.Image
    text: str


@dataclass(frozen=True, slots=True)
class Read:
    """A text, how many tokens it took with the one that ended it, and how many runs of the model."""

    text: str
    tokens: int
    forwards: int


def unseen_crops(plan: Plan, count: int, seed: int = 1, split: Split = Split.TRAIN) -> list[Unseen]:
    """Crops of the plan's kind, with texts that its training leaves out."""
    rng = random.Random(f"unseen/{seed}")
    texts = [draw_text(rng, unseen=True, kinds=plan.kinds, longest=plan.longest) for _ in range(count)]
    return drawn(texts, seed, split)


def drawn(texts: Sequence[str], seed: int, split: Split = Split.TRAIN) -> list[Unseen]:
    """Any texts as crops."""
    rng = random.Random(f"drawn/{seed}")
    return [Unseen(Image.fromarray(draw_crop(text, rng, split).pixels), text) for text in texts]


@torch.inference_mode()
def one_by_one(reader: Qwen2VLReader, images: Sequence[Image.Image], batch: int = 50) -> list[Read]:
    """Greedy autoregression by transformers' own loop."""
    found: list[Read] = []
    for start in range(0, len(images), batch):
        encoded = reader.encoder.encode(images[start : start + batch], TEXT_PROMPT)
        model: Qwen2VLForConditionalGeneration = reader.model
        output = model.generate(
            input_ids=encoded.ids,
            attention_mask=encoded.real.long(),
            pixel_values=encoded.patches,
            image_grid_thw=encoded.grids,
            mm_token_type_ids=(encoded.ids == reader.encoder.token(IMAGE)).int(),
            max_new_tokens=LONGEST_ANSWER,
        )
        found += [_read(reader.encoder, row.tolist()) for row in output[:, encoded.ids.shape[1] :]]
    return found


def _read(encoder: Encoder, tokens: list[int]) -> Read:
    ends = {encoder.token(name) for name in ENDS}
    length = next((index for index, token in enumerate(tokens) if token in ends), None)
    text = encoder.decode(tokens[:length])
    # Every run of the model, the prompt's among them, gives one token.
    taken = len(tokens) if length is None else length + 1
    return Read(text, taken, taken)
