"""The client SDK: submit a document, wait for its analysis, watch what happens. Calls block; any thread may call.

with Client.connect("127.0.0.1:50051") as client:
    analysis = client.submit_file(Path("receipt.jpg"))
    analysis = client.wait(analysis.analysis_id, within=60)
    for field in analysis.versions[-1].interpretation.document.fields:
        print(field.name, field.normalized, field.confidence)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from docferry.async_client import AsyncClient, Progress
from docferry.channel import LinkTimes
from docferry.document import Box
from docferry.schema_filling import Leaves
from docferry.v1 import analysis_pb2, analysis_service_pb2, device_service_pb2, envelope_pb2, event_pb2

T = TypeVar("T")
_guard = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


class Client:
    """`AsyncClient` for programs without an event loop: the same methods, errors, retries and resume tokens.

    All of a process share one event loop, in a thread that the first `connect` starts. Use as a context manager.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, client: AsyncClient) -> None:
        self._loop = loop
        self._client = client
        self._closed = False

    @classmethod
    def connect(cls, target: str, *, token: str = "", ca: Path | None = None, times: LinkTimes | None = None) -> Self:
        """A client of the service at `target` (HOST:PORT); nothing is sent before the first call."""

        async def open_client() -> AsyncClient:
            return AsyncClient.connect(target, token=token, ca=ca, times=times)

        loop = _shared_loop()
        return cls(loop, asyncio.run_coroutine_threadsafe(open_client(), loop).result())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the channel."""
        if not self._closed:
            self._run(self._client.close())
            self._closed = True

    def submit(
        self, request: analysis_service_pb2.SubmitRequest | bytes, *, traceparent: str = ""
    ) -> analysis_pb2.Analysis:
        """See `AsyncClient.submit`."""
        return self._run(self._client.submit(request, traceparent=traceparent))

    def supply(
        self, analysis_id: str, part_id: str, data: bytes, *, offset: int = 0, progress: Progress | None = None
    ) -> int:
        """See `AsyncClient.supply`; `progress` is called in the client's thread."""
        return self._run(self._client.supply(analysis_id, part_id, data, offset=offset, progress=progress))

    def submit_file(
        self,
        path: Path,
        *,
        effort: envelope_pb2.Effort.ValueType = envelope_pb2.EFFORT_AUTO,
        request_id: str = "",
        progress: Progress | None = None,
    ) -> analysis_pb2.Analysis:
        """See `AsyncClient.submit_file`; `progress` is called in the client's thread."""
        return self._run(self._client.submit_file(path, effort=effort, request_id=request_id, progress=progress))

    def get(self, analysis_id: str = "", *, document_id: str = "") -> analysis_pb2.Analysis:
        """See `AsyncClient.get`."""
        return self._run(self._client.get(analysis_id, document_id=document_id))

    def request_part(
        self, analysis_id: str, page: int = 0, *, box: Box | None = None, scale: float = 1.0
    ) -> tuple[str, analysis_pb2.Analysis]:
        """See `AsyncClient.request_part`."""
        return self._run(self._client.request_part(analysis_id, page, box=box, scale=scale))

    def part(self, analysis_id: str, part_id: str) -> tuple[envelope_pb2.Part, bytes]:
        """See `AsyncClient.part`."""
        return self._run(self._client.part(analysis_id, part_id))

    def export(
        self, analysis_id: str, kind: analysis_service_pb2.ExportRequest.Format.ValueType, *, version: int = 0
    ) -> tuple[bytes, str]:
        """See `AsyncClient.export`."""
        return self._run(self._client.export(analysis_id, kind, version=version))

    def ask(self, analysis_id: str, question: str) -> analysis_pb2.Answer:
        """See `AsyncClient.ask`."""
        return self._run(self._client.ask(analysis_id, question))

    def fill(self, analysis_id: str, schema: Any, *, version: int = 0) -> Leaves:
        """See `AsyncClient.fill`."""
        return self._run(self._client.fill(analysis_id, schema, version=version))

    def cancel(self, analysis_id: str) -> analysis_pb2.Analysis:
        """See `AsyncClient.cancel`."""
        return self._run(self._client.cancel(analysis_id))

    def claim(self, analysis_id: str, *, open_within_s: float | None = None) -> str:
        """See `AsyncClient.claim`."""
        return self._run(self._client.claim(analysis_id, open_within_s=open_within_s))

    def correct(
        self, analysis_id: str, version: int, lines: Sequence[analysis_service_pb2.LineCorrection]
    ) -> analysis_pb2.Analysis:
        """See `AsyncClient.correct`."""
        return self._run(self._client.correct(analysis_id, version, lines))

    def delete(self, analysis_id: str) -> None:
        """See `AsyncClient.delete`."""
        self._run(self._client.delete(analysis_id))

    def watch(
        self, resume_token: str = "", *, analysis_id: str = "", live_only: bool = False, progress: bool = False
    ) -> Iterator[event_pb2.Event]:
        """See `AsyncClient.watch`."""
        client = self._client
        return self._each(
            lambda: client.watch(resume_token, analysis_id=analysis_id, live_only=live_only, progress=progress)
        )

    def wanted(self) -> Iterator[device_service_pb2.PartWanted]:
        """See `AsyncClient.wanted`."""
        return self._each(self._client.wanted)

    def refuse(self, analysis_id: str, part_id: str, code: str, detail: str) -> None:
        """See `AsyncClient.refuse`."""
        self._run(self._client.refuse(analysis_id, part_id, code, detail))

    def wait(self, analysis_id: str, *, within: float = 300.0) -> analysis_pb2.Analysis:
        """See `AsyncClient.wait`."""
        return self._run(self._client.wait(analysis_id, within=within))

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if self._closed:
            call.close()
            raise RuntimeError("this client is closed")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C, say, while the call goes on over there.
            future.cancel()
            raise

    def _each(self, stream: Callable[[], AsyncGenerator[T, None]]) -> Iterator[T]:
        """What a stream says, one after the other; the next is fetched when it is asked for."""
        items = stream()
        try:
            while (item := self._run(_next(items))) is not None:
                yield item
        finally:
            if not self._closed:
                self._run(items.aclose())


async def _next(items: AsyncGenerator[T, None]) -> T | None:
    return await anext(items, None)


def _shared_loop() -> asyncio.AbstractEventLoop:
    """The loop that all blocking clients share.

    It ends with the process: gRPC may have something to say to a loop after the last call on it has ended.
    """
    with _guard:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="docferry-client", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
