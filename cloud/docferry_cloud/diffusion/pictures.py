"""Prompts that hold one picture each, as Qwen2-VL's family writes them: the shared front of every reader here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from docferry_cloud.vlm.processor import load_processor
from docferry_cloud.vlm.prompts import MANNERS, SYSTEM, Ask

IMAGE = "<|image_pad|>"
MASK = "<|MASK|>"
STOPS = ("<|im_end|>", "<|endoftext|>")
TEXT_PROMPT = MANNERS[Ask.TEXT].prompt


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch of prompts before the model has seen it.

    Attributes:
        ids: B x P, filled up on the left.
        real: B x P, False where it is only filled up.
        patches: All pictures' patches, one below the other.
        grids: B x 3: time, rows and columns of patches.
    """

    ids: Tensor
    real: Tensor
    patches: Tensor
    grids: Tensor


class Encoder:
    """Writes prompts: a directory's tokenizer, chat template and image processor. Nothing is ever downloaded."""

    def __init__(self, directory: Path) -> None:
        self.processor: Any = load_processor(directory)
        self.tokenizer = self.processor.tokenizer

    def token(self, name: str) -> int:
        """The id of a mark."""
        return int(self.tokenizer.convert_tokens_to_ids(name))

    def encode(self, images: Sequence[Image.Image], prompt: str) -> Encoded:
        """One prompt for every picture."""
        content = [{"type": "image"}, {"type": "text", "text": prompt}]
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
        text = str(self.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
        filled = self.processor(
            text=[text] * len(images),
            images=[image.convert("RGB") for image in images],
            padding=True,
            return_tensors="pt",
        )
        return Encoded(
            filled["input_ids"], filled["attention_mask"].bool(), filled["pixel_values"], filled["image_grid_thw"]
        )

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of an answer, its marks included: they are the answer's structure."""
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=False))


def with_pictures(embeds: Tensor, at: Tensor, features: Tensor) -> Tensor:
    """`embeds`, B x P x H, with `features`, N x H, where `at`, B x P, is True."""
    return torch.masked_scatter(embeds, at[..., None], features.to(embeds.dtype))
