"""From pictures to texts: the one call that an engine makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from PIL import Image

from docferry_cloud.diffusion.decoding import BlockModel, Decoded, Options, decode
from docferry_cloud.diffusion.pictures import MASK, STOPS, TEXT_PROMPT, Encoded, Encoder
from docferry_cloud.engine import Cancelled


class PictureModel(Protocol):
    """A model that reads pictures block by block."""

    encoder: Encoder
    block_length: int

    def start(self, encoded: Encoded) -> BlockModel:
        """Look at the pictures and begin to answer."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What stands on one picture, and how it was decoded.

    `pieces` are the answer's tokens as text, in step with `decoded.steps`, as a replay shows them; joined they may
    differ from `text` where a character takes several tokens.
    """

    text: str
    pieces: tuple[str, ...]
    decoded: Decoded


def options_for(model: PictureModel, *, threshold: float = 0.95, at_least: int = 1, longest: int = 1024) -> Options:
    """How to decode with this model's own tokens and blocks."""
    return Options(
        mask_id=model.encoder.token(MASK),
        stop_ids=frozenset(model.encoder.token(name) for name in STOPS),
        threshold=threshold,
        block_length=model.block_length,
        at_least=at_least,
        longest=longest,
    )


def read(
    model: PictureModel,
    images: Sequence[Image.Image],
    options: Options,
    prompt: str = TEXT_PROMPT,
    cancelled: Cancelled = lambda: False,
) -> list[Answer]:
    """Read pictures as one batch.

    Raises:
        EngineError: `cancelled` said so.
    """
    if not images:
        return []
    found = decode(model.start(model.encoder.encode(images, prompt)), options, cancelled)
    return [
        Answer(
            model.encoder.decode(decoded.tokens),
            tuple(model.encoder.decode([token]) for token in decoded.tokens),
            decoded,
        )
        for decoded in found
    ]
