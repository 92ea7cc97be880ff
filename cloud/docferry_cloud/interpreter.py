"""The body of the workflow: one stored envelope through the engine to a stored version."""

from __future__ import annotations

import functools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from docferry.document import Page
from docferry.errors import DocferryError, EngineError, Unavailable, UnreadableImage
from docferry.logs import about
from docferry.metrics import Metrics
from docferry.packing import unpack_reading
from docferry.status import status_of
from docferry.tracing import Span, Tell, now_ns, span_id, untold
from docferry.v1 import analysis_pb2 as analysis_pb
from docferry.v1 import envelope_pb2 as pb
from docferry.wire import box_from_proto, document_to_proto
from docferry_cloud.blobs import StoreAway
from docferry_cloud.content_key import content_key, said_before
from docferry_cloud.deep_notices import DEEP_FOLLOWS, cost_of, deep_missing
from docferry_cloud.deepening import deepen, in_doubt
from docferry_cloud.dialects import DatabaseAway
from docferry_cloud.documents.files import count_pages
from docferry_cloud.engine import Crop, Effort, Engine, PageInput, TwoStepEngine
from docferry_cloud.interpret import Interpretation, interpret
from docferry_cloud.log_ids import ids_of
from docferry_cloud.page_progress import PageProgress
from docferry_cloud.rows import NewVersion, WantRow
from docferry_cloud.schema import WantState
from docferry_cloud.still_ours import no_longer_wanted
from docferry_cloud.store import Store
from docferry_cloud.wanted import part_of
from docferry_cloud.work import MAX_ATTEMPTS, Claim, WorkList

log = logging.getLogger(__name__)

EFFORTS: Mapping[int, Effort] = {pb.EFFORT_FAST: Effort.FAST, pb.EFFORT_DEEP: Effort.DEEP}
_RETRY_WAIT_S = 10.0
_STORE_WAIT_S = 1.0


class Interpreter:
    """Works on analyses with one engine.

    Args:
        stopping: Set when the service shuts down; work then stops and is given back.
        patience_s: How long an analysis waits for pictures that the engine asks the device for; 0 asks for none.
        remember: Whether exactly the same content of a tenant is answered from what was read before.
        metrics: Of `docferry_cloud.metrics`.
        tell: Takes spans.
        progress_s: Seconds between two events that tell how far a document has come, at least.
        deep_retry_s: Before the full model is asked again for an answer that it owed.
    """

    def __init__(
        self,
        store: Store,
        work: WorkList,
        engine: Engine,
        stopping: threading.Event,
        patience_s: float = 0.0,
        *,
        remember: bool = False,
        metrics: Metrics,
        tell: Tell = untold,
        progress_s: float = 1.0,
        deep_retry_s: float = 5.0,
    ) -> None:
        self._store = store
        self._work = work
        self._engine = engine
        self._deep = engine.deep if isinstance(engine, TwoStepEngine) else None
        self._stopping = stopping
        self._patience_s = patience_s
        self._remember = remember
        self._metrics = metrics
        self._tell = tell
        self._progress_s = progress_s
        self._deep_retry_s = deep_retry_s

    def run(self, analysis_id: str) -> None:
        """Claim, interpret and finish one analysis; whatever goes wrong with the document ends in FAILED."""
        with self._work.claimed(analysis_id) as claim:
            if claim is not None:
                if claim.attempt == 1:
                    self._metrics.observe("docferry_queue_wait_seconds", claim.waited_s)
                began, start_ns = time.perf_counter(), now_ns()
                with about(**ids_of(claim.analysis_id, claim.document_id, claim.tenant)):
                    outcome = self._run(claim)
                    log.info("interpretation %s, attempt %d", outcome, claim.attempt)
                self._metrics.observe("docferry_interpret_seconds", time.perf_counter() - began, outcome)
                self._trace(claim, start_ns, outcome)

    def _trace(self, claim: Claim, start_ns: int, outcome: str) -> None:
        """Tell of the work and, if it ended the analysis, of the event that was stored with it."""
        # Work may begin many times: the time sets one apart from the next.
        key, end_ns, document_id = f"{claim.analysis_id}:{start_ns}", now_ns(), claim.document_id
        submitted, failure = span_id("submit", claim.analysis_id), "FAILED" if outcome == "failed" else ""
        told: dict[str, str | int] = {
            "attempt": claim.attempt,
            "outcome": outcome,
            "engine": self._engine.name,
        }
        self._tell(Span("interpret", document_id, key, start_ns, end_ns, submitted, failure, told))
        if outcome in {"succeeded", "failed"}:
            work = span_id("interpret", key)
            self._tell(Span("publish", document_id, claim.analysis_id, end_ns, end_ns, work))

    def _run(self, claim: Claim) -> str:
        """Work on it; gives the outcome as `docferry_interpret_seconds` names it."""
        try:
            stored = self._store.envelope(claim.analysis_id)
            # None: deleted meanwhile.
            return "released" if stored is None else self._interpret(claim, *stored)
        except (DatabaseAway, StoreAway):
            # Neither says anything of the document. If not even this can be stored, the sweeper sets it free.
            self._work.release(claim.analysis_id, wait_s=_STORE_WAIT_S, counts=False)
            return "released"
        except DocferryError as error:
            return self._settle(claim, error)
        # An engine's libraries raise anything; the document has failed, the service has not.
        except Exception as error:  # noqa: BLE001
            return self._settle(claim, _unforeseen(claim, "the engine", error))

    def _interpret(self, claim: Claim, body: bytes, supplied: Mapping[str, bytes]) -> str:
        analysis_id = claim.analysis_id
        asked = self._store.asked(analysis_id)
        waited_for = [want for want in asked if want.blocking]
        notices = missing_notices(waited_for)
        if waited_for and all(want.state is not WantState.SUPPLIED for want in waited_for):
            # The engine would say again what it said before.
            before = self._store.newest(analysis_id)
            if before is not None and before.engine == self._engine.name:
                same = NewVersion(before.engine, with_notices(before.interpretation, notices))
                # Whether the full model has anything to add is looked at when its turn comes.
                later = 0.0 if self._deep is not None and claim.effort != pb.EFFORT_FAST else None
                return self._finished(analysis_id, same, deepen_in_s=later)
        envelope = pb.Envelope.FromString(body)
        # What a device was asked for is no part of what it sent: such an answer is its own analysis's alone.
        # An answer from before there was a full model is none of one that has it.
        names = [self._engine.name, *([self._deep.name] if self._deep is not None else [])]
        key = content_key(envelope, "+".join(names)) if self._remember and not asked else None
        known = None if key is None else self._work.read_before(analysis_id, key, names)
        if key is not None:
            self._metrics.count("docferry_cache_lookups_total", "miss" if known is None else "hit")
        if known is not None:
            read_in, version = known
            answer = with_notices(version.interpretation, [said_before(read_in)])
            return self._finished(analysis_id, NewVersion(version.engine, answer))
        envelope.parts.extend(part_of(want) for want in asked if want.state is WantState.SUPPLIED)
        # One round of asking: an engine that is never content must not keep a document for ever.
        can_ask = self._patience_s > 0 and not waited_for
        pages = page_inputs(envelope, supplied, can_ask=can_ask)
        effort = EFFORTS.get(claim.effort, Effort.AUTO)
        told = functools.partial(self._work.progress, analysis_id)
        progress = PageProgress(len(pages), told, every_s=self._progress_s)
        cancelled = no_longer_wanted(self._stopping, functools.partial(self._work.is_ours, analysis_id))
        result = interpret(pages, self._engine, effort, cancelled, on_page=progress.page_done)
        if can_ask and result.wants:
            notice = _asking(len(result.wants), self._patience_s)
            version = NewVersion(self._engine.name, interpretation_bytes(result, [notice]))
            return "asked" if self._work.ask(analysis_id, version, result.wants, self._patience_s) else "released"
        return self._deepened(claim, pages, result, effort, cancelled, notices, key)

    def _deepened(
        self,
        claim: Claim,
        pages: Sequence[PageInput],
        result: Interpretation,
        effort: Effort,
        cancelled: Callable[[], bool],
        notices: Sequence[analysis_pb.Notice],
        key: bytes | None,
    ) -> str:
        """The full model's answer where it was asked for, the fast one where it must do for now or is enough."""
        fast = functools.partial(NewVersion, self._engine.name)
        doubted = self._deep is not None and in_doubt(pages, result.document, self._deep, effort)
        if self._deep is None or not doubted:
            return self._finished(claim.analysis_id, fast(interpretation_bytes(result, notices)), key)
        if effort is not Effort.DEEP:
            told = interpretation_bytes(result, [*notices, DEEP_FOLLOWS])
            return self._finished(claim.analysis_id, fast(told), deepen_in_s=0.0)
        try:
            deeper, cost = deepen(pages, result.document, self._deep, effort, cancelled)
        except (DatabaseAway, StoreAway):
            raise
        # Whatever its libraries raise, the fast answer is here and stands.
        except Exception as error:
            if cancelled():
                raise
            known = error if isinstance(error, DocferryError) else _unforeseen(claim, "the full model", error)
            log.warning("the fast answer stands for now: %s", known)
            # Pixels that cannot be used are no better later.
            again = isinstance(known, Unavailable | EngineError)
            told = interpretation_bytes(result, [*notices, deep_missing(known, again=again)])
            later = self._deep_retry_s if again else None
            return self._finished(claim.analysis_id, fast(told), deepen_in_s=later)
        told = interpretation_bytes(deeper, [*notices, cost_of(cost)])
        return self._finished(claim.analysis_id, NewVersion(self._deep.name, told), key)

    def _finished(
        self, analysis_id: str, version: NewVersion, key: bytes | None = None, *, deepen_in_s: float | None = None
    ) -> str:
        done = self._work.finish(analysis_id, version, key, deepen_in_s=deepen_in_s)
        return "succeeded" if done else "released"

    def _settle(self, claim: Claim, error: DocferryError) -> str:
        if self._stopping.is_set():
            self._work.release(claim.analysis_id, counts=False)
        elif error.retryable and claim.attempt < MAX_ATTEMPTS:
            self._work.release(claim.analysis_id, wait_s=_RETRY_WAIT_S * claim.attempt, counts=True)
        else:
            return "failed" if self._work.fail(claim.analysis_id, status_of(error)) else "released"
        return "released"


def page_inputs(
    envelope: pb.Envelope, supplied: Mapping[str, bytes], *, can_ask: bool = False
) -> tuple[PageInput, ...]:
    """All that reached the cloud, page by page.

    Args:
        supplied: The bytes of parts that came by Supply, by id.
        can_ask: Whether the device may be asked for more.

    Raises:
        ImageTooLarge: A file that went up as it is holds too many pages.
    """
    readings = unpack_reading(envelope.structure).document.pages if envelope.HasField("structure") else ()
    original = next((part for part in envelope.parts if part.kind == pb.PART_KIND_ORIGINAL), None)
    if original is not None and not readings:
        return _original_pages(original.data or supplied.get(original.part_id, b""), envelope.file_name)
    count = max([len(readings), *(part.page + 1 for part in envelope.parts)])
    inputs = (
        _page_input(
            readings[number] if number < len(readings) else None,
            [part for part in envelope.parts if part.page == number],
            supplied,
        )
        for number in range(count)
    )
    if not can_ask:
        return tuple(inputs)
    scale = envelope.original_percent / 100
    # What the device has accepted with a stated risk is not asked for again.
    accepted = max(envelope.route.target_risk, envelope.route.risk) if envelope.route.target_risk else None
    return tuple(replace(page, target_risk=accepted, original_scale=scale) for page in inputs)


def _unforeseen(claim: Claim, who: str, error: Exception) -> EngineError:
    """What to tell of an error that a library raised; the log has all of it, under the same id."""
    reference = str(uuid.uuid4())
    log.error("analysis %s: %s failed, error %s", claim.analysis_id, who, reference, exc_info=error)
    return EngineError(
        f"{who} failed on this document: {type(error).__name__}",
        remedy=f"tell the operator the error id {reference}",
        error_id=reference,
    )


def interpretation_bytes(result: Interpretation, notices: Sequence[analysis_pb.Notice] = ()) -> bytes:
    """An engine's result as the stored `Interpretation` message."""
    message = analysis_pb.Interpretation(
        document=document_to_proto(result.document), markdown=result.markdown, summary=result.summary, notices=notices
    )
    return message.SerializeToString(deterministic=True)


def _original_pages(data: bytes, name: str) -> tuple[PageInput, ...]:
    try:
        count = count_pages(data, name or "the file")
    except UnreadableImage:
        # What kind of file it is and whether it can be read is for the engine to say.
        count = 1
    return tuple(PageInput(image=data, image_page=number) for number in range(count))


def with_notices(interpretation: bytes, notices: Sequence[analysis_pb.Notice]) -> bytes:
    """A stored `Interpretation` with other notices."""
    message = analysis_pb.Interpretation.FromString(interpretation)
    del message.notices[:]
    message.notices.extend(notices)
    return message.SerializeToString(deterministic=True)


def missing_notices(waited_for: Sequence[WantRow]) -> tuple[analysis_pb.Notice, ...]:
    """What to say of pictures that an engine asked the device for and that are not here: refused, or not in time."""
    notices: list[analysis_pb.Notice] = []
    of = f"of {len(waited_for)} pictures that were asked of the device"
    refused = [want.refusal for want in waited_for if want.state is WantState.REFUSED and want.refusal is not None]
    if refused:
        reasons = {reason.code: reason.detail for reason in map(analysis_pb.Notice.FromString, refused)}
        why = "; ".join(f"{code}: {detail}" for code, detail in reasons.items())
        notices.append(analysis_pb.Notice(code="PARTS_REFUSED", detail=f"{len(refused)} {of} were refused: {why}"))
    late = sum(want.state is WantState.LAPSED for want in waited_for)
    if late:
        notices.append(analysis_pb.Notice(code="PARTS_MISSING", detail=f"{late} {of} did not come in time"))
    return tuple(notices)


def _asking(count: int, patience_s: float) -> analysis_pb.Notice:
    detail = f"{count} pictures were asked of the device; without them the answer stays as it is after {patience_s:g} s"
    return analysis_pb.Notice(code="PARTS_WANTED", detail=detail)


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
