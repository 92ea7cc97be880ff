"""What is done at the desk: a captured file is examined, its route is chosen, and what leaves the device is packed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from docferry_edge.desk import Answer, Hint, Job, OnHint, edge_answer
from docferry_edge.examine import Examined, Noticed, OnNotice
from docferry_edge.pack import Pictures, pack
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import LayoutHint, LineRead, LinesHint
from docferry_edge.route import Policy, plan


class Examiner(Protocol):
    """Reads one frame; `docferry_edge.examine.examine` with everything it needs."""

    def __call__(self, frame: Frame, *, on_notice: OnNotice | None = None) -> Examined:
        """See `examine`."""


class DirectDesk:
    """A desk in this very process: nothing guards it against a reader that hangs or dies.

    Args:
        load: Loads the reader; called once, by `ready`.
        policy: Decides what leaves the device.
        pictures: How that is encoded.
    """

    def __init__(self, load: Callable[[], Examiner], policy: Policy, pictures: Pictures) -> None:
        self._load = load
        self._policy = policy
        self._pictures = pictures
        self._examiner: Examiner | None = None

    def ready(self) -> None:
        """See `Desk`."""
        if self._examiner is None:
            self._examiner = self._load()

    def read(self, job: Job, on_hint: OnHint | None = None) -> Answer:
        """See `Desk`; here no `ReaderStopped` is ever raised."""
        self.ready()
        assert self._examiner is not None
        examined = self._examiner(
            Frame(job.data, job.identity.file_name),
            on_notice=None if on_hint is None else lambda notice: on_hint(hint_of(notice)),
        )
        chosen = plan(examined.assessment, self._policy, job.identity.document_id)
        packed = pack(job.identity, examined, chosen, self._pictures)
        return Answer(packed, edge_answer(examined.assessment.reading.document))

    def close(self) -> None:
        """See `Desk`; a job in work runs to its end."""


def hint_of(notice: Noticed) -> Hint:
    """A notice as a JSON object: `type` is page, layout, lines, line or read; geometry is relative to the page."""
    if isinstance(notice, PageImage):
        frame = [round(float(value), 6) for value in notice.to_frame.ravel()]
        size = {"width": notice.width, "height": notice.height}
        return {"type": "page", **size, "to_frame": frame, "hint": notice.quality.hint}
    if isinstance(notice, LayoutHint):
        found = [{"type": r.type.value, "box": _rounded(r.box), "score": round(r.score, 3)} for r in notice.regions]
        return {"type": "layout", "regions": found}
    if isinstance(notice, LinesHint):
        return {"type": "lines", "polygons": [[_rounded(point) for point in polygon] for polygon in notice.polygons]}
    if isinstance(notice, LineRead):
        line = notice.line
        polygon = [_rounded(point) for point in line.polygon]
        return {"type": "line", "id": line.id, "text": line.text, "polygon": polygon, "score": round(line.score, 3)}
    pages = notice.document.pages
    hint = next((page.quality.hint for page in pages if page.quality.hint), "")
    return {"type": "read", "lines": len(notice.document.lines), "hint": hint}


def _rounded(values: tuple[float, ...]) -> list[float]:
    return [round(value, 4) for value in values]
