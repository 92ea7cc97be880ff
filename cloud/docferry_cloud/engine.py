"""The contract that every engine keeps: what it can do, and reading one page."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

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
        image_page: Which page of `image` it is, from 0: a TIFF may hold a whole document.
        target_risk: Of the lines of the answer at most this share may be wrong, 0..1; None where nobody stated one.
        original_scale: How sharp the device could still show the page: pixels along a side for one of the prepared
            page; 0 if it cannot be asked.
    """

    reading: Page | None = None
    overview: bytes | None = None
    crops: tuple[Crop, ...] = ()
    image: bytes | None = None
    image_page: int = 0
    target_risk: float | None = None
    original_scale: float = 0.0


@dataclass(frozen=True, slots=True)
class Want:
    """A picture that an engine needs to do better.

    Attributes:
        box: Which piece of the page, relative; None for the whole page.
        scale: How sharp, in pixels along a side for one of the prepared page.
        why: In plain words.
        page: Page number, from 0; an engine asked about one page leaves it.
    """

    box: Box | None
    scale: float
    why: str
    page: int = 0


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


@runtime_checkable
class AskingEngine(Engine, Protocol):
    """An engine that can say what else it would need. One that cannot is never waited for."""

    def wants(self, page: PageInput, read: Page) -> tuple[Want, ...]:
        """What would let it read this page better than it did; empty where nothing would, or nothing can be asked."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a deep reading took: questions put to the model, tokens in and out, and its own seconds."""

    questions: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.questions + other.questions,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
        )


class Deepener(Protocol):
    """Reads pages again that another engine has read: what is in doubt, and what that one cannot do."""

    @property
    def name(self) -> str:
        """Short name as it stands in versions."""

    def doubts(self, page: PageInput, read: Page, effort: Effort) -> bool:
        """Whether there is something to read better, and a picture that shows it."""

    def deepen(self, page: PageInput, read: Page, effort: Effort, cancelled: Cancelled) -> tuple[Page, Cost]:
        """The page as it is read with the model's help, and what that took.

        Raises:
            Unavailable: The model cannot be reached now.
            EngineError: The model failed, or `cancelled` said True.
            UnreadableImage, ImageTooLarge: The pixels that were sent cannot be used.
        """


@runtime_checkable
class TwoStepEngine(Engine, Protocol):
    """An engine that answers fast by itself and has a deeper one behind it."""

    @property
    def deep(self) -> Deepener:
        """The second step."""
