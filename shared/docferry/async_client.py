"""The client SDK for programs with an event loop; `docferry.client` is its blocking twin.

async with AsyncClient.connect("127.0.0.1:50051") as client:
    analysis = await client.submit_file(Path("receipt.jpg"))
    analysis = await client.wait(analysis.analysis_id, within=60)
    for field in analysis.versions[-1].interpretation.document.fields:
        print(field.name, field.normalized, field.confidence)
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from docferry.channel import (
    MAX_CHUNK_BYTES,
    STREAM_PAUSE_S,
    UNARY_DEADLINE_S,
    WATCH_DEADLINE_S,
    LinkTimes,
    call_metadata,
    open_channel,
)
from docferry.document import Box
from docferry.errors import EnvelopeError, Unavailable
from docferry.fields.schema import wanted_fields
from docferry.schema_filling import Leaves, leaves, value_of
from docferry.status import error_from_rpc
from docferry.upload import original_envelope, read_file
from docferry.v1 import (
    analysis_pb2,
    analysis_service_pb2,
    claim_service_pb2,
    device_service_pb2,
    envelope_pb2,
    event_pb2,
)
from docferry.wire import box_to_proto

_ANALYSES = "/docferry.v1.AnalysisService"
_CLAIMS = "/docferry.v1.ClaimService"
_DEVICES = "/docferry.v1.DeviceService"
_FINISHED = frozenset(
    {
        analysis_pb2.Analysis.STATE_SUCCEEDED,
        analysis_pb2.Analysis.STATE_FAILED,
        analysis_pb2.Analysis.STATE_CANCELLED,
    }
)
_FIRST_PAUSE_S = 0.2
_EXPORT_S = 300.0
Answer = TypeVar("Answer", bound=Message)
Progress = Callable[[int, int], None]
"""Called with bytes sent so far and bytes in all."""


class AsyncClient:
    """Talks to one service over one channel. Use as an async context manager, within one event loop.

    Every failed call raises the `DocferryError` it stands for.

    Args:
        metadata: Sent with every call, beside the token's.
    """

    def __init__(
        self, channel: grpc.aio.Channel, *, token: str = "", metadata: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self._channel = channel
        self._metadata = (*call_metadata(token), *metadata)

    @classmethod
    def connect(cls, target: str, *, token: str = "", ca: Path | None = None, times: LinkTimes | None = None) -> Self:
        """A client of the service at `target` (HOST:PORT); nothing is sent before the first call."""
        return cls(open_channel(target, token=token, ca=ca, times=times), token=token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()

    async def submit(
        self, request: analysis_service_pb2.SubmitRequest | bytes, *, traceparent: str = ""
    ) -> analysis_pb2.Analysis:
        """Submit an envelope; bytes are a serialized SubmitRequest and go out exactly as they are.

        Args:
            traceparent: Of W3C's form (`docferry.tracing`); empty if nobody traces.
        """
        raw = request if isinstance(request, bytes) else request.SerializeToString()
        more = (("traceparent", traceparent),) if traceparent else ()
        response = await self._call("Submit", raw, analysis_service_pb2.SubmitResponse, metadata=more)
        return response.analysis

    async def supply(
        self, analysis_id: str, part_id: str, data: bytes, *, offset: int = 0, progress: Progress | None = None
    ) -> int:
        """Send the bytes of an announced part from `offset` on, in chunks; gives the bytes of all messages sent."""
        sent, digest = 0, hashlib.sha256(data).digest()
        while offset < len(data):
            request = analysis_service_pb2.SupplyRequest(
                analysis_id=analysis_id,
                part_id=part_id,
                offset=offset,
                total_size=len(data),
                sha256=digest,
                data=data[offset : offset + MAX_CHUNK_BYTES],
            ).SerializeToString()
            response = await self._call("Supply", request, analysis_service_pb2.SupplyResponse)
            sent += len(request)
            if response.received <= offset and response.received < len(data):
                raise EnvelopeError(
                    f"part {part_id}: its {len(data)} bytes do not match the sha256 the envelope announced",
                    remedy="capture the document again",
                )
            offset = response.received
            if progress is not None:
                progress(offset, len(data))
        return sent

    async def submit_file(
        self,
        path: Path,
        *,
        effort: envelope_pb2.Effort.ValueType = envelope_pb2.EFFORT_AUTO,
        request_id: str = "",
        progress: Progress | None = None,
    ) -> analysis_pb2.Analysis:
        """Submit a file as it is, without an edge; large files go in resumable chunks.

        Give the same `request_id` to send the same file again without making a second analysis.
        """
        data = read_file(path)
        envelope = original_envelope(path.name, data, request_id=request_id or str(uuid.uuid4()), effort=effort)
        analysis = await self.submit(analysis_service_pb2.SubmitRequest(envelope=envelope))
        for want in analysis.wants:
            await self.supply(analysis.analysis_id, want.part_id, data, offset=want.received, progress=progress)
        return analysis

    async def get(self, analysis_id: str = "", *, document_id: str = "") -> analysis_pb2.Analysis:
        """One analysis by its id or by its document's."""
        request = analysis_service_pb2.AnalysisServiceGetRequest(analysis_id=analysis_id, document_id=document_id)
        response = await self._call("Get", request.SerializeToString(), analysis_service_pb2.AnalysisServiceGetResponse)
        return response.analysis

    async def request_part(
        self, analysis_id: str, page: int = 0, *, box: Box | None = None, scale: float = 1.0
    ) -> tuple[str, analysis_pb2.Analysis]:
        """Ask the device for a picture of a page, or of a piece of it; gives its part id and the analysis.

        It is awaited while it stands in the analysis's `wants`; an event WANTS_CHANGED tells when that is over.

        Raises:
            PixelsUnavailable: The device keeps no original.
        """
        request = analysis_service_pb2.RequestPartRequest(
            analysis_id=analysis_id, page=page, box=None if box is None else box_to_proto(box), scale=scale
        )
        response = await self._call(
            "RequestPart", request.SerializeToString(), analysis_service_pb2.RequestPartResponse
        )
        return response.part_id, response.analysis

    async def part(self, analysis_id: str, part_id: str) -> tuple[envelope_pb2.Part, bytes]:
        """What a part that is here is, and its bytes.

        Raises:
            NotFound: It is not here.
        """
        request = analysis_service_pb2.GetPartRequest(analysis_id=analysis_id, part_id=part_id)
        part, pieces = envelope_pb2.Part(), []
        async for response in self._stream(
            f"{_ANALYSES}/GetPart", request, analysis_service_pb2.GetPartResponse, within=UNARY_DEADLINE_S
        ):
            if response.HasField("part"):
                part = response.part
            pieces.append(response.data)
        data = b"".join(pieces)
        if hashlib.sha256(data).digest() != part.sha256:
            raise Unavailable(f"part {part_id} did not come whole", remedy="ask again")
        return part, data

    async def export(
        self, analysis_id: str, kind: analysis_service_pb2.ExportRequest.Format.ValueType, *, version: int = 0
    ) -> tuple[bytes, str]:
        """An analysis as a file: its bytes and MIME type; `version` 0 is the newest.

        Raises:
            NotFound: No such analysis.
            PixelsUnavailable: The format shows pages whose pixels are not with the service.
        """
        request = analysis_service_pb2.ExportRequest(analysis_id=analysis_id, format=kind, version=version)
        pieces: list[bytes] = []
        media_type = ""
        async for response in self._stream(
            f"{_ANALYSES}/Export", request, analysis_service_pb2.ExportResponse, within=_EXPORT_S
        ):
            media_type = media_type or response.media_type
            pieces.append(response.data)
        return b"".join(pieces), media_type

    async def ask(self, analysis_id: str, question: str) -> analysis_pb2.Answer:
        """Answer a question from the newest version; `answer` is empty where the document does not hold it.

        Raises:
            NotFound: No such analysis.
            Conflict: Nothing has been read yet.
        """
        request = analysis_service_pb2.AskRequest(analysis_id=analysis_id, question=question)
        answer = analysis_pb2.Answer(question=question)
        async for response in self._stream(
            f"{_ANALYSES}/Ask", request, analysis_service_pb2.AskResponse, within=UNARY_DEADLINE_S
        ):
            if response.HasField("answer"):
                answer = response.answer
        return answer

    async def fill(self, analysis_id: str, schema: Any, *, version: int = 0) -> Leaves:
        """What the document says to each leaf of a schema, by the leaf's path, in the schema's order.

        Each leaf is as `docferry.schema_filling.leaves` says; `docferry.fields.schema.in_shape` gives the whole.

        Args:
            schema: A parsed JSON Schema of an object, or a list of questions.
            version: 0 is the newest.

        Raises:
            NotFound: No such analysis or version.
            ConfigurationError: The schema cannot be filled.
            Conflict: Nothing has been read yet.
        """
        paths = [wanted.path for wanted in wanted_fields(schema)]
        request = analysis_service_pb2.FillRequest(analysis_id=analysis_id, schema=value_of(schema), version=version)
        response = await self._call("Fill", request.SerializeToString(), analysis_service_pb2.FillResponse)
        found = leaves(response)
        return {path: found[path] for path in paths}

    async def cancel(self, analysis_id: str) -> analysis_pb2.Analysis:
        """Stop the work on an analysis; a finished one stays as it is."""
        request = analysis_service_pb2.CancelRequest(analysis_id=analysis_id)
        response = await self._call("Cancel", request.SerializeToString(), analysis_service_pb2.CancelResponse)
        return response.analysis

    async def claim(self, analysis_id: str, *, open_within_s: float | None = None) -> str:
        """A one-time link by which whoever opens it first sees this analysis; empty where nobody knows its address.

        Args:
            open_within_s: Seconds for which it can be opened, at most 7 days; a day by default.
        """
        request = claim_service_pb2.ClaimServiceCreateRequest(analysis_id=analysis_id)
        if open_within_s is not None:
            request.open_within.FromMilliseconds(round(open_within_s * 1000))
        answer = claim_service_pb2.ClaimServiceCreateResponse
        return (await self._call("Create", request.SerializeToString(), answer, service=_CLAIMS)).link

    async def correct(
        self, analysis_id: str, version: int, lines: Sequence[analysis_service_pb2.LineCorrection]
    ) -> analysis_pb2.Analysis:
        """Put lines of a version right; gives the analysis with the new one.

        Raises:
            Outdated: Another version is the newest.
            InputError: There is no such line.
        """
        request = analysis_service_pb2.CorrectRequest(analysis_id=analysis_id, version=version, lines=lines)
        response = await self._call("Correct", request.SerializeToString(), analysis_service_pb2.CorrectResponse)
        return response.analysis

    async def delete(self, analysis_id: str) -> None:
        """Delete an analysis and all its data now."""
        request = analysis_service_pb2.AnalysisServiceDeleteRequest(analysis_id=analysis_id)
        await self._call("Delete", request.SerializeToString(), analysis_service_pb2.AnalysisServiceDeleteResponse)

    async def watch(
        self, resume_token: str = "", *, analysis_id: str = "", live_only: bool = False, progress: bool = False
    ) -> AsyncGenerator[event_pb2.Event, None]:
        """Events in order, for ever: a broken stream is taken up again where it stopped.

        Args:
            resume_token: Of the last event that was handled; empty for all that are kept.
            analysis_id: Only those about this analysis; empty for all of the tenant's.
            live_only: Without a token, only those from now on.
            progress: Also those that tell how many pages have been read (TYPE_PROGRESS).
        """

        def request() -> Message:
            return analysis_service_pb2.AnalysisServiceWatchRequest(
                resume_token=resume_token, analysis_id=analysis_id, live_only=live_only, progress=progress
            )

        answer = analysis_service_pb2.AnalysisServiceWatchResponse
        async with aclosing(self._for_ever(f"{_ANALYSES}/Watch", request, answer)) as responses:
            async for response in responses:
                live_only = False
                if response.HasField("heartbeat"):
                    resume_token = response.heartbeat.resume_token
                    continue
                yield response.event
                resume_token = response.event.resume_token

    async def wanted(self) -> AsyncGenerator[device_service_pb2.PartWanted, None]:
        """What the cloud wants of this device, for ever: first all that is still wanted, then what comes up.

        A broken stream is taken up again where it stopped; what was heard before is not told again.
        """
        resume_token = ""

        def request() -> Message:
            return device_service_pb2.DeviceServiceWatchRequest(resume_token=resume_token)

        answer = device_service_pb2.DeviceServiceWatchResponse
        async with aclosing(self._for_ever(f"{_DEVICES}/Watch", request, answer)) as responses:
            async for response in responses:
                if response.HasField("part"):
                    yield response.part
                resume_token = response.resume_token

    async def refuse(self, analysis_id: str, part_id: str, code: str, detail: str) -> None:
        """Say that a wanted part will not come, and why."""
        reason = analysis_pb2.Notice(code=code, detail=detail)
        request = device_service_pb2.RefuseRequest(analysis_id=analysis_id, part_id=part_id, reason=reason)
        await self._call("Refuse", request.SerializeToString(), device_service_pb2.RefuseResponse, service=_DEVICES)

    async def wait(self, analysis_id: str, *, within: float = 300.0) -> analysis_pb2.Analysis:
        """The finished analysis.

        Raises:
            Unavailable: It did not finish within `within` seconds.
        """
        try:
            async with asyncio.timeout(within):
                async for event in self.watch(analysis_id=analysis_id):
                    if event.state in _FINISHED or event.type == event_pb2.Event.TYPE_DELETED:
                        break
                return await self.get(analysis_id)
        except TimeoutError:
            raise Unavailable(
                f"analysis {analysis_id} did not finish within {within:g} s",
                remedy=f"ask later: docferry get {analysis_id}",
            ) from None

    async def _for_ever(
        self, method: str, request: Callable[[], Message], answer: type[Answer]
    ) -> AsyncGenerator[Answer, None]:
        """What a stream says; a broken one is asked for again, by what `request` says then."""
        pause = _FIRST_PAUSE_S
        while True:
            try:
                heard = False
                async with aclosing(self._stream(method, request(), answer)) as responses:
                    async for response in responses:
                        pause, heard = _FIRST_PAUSE_S, True
                        yield response
                if heard:
                    continue  # ended at its age: go on at once
            except Unavailable:
                pass
            # A broken stream, or one that a proxy closes before it says anything.
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - jitter, not a secret
            pause = min(2 * pause, STREAM_PAUSE_S)

    async def _call(
        self,
        method: str,
        request: bytes,
        answer: type[Answer],
        *,
        service: str = _ANALYSES,
        metadata: tuple[tuple[str, str], ...] = (),
    ) -> Answer:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, Answer] = self._channel.unary_unary(
            f"{service}/{method}", request_serializer=None, response_deserializer=answer.FromString
        )
        try:
            return await call(request, timeout=UNARY_DEADLINE_S, metadata=(*self._metadata, *metadata))
        except grpc.aio.AioRpcError as failure:
            raise error_from_rpc(failure) from None

    async def _stream(
        self, method: str, request: Message, answer: type[Answer], *, within: float = WATCH_DEADLINE_S
    ) -> AsyncGenerator[Answer, None]:
        multi: grpc.aio.UnaryStreamMultiCallable[bytes, Answer] = self._channel.unary_stream(
            method, request_serializer=None, response_deserializer=answer.FromString
        )
        call = multi(request.SerializeToString(), timeout=within, metadata=self._metadata)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as failure:
            raise error_from_rpc(failure) from None
        finally:
            call.cancel()


def finished(state: analysis_pb2.Analysis.State.ValueType) -> bool:
    """Whether an analysis in `state` will change its state no more."""
    return state in _FINISHED
