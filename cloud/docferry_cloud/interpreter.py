"""The body of the workflow: one stored envelope through the engine to a stored version."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence

from docferry.document import Page
from docferry.errors import DocferryError, EngineError, UnreadableImage
from docferry.packing import unpack_reading
from docferry.status import status_of
from docferry.v1 import analysis_pb2 as analysis_pb
from docferry.v1 import envelope_pb2 as pb
from docferry.vision.images import page_count
from docferry.wire import box_from_proto, document_to_proto
from docferry_cloud.engine import Crop, Effort, Engine, PageInput
from docferry_cloud.interpret import Interpretation, interpret
from docferry_cloud.rows import NewVersion
from docferry_cloud.store import Store
from docferry_cloud.work import MAX_ATTEMPTS, Claim, WorkList

log = logging.getLogger(__name__)

_EFFORTS: Mapping[int, Effort] = {pb.EFFORT_FAST: Effort.FAST, pb.EFFORT_DEEP: Effort.DEEP}
_ASK_EVERY_S = 0.25
_RETRY_WAIT_S = 10.0


class Interpreter:
    """Works on analyses with one engine.

    Args:
        stopping: Set when the service shuts down; work then stops and is given back.
    """

    def __init__(self, store: Store, work: WorkList, engine: Engine, stopping: threading.Event) -> None:
        self._store = store
        self._work = work
        self._engine = engine
        self._stopping = stopping

    def run(self, analysis_id: str) -> None:
        """Claim, interpret and finish one analysis; whatever goes wrong with the document ends in FAILED."""
        with self._work.claimed(analysis_id) as claim:
            if claim is not None:
                self._run(claim)

    def _run(self, claim: Claim) -> None:
        stored = self._store.envelope(claim.analysis_id)
        if stored is None:
            return  # deleted meanwhile
        try:
            version = self._interpret(claim, *stored)
        except DocferryError as error:
            self._settle(claim, error)
        # An engine's libraries raise anything; the document has failed, the service has not.
        except Exception as error:
            reference = str(uuid.uuid4())
            log.exception("analysis %s failed, error %s", claim.analysis_id, reference)
            self._settle(
                claim,
                EngineError(
                    f"the engine failed on this document: {type(error).__name__}",
                    remedy=f"tell the operator the error id {reference}",
                    error_id=reference,
                ),
            )
        else:
            self._work.finish(claim.analysis_id, version)

    def _interpret(self, claim: Claim, body: bytes, supplied: Mapping[str, bytes]) -> NewVersion:
        pages = page_inputs(pb.Envelope.FromString(body), supplied)
        effort = _EFFORTS.get(claim.effort, Effort.AUTO)
        result = interpret(pages, self._engine, effort, self._cancelled(claim.analysis_id))
        return NewVersion(self._engine.name, interpretation_bytes(result))

    def _settle(self, claim: Claim, error: DocferryError) -> None:
        if self._stopping.is_set():
            self._work.release(claim.analysis_id, counts=False)
        elif error.retryable and claim.attempt < MAX_ATTEMPTS:
            self._work.release(claim.analysis_id, wait_s=_RETRY_WAIT_S * claim.attempt, counts=True)
        else:
            self._work.fail(claim.analysis_id, status_of(error))

    def _cancelled(self, analysis_id: str) -> Callable[[], bool]:
        """A question the engine may ask often: the answer is looked up at most every 250 ms."""
        asked = time.monotonic()
        ours = True

        def cancelled() -> bool:
            nonlocal asked, ours
            if ours and time.monotonic() - asked > _ASK_EVERY_S:
                ours = self._work.is_ours(analysis_id)
                asked = time.monotonic()
            return self._stopping.is_set() or not ours

        return cancelled


def page_inputs(envelope: pb.Envelope, supplied: Mapping[str, bytes]) -> tuple[PageInput, ...]:
    """All that reached the cloud, page by page; `supplied` holds the bytes of announced parts by id.

    Raises:
        ImageTooLarge: A file that went up as it is holds too many pages.
    """
    readings = unpack_reading(envelope.structure).document.pages if envelope.HasField("structure") else ()
    original = next((part for part in envelope.parts if part.kind == pb.PART_KIND_ORIGINAL), None)
    if original is not None and not readings:
        return _original_pages(original.data or supplied.get(original.part_id, b""), envelope.file_name)
    count = max([len(readings), *(part.page + 1 for part in envelope.parts)])
    return tuple(
        _page_input(
            readings[number] if number < len(readings) else None,
            [part for part in envelope.parts if part.page == number],
            supplied,
        )
        for number in range(count)
    )


def interpretation_bytes(result: Interpretation) -> bytes:
    """An engine's result as the stored `Interpretation` message."""
    message = analysis_pb.Interpretation(
        document=document_to_proto(result.document), markdown=result.markdown, summary=result.summary
    )
    return message.SerializeToString(deterministic=True)


def _original_pages(data: bytes, name: str) -> tuple[PageInput, ...]:
    try:
        count = page_count(data, name=name or "the file")
    except UnreadableImage:
        # What kind of file it is and whether it can be read is for the engine to say.
        count = 1
    return tuple(PageInput(image=data, image_page=number) for number in range(count))


def _page_input(reading: Page | None, parts: Sequence[pb.Part], supplied: Mapping[str, bytes]) -> PageInput:
    data = {part.part_id: part.data or supplied.get(part.part_id, b"") for part in parts}
    return PageInput(
        reading=reading,
        overview=_first(parts, data, (pb.PART_KIND_OVERVIEW,)),
        crops=tuple(
            Crop(part.part_id, box_from_proto(part.box), data[part.part_id])
            for part in parts
            if part.kind == pb.PART_KIND_CROP
        ),
        image=_first(parts, data, (pb.PART_KIND_PAGE, pb.PART_KIND_ORIGINAL)),
    )


def _first(parts: Sequence[pb.Part], data: Mapping[str, bytes], kinds: Collection[int]) -> bytes | None:
    return next((data[part.part_id] for part in parts if part.kind in kinds), None)
