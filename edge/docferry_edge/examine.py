"""One captured file through prepare, read and assess: what the edge knows of a document."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path

from docferry.calibration import Calibration, load_calibration
from docferry.document import Degradation, Document, Page, Reading
from docferry.errors import ConfigurationError
from docferry.model_store import default_store
from docferry.vision.images import page_count
from docferry_edge.assess import Assessment, assess
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Event, LinesHint, Reader

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """A document as the edge sees it.

    Attributes:
        page: The first prepared page; crops and overview are cut from its pixels.
        assessment: The reading with fields and confidence, and what is in doubt.
        timings: Milliseconds since the examination began: `hint` (layout and line boxes of the first page known) and
            `read`.
        others: The pages after the first. They may be prepared anew whenever they are asked for.
        frame: What was captured, where crops may be cut from it, sharper than the page; None where they must not.
    """

    page: PageImage
    assessment: Assessment
    timings: dict[str, float]
    others: Iterable[PageImage] = ()
    frame: Frame | None = None

    @property
    def pages(self) -> Iterator[PageImage]:
        """All prepared pages in order; keep no more than one of them."""
        return itertools.chain((self.page,), self.others)


Noticed = PageImage | Event
"""What becomes known on the way: the prepared page, then everything that the reader yields."""

OnNotice = Callable[[Noticed, int], None]
"""Hears of something on a page; pages count from 0."""


def examine(
    frame: Frame,
    reader: Reader,
    calibration: Calibration,
    on_notice: OnNotice | None = None,
    degradation: Degradation = Degradation.NONE,
) -> Examined:
    """Prepare, read and assess one captured file, page by page.

    Args:
        frame: What was captured.
        reader: What it is read with.
        calibration: What the reading is judged by.
        on_notice: Hears of everything as it becomes known.
        degradation: What the reader leaves out to spare the device.

    Raises:
        UnreadableImage, ImageTooLarge: The frame, or a page of it, cannot be used.
    """
    began = time.perf_counter()
    count = page_count(frame.data, name=frame.name)
    timings: dict[str, float] = {}
    first: PageImage | None = None
    pages: list[Page] = []
    for number in range(count):
        page = reader.prepare(replace(frame, page=number))
        first = first or page
        tell = None if on_notice is None else partial(_tell, on_notice, number)
        if tell is not None:
            tell(page)
        for event in reader.read(page, degradation):
            if isinstance(event, LinesHint):
                timings.setdefault("hint", _since(began))
            if isinstance(event, Reading):
                pages += event.document.pages
            if tell is not None:
                tell(event)
    assert first is not None
    assessment = assess(Reading(Document(tuple(pages)), reader.name, degradation), calibration)
    timings["read"] = _since(began)
    return Examined(first, assessment, timings, _LaterPages(reader, frame, count), frame)


@dataclass(frozen=True, slots=True)
class _LaterPages:
    """The pages after the first, prepared anew each time: all at once would not fit into a kiosk's memory."""

    reader: Reader
    frame: Frame
    count: int

    def __iter__(self) -> Iterator[PageImage]:
        return (self.reader.prepare(replace(self.frame, page=number)) for number in range(1, self.count))


def load_examiner(threads: int, calibrated: Path | None = None) -> Callable[..., Examined]:
    """Load the reader and everything else that examining a frame needs; see `docferry_edge.work.Examiner`.

    Args:
        threads: Threads each network may use.
        calibrated: A calibration that `docferry calibrate` wrote; the shipped one when None.

    Raises:
        ModelError: A model is missing or damaged.
        ConfigurationError: The calibration is missing, or none.
    """
    reader = Reader.load(default_store(), threads=threads)
    calibration = default_calibration() if calibrated is None else calibration_of(calibrated)
    if calibration.reader != reader.name:
        _log.warning(
            "the calibration is fitted for %s, not for %s: confidences are less certain",
            calibration.reader,
            reader.name,
        )
    return lambda frame, **options: examine(frame, reader, calibration, **options)


def default_calibration() -> Calibration:
    """The calibration that ships with the package, fitted on generated documents only."""
    file = resources.files("docferry_edge") / "calibration.json"
    return load_calibration(file.read_text(encoding="utf-8"), "the shipped calibration")


def _tell(on_notice: OnNotice, number: int, notice: Noticed) -> None:
    on_notice(notice, number)


def calibration_of(file: Path) -> Calibration:
    """A calibration that `docferry calibrate` wrote.

    Raises:
        ConfigurationError: There is no such file, or it is no calibration.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{file}: cannot be read: {error}", remedy="set read.calibration to a file of `docferry calibrate`"
        ) from None
    return load_calibration(text, str(file))


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
