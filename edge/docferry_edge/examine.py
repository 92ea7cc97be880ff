"""One captured file through prepare, read and assess: what the edge knows of a document."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources

from docferry.calibration import Calibration, load_calibration
from docferry.document import Degradation, Reading, with_fields
from docferry.fields import extract_fields
from docferry.model_store import default_store
from docferry_edge.assess import Assessment, assess
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Event, LinesHint, Reader

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """A document as the edge sees it.

    Attributes:
        page: The prepared page; crops and overview are cut from its pixels.
        assessment: The reading with fields and confidence, and what is in doubt.
        timings: Milliseconds since the examination began: `hint` (layout and line boxes known) and `read`.
    """

    page: PageImage
    assessment: Assessment
    timings: dict[str, float]


Noticed = PageImage | Event
"""What becomes known on the way: the prepared page, then everything that the reader yields."""

OnNotice = Callable[[Noticed], None]


def examine(
    frame: Frame,
    reader: Reader,
    calibration: Calibration,
    on_notice: OnNotice | None = None,
    degradation: Degradation = Degradation.NONE,
) -> Examined:
    """Prepare, read and assess one frame.

    Args:
        frame: What was captured.
        reader: What it is read with.
        calibration: What the reading is judged by.
        on_notice: Hears of everything as it becomes known.
        degradation: What the reader leaves out to spare the device.

    Raises:
        UnreadableImage, ImageTooLarge: The frame cannot be used.
    """
    began = time.perf_counter()
    page = reader.prepare(frame)
    if on_notice is not None:
        on_notice(page)
    timings: dict[str, float] = {}
    reading: Reading | None = None
    for event in reader.read(page, degradation):
        if isinstance(event, LinesHint):
            timings["hint"] = _since(began)
        if isinstance(event, Reading):
            reading = event
        if on_notice is not None:
            on_notice(event)
    if reading is None:
        raise AssertionError("read() ends with a Reading")
    document = with_fields(reading.document, extract_fields(reading.document))
    assessment = assess(replace(reading, document=document), calibration)
    timings["read"] = _since(began)
    return Examined(page, assessment, timings)


def load_examiner(threads: int) -> Callable[..., Examined]:
    """Load the reader and everything else that examining a frame needs; see `docferry_edge.work.Examiner`.

    Raises:
        ModelError: A model is missing or damaged.
    """
    reader = Reader.load(default_store(), threads=threads)
    calibration = default_calibration()
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


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
