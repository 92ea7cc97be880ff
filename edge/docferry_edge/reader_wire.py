"""What the agent and its reader's process say to each other: bytes with a JSON head, nothing that could be code.

The reader works on files that anyone may hand in. Should one of them ever take it over, what it sends back must not be
able to run anything in the agent: no pickle.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from google.rpc import status_pb2

from docferry import status
from docferry.document import Degradation
from docferry.errors import DocferryError
from docferry_edge.desk import Answer, Identity, Job, Packed
from docferry_edge.entry import OutboxPart
from docferry_edge.frugality import Strain
from docferry_edge.route import Room

LONGEST = 128 << 20
"""No piece of a message is longer than this; a file that may be captured has at most 64 MiB."""

READY, READ, HINT, ANSWER, ERROR, FAULT = "ready", "read", "hint", "answer", "error", "fault"


class Pipe(Protocol):
    """What messages go over: `multiprocessing.connection.Connection`."""

    def send_bytes(self, data: bytes, /) -> None:
        """One piece."""

    def recv_bytes(self, maxlength: int | None = None, /) -> bytes:
        """The next piece."""


@dataclass(frozen=True, slots=True)
class Message:
    """A kind, a JSON object and any number of byte strings.

    The head travels as one piece and each byte string as another, so that a file of 64 MiB is never copied.
    """

    kind: str
    head: dict[str, Any]
    blobs: tuple[bytes, ...] = ()

    def send(self, pipe: Pipe) -> None:
        """Send it."""
        pipe.send_bytes(json.dumps({"kind": self.kind, "head": self.head, "blobs": len(self.blobs)}).encode())
        for blob in self.blobs:
            pipe.send_bytes(blob)

    @classmethod
    def receive(cls, pipe: Pipe) -> Message:
        """Wait for one.

        Raises:
            ValueError: This is no message.
            EOFError, OSError: The other end is gone.
        """
        try:
            tree = json.loads(pipe.recv_bytes(LONGEST))
            kind, head, count = str(tree["kind"]), dict(tree["head"]), int(tree["blobs"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"no message: {error}") from None
        return cls(kind, head, tuple(pipe.recv_bytes(LONGEST) for _ in range(count)))


def job_message(job: Job, *, hints: bool) -> Message:
    """A job for the reader; `hints` says whether anyone listens to them."""
    head = {"identity": asdict(job.identity), "strain": asdict(job.strain), "room": asdict(job.room), "hints": hints}
    return Message(READ, head, (job.data,))


def job_of(message: Message) -> tuple[Job, bool]:
    """The job, and whether hints are wanted."""
    given = message.head["strain"]
    strain = Strain(Degradation(given["degradation"]), given["cause"], given["value"])
    identity, room = Identity(**message.head["identity"]), Room(**message.head["room"])
    return Job(identity, message.blobs[0], strain, room), bool(message.head["hints"])


def answer_message(answer: Answer) -> Message:
    """What became of a job."""
    packed = answer.packed
    head = {
        "timings": packed.timings,
        "parts": [part.part_id for part in packed.parts],
        "pages": packed.pages,
        "leaves": answer.leaves,
        "page": answer.page,
    }
    return Message(ANSWER, head, (packed.request, answer.edge_answer, *(part.data for part in packed.parts)))


def answer_of(message: Message) -> Answer:
    """The inverse of `answer_message`.

    Raises:
        ValueError: Something is missing.
    """
    try:
        request, edge_answer, *parts = message.blobs
        names = [str(name) for name in message.head["parts"]]
        timings = {str(name): float(value) for name, value in message.head["timings"].items()}
        pages = str(message.head["pages"])
        leaves, page = bool(message.head["leaves"]), bool(message.head["page"])
    except (KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"no answer: {error}") from None
    named = tuple(OutboxPart(name, data) for name, data in zip(names, parts, strict=True))
    return Answer(Packed(request, named, timings, pages), edge_answer, leaves, page)


def error_message(error: DocferryError) -> Message:
    """A Docferry error, which is an answer like any other."""
    return Message(ERROR, {}, (status.status_of(error).SerializeToString(),))


def error_of(message: Message) -> DocferryError:
    """The error a message stands for."""
    return status.error_of(status_pb2.Status.FromString(message.blobs[0]))
