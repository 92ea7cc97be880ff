"""One document through the service for a caller who waits on the line: submit, supply, wait, ask."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass

from docferry.async_client import AsyncClient, finished
from docferry.errors import InputError, Unavailable
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.gateway.pictures import Picture, envelope_of

MAX_PROMPT = 2000
"""Characters of a question, as Ask takes them."""
_EFFORTS = {
    "": envelope_pb2.EFFORT_AUTO,
    "auto": envelope_pb2.EFFORT_AUTO,
    "fast": envelope_pb2.EFFORT_FAST,
    "deep": envelope_pb2.EFFORT_DEEP,
}


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller wants read.

    Attributes:
        prompt: A question about it; empty for none.
        wait_s: How long the caller stays on the line, in seconds.
        key: The same key of the same device gives the same analysis again; empty for a new one.
    """

    pictures: list[Picture]
    prompt: str = ""
    effort: str = ""
    wait_s: float = 60.0
    key: str = ""

    def __post_init__(self) -> None:
        if not self.pictures:
            raise InputError("no picture", remedy="send one", field="image")
        if len(self.prompt) > MAX_PROMPT:
            raise InputError(
                f"the prompt has {len(self.prompt)} characters", remedy=f"at most {MAX_PROMPT}", field="prompt"
            )
        if self.effort not in _EFFORTS:
            raise InputError(f"effort is {self.effort[:40]!r}", remedy="give fast, deep or auto", field="effort")

    @property
    def request_id(self) -> str:
        """The UUID the document goes up under."""
        if not self.key:
            return str(uuid.uuid4())
        try:
            return str(uuid.UUID(self.key))
        except ValueError:
            return str(uuid.uuid5(uuid.NAMESPACE_OID, self.key))


async def read(client: AsyncClient, order: Order, closing: asyncio.Event) -> analysis_pb2.Analysis:
    """The analysis: finished, or as far as it is when the caller's time is over or the service stops.

    Raises:
        DocferryError: The service refused it.
    """
    envelope = envelope_of(order.pictures, request_id=order.request_id, effort=_EFFORTS[order.effort])
    analysis = await client.submit(pb.SubmitRequest(envelope=envelope))
    data = {part.part_id: picture.data for part, picture in zip(envelope.parts, order.pictures, strict=True)}
    for want in analysis.wants:
        if want.part_id in data:
            await client.supply(analysis.analysis_id, want.part_id, data[want.part_id], offset=want.received)
    waiting = asyncio.ensure_future(client.wait(analysis.analysis_id, within=order.wait_s))
    stopping = asyncio.ensure_future(closing.wait())
    try:
        await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            return waiting.result()
    except Unavailable:
        # Time is over: that is no failure of the document's.
        pass
    finally:
        for task in (waiting, stopping):
            task.cancel()
        await asyncio.gather(waiting, stopping, return_exceptions=True)
    return await client.get(analysis.analysis_id)


def is_read(analysis: analysis_pb2.Analysis) -> bool:
    """Whether it has an answer that questions can be asked about."""
    return finished(analysis.state) and analysis.state == analysis_pb2.Analysis.STATE_SUCCEEDED
