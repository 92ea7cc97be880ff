"""The decoder: an answer grows block by block, and a block by what the model is sure of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from docferry.errors import EngineError
from docferry_cloud.engine import Cancelled


@dataclass(frozen=True, slots=True)
class Options:
    """How to decode.

    Attributes:
        mask_id: The token that stands for "not decided yet"; never part of an answer.
        stop_ids: Tokens that end an answer; not part of it.
        threshold: The knob between speed and accuracy, 0..1: every token whose probability is above it is fixed at
            once. 1 fixes exactly `at_least` tokens a forward, if so many are wanted.
        block_length: Positions of a block; what the model was trained with.
        at_least: Tokens fixed by every forward, however unsure.
        longest: Tokens of the longest answer.
    """

    mask_id: int
    stop_ids: frozenset[int]
    threshold: float = 0.95
    block_length: int = 32
    at_least: int = 1
    longest: int = 1024

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must be within 0..1, not {self.threshold}")
        if min(self.block_length, self.at_least, self.longest) < 1:
            raise ValueError("block_length, at_least and longest must be at least 1")
        if self.mask_id in self.stop_ids:
            raise ValueError("the mask cannot end an answer")


@dataclass(frozen=True, slots=True)
class Decoded:
    """An answer.

    Attributes:
        tokens: Without the token that ended it.
        steps: For every token the forward that fixed it, from 1; with `stop_step` the order in which a page can
            replay how it was read.
        stop_step: The forward that fixed the token which ended the answer; None if it was cut off at its longest.
        forwards: Runs of the model that this answer took, the prompt's among them.
        confidence: For every token its probability when it was fixed, 0..1.
    """

    tokens: tuple[int, ...]
    steps: tuple[int, ...]
    stop_step: int | None
    forwards: int
    confidence: tuple[float, ...]


class BlockModel(Protocol):
    """A model at work on a batch of prompts; it remembers what it has committed to."""

    rows: int
    """Prompts still being answered."""

    def score(self, committed: Tensor | None, block: Tensor) -> Tensor:
        """Append `committed`, B x C tokens, for good; then score `block`, B x L tokens, of which nothing is kept.

        The block's positions see everything committed and, both ways, each other. Returns logits, B x L x V. One run
        of the model does both, so that remembering a block costs no forward of its own.
        """
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows alone, in this order."""
        ...


@torch.inference_mode()
def decode(model: BlockModel, options: Options, cancelled: Cancelled = lambda: False) -> list[Decoded]:
    """Answer every prompt of `model`, always the same way: no token is drawn by chance.

    A row stops at its own end mark: what stands behind it in the block is not waited for, and the row costs nothing
    while the others go on.

    Raises:
        EngineError: `cancelled` said so between two forwards.
    """
    answers = [_Answer() for _ in range(model.rows)]
    open_rows = list(range(model.rows))
    committed: Tensor | None = None
    done = 0
    while open_rows and done < options.longest:
        length = min(options.block_length, options.longest - done)
        block = _Block(len(open_rows), length, options)
        while (working := block.working()).any():
            if cancelled():
                raise EngineError("the reading was cancelled")
            logits = model.score(committed, block.tokens)
            committed = None
            block.take(logits, working)
        for row, answer in enumerate(open_rows):
            answers[answer].extend(block, row, options.stop_ids)
        done += length
        going = [row for row, answer in enumerate(open_rows) if answers[answer].stop_step is None]
        if len(going) < len(open_rows) and going:
            model.keep(going)
        open_rows = [open_rows[row] for row in going]
        committed = block.tokens[torch.tensor(going, dtype=torch.long, device=block.tokens.device)]
    return [answer.decoded() for answer in answers]


class _Block:
    """The block under work: which tokens are fixed, when, and how surely. All tensors are B x L."""

    def __init__(self, rows: int, length: int, options: Options) -> None:
        self.tokens = torch.full((rows, length), options.mask_id)
        # Its own record: a model may well propose the mask's token, so the tokens cannot say what is decided.
        self.fixed = torch.zeros((rows, length), dtype=torch.bool)
        self.steps = torch.zeros((rows, length), dtype=torch.long)
        self.confidence = torch.zeros((rows, length))
        self.forwards = torch.zeros(rows, dtype=torch.long)
        self._options = options
        self._stops = torch.tensor(sorted(options.stop_ids), dtype=torch.long)

    def working(self) -> Tensor:
        """B, True where something is undecided before the row's end mark."""
        stops = self.fixed & torch.isin(self.tokens, self._stops)
        behind = stops.long().cumsum(1) > 0
        return (~self.fixed & ~behind).any(1)

    def take(self, logits: Tensor, working: Tensor) -> None:
        """Fix what one forward is sure of, in the rows that are `working`."""
        logits = logits.float().cpu()
        logits[..., self._options.mask_id] = -torch.inf
        surest, choice = logits.softmax(-1).max(-1)
        # What would stand behind the end is not needed if the end holds, and is wrong if it does not.
        ends = torch.isin(torch.where(self.fixed, self.tokens, choice), self._stops)
        wanted = ~self.fixed & (ends.long().cumsum(1) - ends.long() == 0) & working[:, None]
        surest = surest.masked_fill(~wanted, -torch.inf)
        count = min(self._options.at_least, surest.shape[1])
        accept = surest > self._options.threshold
        accept.scatter_(1, surest.topk(count, dim=1).indices, value=True)
        accept &= wanted
        self.forwards += working.long()
        self.tokens = torch.where(accept, choice, self.tokens)
        self.steps = torch.where(accept, self.forwards[:, None], self.steps)
        self.confidence = torch.where(accept, surest, self.confidence)
        self.fixed |= accept


class _Answer:
    """What one row has said so far."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.steps: list[int] = []
        self.confidence: list[float] = []
        self.forwards = 0
        self.stop_step: int | None = None

    def extend(self, block: _Block, row: int, stop_ids: frozenset[int]) -> None:
        """Take over a finished block, up to the end mark."""
        columns = zip(
            block.tokens[row].tolist(), block.steps[row].tolist(), block.confidence[row].tolist(), strict=True
        )
        for token, step, confidence in columns:
            if token in stop_ids:
                self.stop_step = self.forwards + step
                break
            self.tokens.append(token)
            self.steps.append(self.forwards + step)
            self.confidence.append(confidence)
        self.forwards += int(block.forwards[row])

    def decoded(self) -> Decoded:
        """The finished answer."""
        return Decoded(tuple(self.tokens), tuple(self.steps), self.stop_step, self.forwards, tuple(self.confidence))
