"""What the loop and its adapters say to each other: a delivery goes in, an outcome comes out."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from docferry_cloud.schema import SinkKind
from docferry_cloud.sinks.message import Message


class Verdict(enum.Enum):
    """How one attempt ended."""

    DELIVERED = "delivered"
    RETRY = "retry"
    """Not now: again after the schedule's wait, or `Outcome.retry_after` if that is longer."""
    REFUSED = "refused"
    """This message never: no further attempt makes it better."""
    GONE = "gone"
    """The subscriber wants nothing more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended.

    Attributes:
        failure: Why it was not delivered, without anything secret.
        retry_after: Seconds that the receiver asks for; 0 if it asks for nothing.
    """

    verdict: Verdict
    failure: str = ""
    retry_after: float = 0.0


DELIVERED = Outcome(Verdict.DELIVERED)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event that is due at one subscriber.

    Attributes:
        attempts: Made before this one.
        create_time: When the event happened, microseconds; 0 for a row of an older release.
        body: The event's ids and states, a webhook's body as JSON (`webhook_format.payload`).
        secret: See `schema.subscriptions`.
        old_secret: The key before, while it still signs; else empty.
    """

    subscription_id: str
    tenant: str
    kind: SinkKind
    url: str
    secret: str
    old_secret: str
    language: str
    sequence: int
    event_id: str
    attempts: int
    create_time: int
    body: bytes


class Sink(Protocol):
    """One kind of subscriber."""

    async def send(self, delivery: Delivery, message: Message) -> Outcome:
        """Make one attempt, in `ATTEMPT_S` at most; failures are the answer, not an exception."""


ATTEMPT_S = 15.0
"""The longest attempt, in seconds."""
