"""One captured file through prepare, read and assess: what the edge knows of a document."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources

from docferry.calibration import Calibration, load_calibration
from docferry.document import Reading, with_fields
from docferry.fields import extract_fields
from docferry_edge.assess import Assessment, assess
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Event, LinesHint, Reader


@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """A document as the edge sees it.

    Attributes:
        page: The prepared page; crops and overview are cut from its pixels.
        assessment: The reading with fields and confidence, and what is in doubt.
        timings: Milliseconds since the examination began: `hint` (layout and line boxes known) and `read`.
        frame: What was captured, where crops may be cut from it, sharper than the page; None where they must not.
    """

    page: PageImage
    assessment: Assessment
    timings: dict[str, float]
    frame: Frame | None = None


def examine(
    frame: Frame, reader: Reader, calibration: Calibration, on_event: Callable[[Event], None] | None = None
) -> Examined:
    """Prepare, read and assess one frame; `on_event` hears of every hint as it comes.

    Raises:
        UnreadableImage, ImageTooLarge: The frame cannot be used.
    """
    began = time.perf_counter()
    page = reader.prepare(frame)
    timings: dict[str, float] = {}
    reading: Reading | None = None
    for event in reader.read(page):
        if isinstance(event, LinesHint):
            timings["hint"] = _since(began)
        if isinstance(event, Reading):
            reading = event
        if on_event is not None:
            on_event(event)
    if reading is None:
        raise AssertionError("read() ends with a Reading")
    document = with_fields(reading.document, extract_fields(reading.document))
    assessment = assess(replace(reading, document=document), calibration)
    timings["read"] = _since(began)
    return Examined(page, assessment, timings, frame)


def default_calibration() -> Calibration:
    """The calibration that ships with the package, fitted on generated documents only."""
    file = resources.files("docferry_edge") / "calibration.json"
    return load_calibration(file.read_text(encoding="utf-8"), "the shipped calibration")


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
