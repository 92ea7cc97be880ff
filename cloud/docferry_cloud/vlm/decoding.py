"""Greedy decoding by the rules that servers keep: penalties on what was said, loops and unwanted rows stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from docferry_cloud.engine import Cancelled
from docferry_cloud.vlm.prompts import Manner
from docferry_cloud.vlm.repetition import find_loop

_LOOK_EVERY = 128
"""Tokens between two looks for a loop."""


class Decoding:
    """The rules for one batch. `choose` and `stop` are handed to `generate`.

    Args:
        start: Tokens of the padded prompts; what follows has been said.
        cancelled: One for each row.
    """

    def __init__(self, tokenizer: Any, manner: Manner, start: int, cancelled: Sequence[Cancelled]) -> None:
        self._tokenizer = tokenizer
        self._manner = manner
        self._start = start
        self._cancelled = cancelled
        self._counts: torch.Tensor | None = None
        self._chosen: list[list[float]] = []
        self._stopped = [False] * len(cancelled)

    def choose(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores `(rows, vocabulary)` less the penalties; keeps the log-probability of each row's winner.

        As in vLLM: presence once for every token that was said, frequency for every time.
        """
        manner = self._manner
        given = scores.float()
        if manner.presence or manner.frequency:
            if self._counts is None:
                self._counts = torch.zeros_like(given)
            elif input_ids.shape[1] > self._start:
                self._counts.scatter_add_(1, input_ids[:, -1:], torch.ones_like(given[:, :1]))
            given = given - manner.presence * (self._counts > 0) - manner.frequency * self._counts
        winners = given.argmax(dim=-1, keepdim=True)
        # What the model itself gave it: the penalties are our doing and say nothing of how sure it is.
        sure = torch.log_softmax(scores.float(), dim=-1).gather(1, winners)
        self._chosen.append(sure[:, 0].tolist())
        return given

    def stop(self, input_ids: torch.Tensor, _scores: Any, **_: Any) -> torch.Tensor:
        """Which rows end here: nobody waits for them any more, or they are in a loop."""
        said = input_ids.shape[1] - self._start
        for row, cancelled in enumerate(self._cancelled):
            if not self._stopped[row]:
                self._stopped[row] = cancelled() or (said % _LOOK_EVERY == 0 and self._loops(input_ids[row]))
        return torch.tensor(self._stopped, device=input_ids.device)

    def logprobs(self, row: int) -> list[float]:
        """Of the tokens of one row, natural; those after its end are meaningless."""
        return [step[row] if math.isfinite(step[row]) else -math.inf for step in self._chosen]

    def _loops(self, ids: torch.Tensor) -> bool:
        text = self._tokenizer.decode(ids[self._start :], skip_special_tokens=False)
        return find_loop(text, finished=False) is not None
