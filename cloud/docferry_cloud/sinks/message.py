"""The thin message of one event: a title, a link, ids and states. It leads to the stored truth and is none itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from docferry_cloud.sinks.titles import Facts, title

MAX_PUBLIC_URL = 512
"""Characters of `push.public_url`."""
MAX_THIN_BYTES = 3000
"""Below this is every pushed message: push services take 4,096 bytes, encryption and its padding included."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a subscriber is told of one event.

    Attributes:
        happened: The event's type in lower case, `succeeded`.
        timestamp: When it happened, RFC 3339.
        version: The newest version of the answer after it; 0 if there is none.
        link: The result's page; empty where no public address is configured.
        traceparent: The trace that a receiver may go on with, of W3C's form; empty if nobody traces.
    """

    event_id: str
    sequence: int
    happened: str
    timestamp: str
    analysis_id: str
    document_id: str
    state: str
    version: int
    title: str
    link: str
    language: str
    traceparent: str = ""

    def webhook(self) -> bytes:
        """A webhook's body. It is the same for every attempt, as long as the analysis is kept."""
        data: dict[str, Any] = {
            "analysis_id": self.analysis_id,
            "document_id": self.document_id,
            "state": self.state,
            "version": self.version,
            "sequence": self.sequence,
            "title": self.title,
        }
        if self.link:
            data["link"] = self.link
        return _json({"type": f"analysis.{self.happened}", "timestamp": self.timestamp, "data": data})

    def push(self) -> bytes:
        """What a browser's service worker gets; below `MAX_THIN_BYTES`."""
        return _json(
            {
                "event_id": self.event_id,
                "type": f"analysis.{self.happened}",
                "analysis_id": self.analysis_id,
                "document_id": self.document_id,
                "version": self.version,
                "language": self.language,
                "title": self.title,
                "link": self.link,
            }
        )

    def thinner(self) -> bytes:
        """The same for a push service that takes less: what is needed to ask for the rest."""
        return _json({"event_id": self.event_id, "analysis_id": self.analysis_id, "version": self.version})


@dataclass(frozen=True, slots=True)
class Told:
    """An event as its delivery row keeps it: `webhook_format.payload`, read back."""

    happened: str
    timestamp: str
    analysis_id: str
    document_id: str
    state: str
    version: int

    @property
    def has_content(self) -> bool:
        """Whether its title speaks of the document."""
        return self.version > 0 and self.happened in {"succeeded", "version_added"}


def told(body: bytes) -> Told:
    """Read a delivery row's body."""
    row = json.loads(body)
    data = row["data"]
    return Told(
        happened=row["type"].removeprefix("analysis."),
        timestamp=row["timestamp"],
        analysis_id=data["analysis_id"],
        document_id=data["document_id"],
        state=data["state"],
        version=data["version"],
    )


def message(event: Told, event_id: str, sequence: int, facts: Facts, language: str, public_url: str) -> Message:
    """The message of an event, for a subscriber of that language.

    Args:
        public_url: Where people reach the service, without a slash at the end; empty: no link.
    """
    return Message(
        event_id=event_id,
        sequence=sequence,
        happened=event.happened,
        timestamp=event.timestamp,
        analysis_id=event.analysis_id,
        document_id=event.document_id,
        state=event.state,
        version=event.version,
        title=title(event.happened, facts, language),
        link=f"{public_url}/r/{event.analysis_id}" if public_url else "",
        language=language,
    )


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
