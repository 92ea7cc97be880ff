"""The port to a model: questions about pictures go in, replies come out in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from docferry.vision.images import Pixels
from docferry_cloud.engine import Cancelled
from docferry_cloud.vlm.answers import Reply
from docferry_cloud.vlm.prompts import MANNERS, Ask, Manner


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One question.

    Attributes:
        ask: What kind it is.
        image: `(height, width, 3)`, BGR, fit to be shown (`pictures`); None for a question without a picture.
        text: Of an open question; the others have their prompt.
        tokens: At most this many come back; 0 for what is usual.
    """

    ask: Ask
    image: Pixels | None
    text: str = ""
    tokens: int = 0

    @property
    def manner(self) -> Manner:
        """How it is put."""
        return MANNERS[self.ask]

    @property
    def prompt(self) -> str:
        """The words that follow the picture."""
        return self.manner.prompt or self.text

    @property
    def most_tokens(self) -> int:
        """Where an answer is cut."""
        return self.tokens or self.manner.tokens


class Model(Protocol):
    """A vision language model, wherever it runs. Safe to use from several threads."""

    @property
    def provenance(self) -> str:
        """Who reads, as it stands in regions and lines: `cloud:vlm-<name>@<weights>`."""

    def ask(self, questions: Sequence[Question], cancelled: Cancelled) -> list[Reply]:
        """Answer every question; one that cannot be answered has its failure in its reply and spoils no other.

        Raises:
            Unavailable: The model cannot be reached, or stopped being there; it may be later.
            EngineError: `cancelled` said True.
        """
