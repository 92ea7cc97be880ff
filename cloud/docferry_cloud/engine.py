"""The contract that every engine keeps: what it can do, and reading one page."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from docferry.document import Box, Page
from docferry.errors import EngineError

Cancelled = Callable[[], bool]
"""Says True once nobody waits for the answer any more."""


class Task(enum.StrEnum):
    """What an engine may be asked for."""

    TEXT = "text"
    LAYOUT = "layout"
    TABLE = "table"
    FORMULA = "formula"
    ANSWER = "answer"


class Effort(enum.StrEnum):
    """How much work may be spent."""

    FAST = "fast"
    DEEP = "deep"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Crop:
    """A sharp piece of the page: its box (relative to the page) and its encoded pixels."""

    part_id: str
    box: Box
    data: bytes


@dataclass(frozen=True, slots=True)
class PageInput:
    """All that reached the cloud about one page.

    Attributes:
        reading: The edge's reading of the page, or None where no edge has read it.
        overview: The whole page, scaled down, as an encoded image; or None.
        crops: Sharp pieces, in the order of the envelope.
        image: The whole page at full size as an encoded image; or None.
    """

    reading: Page | None = None
    overview: bytes | None = None
    crops: tuple[Crop, ...] = ()
    image: bytes | None = None


def check(cancelled: Cancelled) -> None:
    """Stop here if nobody waits any more.

    Raises:
        EngineError: `cancelled` said True.
    """
    if cancelled():
        raise EngineError("the reading was cancelled", remedy="submit the document again to read it after all")


class Engine(Protocol):
    """A full model. Implementations load everything in their constructor's caller and are safe to call from threads."""

    @property
    def name(self) -> str:
        """Short name as it stands in versions: `pipeline`, `vlm`, ..."""

    @property
    def tasks(self) -> frozenset[Task]:
        """What it can do."""

    def read(self, page: PageInput, effort: Effort, cancelled: Cancelled) -> Page:
        """Read one page; ask `cancelled` between regions and stop with `EngineError` once it says True.

        Raises:
            EngineError: The engine failed on this page.
            UnreadableImage, ImageTooLarge: The pixels that were sent cannot be used.
        """
