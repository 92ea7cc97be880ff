"""What MinerU's models are asked, word for word as they were trained, and how they are to decode. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from docferry.document import RegionType

SYSTEM = "You are a helpful assistant."


class Ask(enum.StrEnum):
    """What one question to the model is about."""

    LAYOUT = "layout"
    TEXT = "text"
    TABLE = "table"
    FORMULA = "formula"
    PICTURE = "picture"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Manner:
    """How one kind of question is put.

    Attributes:
        prompt: Follows the picture; every one begins with a line feed, as in training. Empty: the question's own text.
        tokens: At most this many come back.
        presence, frequency: Penalties on what has been said before, as in OpenAI's API.
    """

    prompt: str
    tokens: int
    presence: float
    frequency: float


FREE_TOKENS: Final = 128
"""An open question's answer, unless more was asked for."""

MANNERS: Mapping[Ask, Manner] = {
    Ask.LAYOUT: Manner("\nLayout Detection:", 4096, 0.0, 0.0),
    Ask.TEXT: Manner("\nText Recognition:", 2048, 1.0, 0.05),
    Ask.TABLE: Manner("\nTable Recognition:", 4096, 1.0, 0.005),
    Ask.FORMULA: Manner("\nFormula Recognition:", 1024, 1.0, 0.05),
    Ask.PICTURE: Manner("\nImage Analysis:", 1024, 1.0, 0.05),
    Ask.FREE: Manner("", FREE_TOKENS, 0.0, 0.0),
}

NO_REPEAT = 100
"""No run of this many tokens comes twice; servers that know the rule are told, the others ignore it."""

_ASKED: Mapping[RegionType, Ask] = {
    RegionType.TABLE: Ask.TABLE,
    RegionType.EQUATION: Ask.FORMULA,
    RegionType.CHART: Ask.PICTURE,
    RegionType.IMAGE: Ask.PICTURE,
}


def ask_of(kind: RegionType) -> Ask:
    """The question that a region's type calls for."""
    return _ASKED.get(kind, Ask.TEXT)
