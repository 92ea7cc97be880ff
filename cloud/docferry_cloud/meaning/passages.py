"""The passage that answers a question in other words, by vectors of meaning; none where nothing is near enough."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from docferry_cloud.meaning.embeddings import Embedder, Vector

MOST_PASSAGES = 100
"""Of a document that are compared; a call is not to last for minutes."""

_NEAR = 0.79
"""Product of the vectors of a question and the passage that answers it, at least."""

_BEYOND = 0.045
"""By how much it is more than what the question has with texts about nothing of the kind."""

_STRANGERS_COUNTED = 3

_STRANGERS = (
    "The weather stayed dry, and the children played in the garden.",
    "She opened the window and looked at the street below.",
    "The committee met on Tuesday to discuss several matters.",
    "Music was heard from the house on the other side of the river.",
    "天气很好,孩子们在花园里玩耍。",
    "他打开窗户,看着下面的街道。",
    "委员会星期二开会讨论了几件事情。",
    "这本书有很多页,图书馆里可以借到。",
    "Das Wetter blieb trocken, und die Kinder spielten im Garten.",
    "Sie öffnete das Fenster und sah auf die Straße hinunter.",
)
"""Texts that answer nothing: all products are high with this model, the more so within one language."""

SENTENCES = re.compile(r"(?<=[.!?。！？])\s*(?=\S)")
"""Where one sentence ends and the next begins."""


def nearest(embedder: Embedder, asked: Vector, passages: Sequence[str]) -> tuple[int, float] | None:
    """The place of the passage that answers a question, and how near it is, 0..1; None where none does.

    Args:
        asked: The question's vector.
    """
    if not passages:
        return None
    near = embedder.passages(passages[:MOST_PASSAGES]) @ asked
    strangers = np.sort(embedder.passages(_STRANGERS) @ asked)[-_STRANGERS_COUNTED:]
    best = int(near.argmax())
    score = float(near[best])
    if score < _NEAR or score - float(strangers.mean()) < _BEYOND:
        return None
    return best, min(1.0, score)


def nearest_sentence(embedder: Embedder, asked: Vector, text: str) -> str:
    """The sentence of a passage that answers best."""
    sentences = [part for part in SENTENCES.split(text) if part.strip()]
    if len(sentences) <= 1:
        return text
    near = embedder.passages(sentences) @ asked
    return sentences[int(near.argmax())]
