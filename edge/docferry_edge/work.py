"""What is done at the desk: a captured file is examined, its route is chosen, and what leaves the device is packed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from docferry.document import Degradation
from docferry.v1 import analysis_service_pb2, envelope_pb2
from docferry.wire import route_to_proto
from docferry_edge.desk import Answer, Hint, Job, OnHint, Packed, edge_answer
from docferry_edge.dispatch import dispatch
from docferry_edge.examine import Examined, Noticed, OnNotice
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import LayoutHint, LineRead, LinesHint


class Examiner(Protocol):
    """Reads one frame; `docferry_edge.examine.examine` with everything it needs."""

    def __call__(
        self, frame: Frame, *, on_notice: OnNotice | None = None, degradation: Degradation = Degradation.NONE
    ) -> Examined:
        """See `examine`."""


class DirectDesk:
    """A desk in this very process: nothing guards it against a reader that hangs or dies.

    Args:
        load: Loads a reader that uses so many threads; called by `ready`, and when the number must change.
        policies: Decide what leaves the device.
        pictures: How that is encoded.
        threads: Threads a page may use on a device at ease.
    """

    def __init__(
        self, load: Callable[[int], Examiner], policies: Policies, pictures: Pictures, threads: int = 2
    ) -> None:
        self._load = load
        self._policies = policies
        self._pictures = pictures
        self._threads = threads
        self._loaded: tuple[int, Examiner] | None = None

    def ready(self) -> None:
        """See `Desk`."""
        if self._loaded is None:
            self._loaded = (self._threads, self._load(self._threads))

    def read(self, job: Job, on_hint: OnHint | None = None) -> Answer:
        """See `Desk`; here no `ReaderStopped` is ever raised."""
        degradation = job.strain.degradation
        examined = self._examiner(degradation)(
            Frame(job.data, job.identity.file_name),
            on_notice=None if on_hint is None else lambda notice, page: on_hint({**hint_of(notice), "page": page}),
            degradation=degradation,
        )
        made = dispatch(
            job.identity, examined, self._policies, self._pictures, room=job.room, reasons=job.strain.reasons
        )
        answer = edge_answer(made.document)
        if made.packed is None:
            why = envelope_pb2.Envelope(route=route_to_proto(made.plan.route))
            request = analysis_service_pb2.SubmitRequest(envelope=why).SerializeToString()
            return Answer(Packed(request, (), examined.timings), answer, leaves=False)
        return Answer(made.packed, answer, page=made.plan.page is not None)

    def _examiner(self, degradation: Degradation) -> Examiner:
        """The reader with as many threads as that step leaves it; threads are fixed when networks are loaded."""
        fewer = degradation >= Degradation.FEWER_THREADS
        threads = max(1, self._threads // 2) if fewer else self._threads
        if self._loaded is None or self._loaded[0] != threads:
            # The old networks go first: this may be about memory.
            self._loaded = None
            self._loaded = (threads, self._load(threads))
        return self._loaded[1]

    def close(self) -> None:
        """See `Desk`; a job in work runs to its end."""


def hint_of(notice: Noticed) -> Hint:
    """A notice as a JSON object: `type` is page, layout, lines, line or read; geometry is relative to the page.

    A hint also says which `page` it is of, from 0.
    """
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
