"""What goes into the store and what comes out of it. Serialized protobuf messages are `bytes` here."""

from __future__ import annotations

from dataclasses import dataclass, field

from docferry_cloud.schema import State, WantState


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls.

    Attributes:
        traceparent: The trace the call says it belongs to, of W3C's form; one of another trace than the document's is
            not followed.
        reads: Whether it may see results.
        only_own: Whether it sees those of its own device alone.
        who: Names its key or token; empty while the service is open.
        scopes: What that allows.
        session_id: Its session, if it comes by one.
        holder: What a session of it is bound to: its key's id, or its token's hash in hex.
        claimed: The one analysis that a claim's session is for; empty for everyone with a key.
        link: The claim whose link's token it carries, and which it may open; nothing else.
    """

    tenant: str
    device: str
    traceparent: str = field(default="", compare=False)
    reads: bool = field(default=True, compare=False)
    only_own: bool = field(default=False, compare=False)
    who: str = field(default="", compare=False)
    scopes: frozenset[str] = field(default=frozenset(), compare=False)
    session_id: str = field(default="", compare=False)
    holder: str = field(default="", compare=False)
    claimed: str = field(default="", compare=False)
    link: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the queue, how long results are kept, and what a tenant may hand in on one day (0: no limit)."""

    queue: int = 1000
    tenant: int = 500
    retention_days: int = 30
    documents_per_day: int = 0
    mb_per_day: int = 0


@dataclass(frozen=True, slots=True)
class NewPart:
    """A part that was announced: its message without bytes, its size and hash."""

    part_id: str
    announcement: bytes
    size: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to store: who made it, and a serialized `Interpretation`."""

    engine: str
    interpretation: bytes


@dataclass(frozen=True, slots=True)
class Submission:
    """A checked envelope, ready to be stored. `route` and `traffic` are serialized messages.

    Attributes:
        within_s: How long anybody waits for it to be begun; None for ever.
        lane: One of `places`.
    """

    caller: Caller
    request_id: str
    document_id: str
    body: bytes
    body_sha256: bytes
    file_name: str
    effort: int
    route: bytes
    traffic: bytes
    announced: tuple[NewPart, ...]
    edge: NewVersion | None
    within_s: float | None = None
    lane: int = 0

    @property
    def size(self) -> int:
        """Bytes that it brings, those of announced parts included."""
        return len(self.body) + sum(part.size for part in self.announced)


@dataclass(frozen=True, slots=True)
class Taken:
    """The analysis that a submission made, or had made before.

    Attributes:
        row: As it was stored, if it was made just now.
        place: In the queue, if it was made just now and is on its way there.
    """

    analysis_id: str
    state: State
    row: AnalysisRow | None = None
    place: int = 0

    @property
    def new(self) -> bool:
        """Whether it was made just now."""
        return self.row is not None


@dataclass(frozen=True, slots=True)
class PartRow:
    """How far an announced part has come."""

    part_id: str
    announcement: bytes
    size: int
    sha256: bytes
    received: int


@dataclass(frozen=True, slots=True)
class WantRow:
    """One want as stored, with the bytes received so far.

    Attributes:
        sequence: Its place among all wants; grows.
        message: A serialized `Want`.
        refusal: A serialized `Notice`, once the device has refused.
        blocking: Whether its analysis waits for it.
    """

    sequence: int
    analysis_id: str
    document_id: str
    part_id: str
    device: str
    message: bytes
    state: WantState
    refusal: bytes | None
    blocking: bool
    expire_time: int
    received: int


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One stored version; `interpretation` is empty where only the head was asked for."""

    version: int
    engine: str
    create_time: int
    interpretation: bytes


@dataclass(frozen=True, slots=True)
class DigestRow:
    """What lists tell of an analysis without opening its content; `weight` in thousandths."""

    device: str
    headline: str
    pages: int
    doubts: int
    weight: int


@dataclass(frozen=True, slots=True)
class AnalysisRow:
    """One analysis with its parts, wants and versions, as stored."""

    analysis_id: str
    tenant: str
    device: str
    request_id: str
    document_id: str
    state: State
    file_name: str
    effort: int
    route: bytes
    traffic: bytes
    version: int
    error: bytes | None
    create_time: int
    update_time: int
    expire_time: int
    attempts: int
    deadline: int | None
    pages_done: int
    pages: int
    parts: tuple[PartRow, ...] = ()
    wants: tuple[WantRow, ...] = ()
    versions: tuple[VersionRow, ...] = ()
    digest: DigestRow | None = None
