"""A transformer at work on a batch of prompts: positions, masks and the cache of keys and values across blocks."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from transformers import DynamicCache


class Language(Protocol):
    """The language model inside a reader."""

    def embed(self, tokens: Tensor) -> Tensor:
        """B x S tokens as B x S x H."""
        ...

    def run(self, embeds: Tensor, positions: Tensor, sees: Tensor, cache: DynamicCache, last: int) -> Tensor:
        """Append to `cache` and score the `last` positions.

        Args:
            embeds: B x S x H.
            positions: 3 x B x S; time, row and column, all the same for text.
            sees: B x 1 x S x T, True where a position may look; T counts the cache.
            cache: Grows by S.
            last: How many positions to score.

        Returns:
            B x last x V.
        """
        ...


class Past(enum.Enum):
    """How what is committed was trained to see itself."""

    CAUSAL = "causal"
    """Every token what is before it, like an autoregressive reader."""
    BLOCKS = "blocks"
    """Every token its own block too; the prompt's blocks are counted from its end, as MinerU-Diffusion does."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A batch of prompts, filled up on the left.

    Attributes:
        embeds: B x P x H, text and pictures.
        positions: 3 x B x P.
        real: B x P, False where it is only filled up.
    """

    embeds: Tensor
    positions: Tensor
    real: Tensor


class Session:
    """A `BlockModel` over any `Language`: prompt and finished blocks are remembered, the block at work is not."""

    def __init__(self, language: Language, prompt: Prompt, *, past: Past, block_length: int) -> None:
        self.rows = prompt.embeds.shape[0]
        self._language = language
        self._prompt: Prompt | None = prompt
        self._past = past
        self._block_length = block_length
        self._cache = DynamicCache()
        self._known = prompt.real[:, :0]
        # Pictures take fewer positions than tokens, so the text goes on where the largest one ended.
        self._next = prompt.positions.amax((0, 2)) + 1

    def score(self, committed: Tensor | None, block: Tensor) -> Tensor:
        """See `BlockModel.score`."""
        embeds, positions, real = self._new(committed)
        length = block.shape[1]
        block = block.to(embeds.device)
        ahead = self._next[:, None] + torch.arange(length, device=embeds.device)
        sees = self._sees(real, length)
        logits = self._language.run(
            torch.cat([embeds, self._language.embed(block)], 1),
            torch.cat([positions, ahead.expand(3, -1, -1)], 2),
            sees,
            self._cache,
            length,
        )
        self._cache.crop(-length)
        self._known = torch.cat([self._known, real], 1)
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        """See `BlockModel.keep`."""
        chosen = torch.tensor(list(rows), dtype=torch.long, device=self._next.device)
        self._cache.batch_select_indices(chosen)
        self._known, self._next = self._known[chosen], self._next[chosen]
        self.rows = len(rows)

    def _new(self, committed: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """What is to be remembered with this forward: embeddings, positions, and which of it is real."""
        if self._prompt is not None:
            prompt, self._prompt = self._prompt, None
            return prompt.embeds, prompt.positions, prompt.real
        if committed is None:
            committed = torch.zeros((self.rows, 0), dtype=torch.long)
        committed = committed.to(self._next.device)
        positions = (self._next[:, None] + torch.arange(committed.shape[1], device=self._next.device)).expand(3, -1, -1)
        self._next = self._next + committed.shape[1]
        return self._language.embed(committed), positions, torch.ones_like(committed, dtype=torch.bool)

    def _sees(self, real: Tensor, length: int) -> Tensor:
        """B x 1 x (kept + L) x (known + kept + L)."""
        rows, kept = real.shape
        known = self._known.shape[1]
        device = real.device
        place = torch.arange(kept, device=device)
        if self._past is Past.BLOCKS:
            place = (place - kept) // self._block_length
        among = (place[:, None] >= place[None, :]) & real[:, None, :]
        # Filling sees itself: a row of a mask that is all False has no softmax.
        among = among | torch.eye(kept, dtype=torch.bool, device=device)
        sees = torch.zeros((rows, kept + length, known + kept + length), dtype=torch.bool, device=device)
        sees[:, :, :known] = self._known[:, None, :]
        sees[:, :kept, known : known + kept] = among
        sees[:, kept:, known : known + kept] = real[:, None, :]
        sees[:, kept:, known + kept :] = True
        return sees[:, None]
