"""The desk: where one document at a time is read and packed. The port, and what passes over it.

The agent hands in a job and gets back what is to be stored and sent. Behind the port stands a process of its own
(`docferry_edge.reader_process`), so that a stuck or swollen reader costs no more than itself; tests and commands use a
desk in their own process (`docferry_edge.work`). Nothing here loads numpy, OpenCV or a network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from docferry.document import Document
from docferry.markdown import render
from docferry.v1 import analysis_pb2
from docferry.wire import document_to_proto
from docferry_edge.entry import OutboxPart
from docferry_edge.frugality import Strain
from docferry_edge.route import Room

Hint = dict[str, Any]
"""What is known of the document being read, as a JSON object with a `type`; see `docferry_edge.work.hint_of`."""

OnHint = Callable[[Hint], None]


@dataclass(frozen=True, slots=True)
class Identity:
    """What an envelope says of its document besides the reading: ids, name, size, time of capture (Unix, seconds)."""

    request_id: str
    document_id: str
    file_name: str
    original_bytes: int
    captured_at: float


@dataclass(frozen=True, slots=True)
class Packed:
    """What is to be stored and sent.

    Attributes:
        request: A serialized SubmitRequest.
        parts: Those it announces.
        timings: The examination's, in milliseconds.
        pages: How the prepared pages lie in the captured file (`cutting.to_json`); empty if more cannot be cut from it.
    """

    request: bytes
    parts: tuple[OutboxPart, ...]
    timings: dict[str, float]
    pages: str = "[]"


@dataclass(frozen=True, slots=True)
class Job:
    """One captured file to be read and packed.

    Attributes:
        strain: What is to be left out to spare the device.
        room: What the limits by the hour leave.
    """

    identity: Identity
    data: bytes
    strain: Strain = field(default_factory=Strain)
    room: Room = field(default_factory=Room)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a job.

    Attributes:
        packed: What is to be sent; where a policy lets nothing leave, a request that only says why, to be kept here.
        edge_answer: The edge's own answer as a serialized Interpretation, masked like what leaves.
        leaves: Whether anything leaves at all.
        page: Whether a whole page does.
    """

    packed: Packed
    edge_answer: bytes
    leaves: bool = True
    page: bool = False

    @property
    def size(self) -> int:
        """Bytes that leave, the messages around later parts not counted."""
        return len(self.packed.request) + sum(len(part.data) for part in self.packed.parts) if self.leaves else 0


class Desk(Protocol):
    """Reads and packs, one job at a time. Calls block; `close` may come from another thread at any time."""

    def ready(self) -> None:
        """Return once a job can be taken; loads whatever is not loaded (any more).

        Raises:
            DocferryError: The reader cannot be loaded. No document is to blame.
        """

    def read(self, job: Job, on_hint: OnHint | None = None) -> Answer:
        """Read and pack; `on_hint` hears of everything as it becomes known, in the calling thread.

        Raises:
            ReaderStopped: The reader died, hung or outgrew its memory; this document may be the reason.
            DocferryError: The document cannot be used.
        """

    def close(self) -> None:
        """Stop at once, in the middle of a job too, and take no other."""


def edge_answer(document: Document) -> bytes:
    """What the edge can say by itself, as a serialized Interpretation."""
    message = analysis_pb2.Interpretation(document=document_to_proto(document), markdown=render(document))
    return message.SerializeToString()
