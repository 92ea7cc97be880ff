"""The tables. Times are microseconds since 1970 (UTC); protobuf messages are stored as their bytes.

Everything that is received goes into rows first, supplied parts too (`chunks`, at most 512 KiB each): one transaction
then covers bytes and state. Large parts move on into an object store (`blobs`) once they are whole. The same tables
serve SQLite and PostgreSQL; a change here needs a step in `migrations/versions`.
"""

from __future__ import annotations

import enum
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()


class State(enum.StrEnum):
    """Where an analysis stands; the names of `Analysis.State`."""

    AWAITING_PARTS = "AWAITING_PARTS"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class WantState(enum.StrEnum):
    """How far a want has come; the names of `Want.State`."""

    OPEN = "OPEN"
    SUPPLIED = "SUPPLIED"
    REFUSED = "REFUSED"
    LAPSED = "LAPSED"


class EventType(enum.StrEnum):
    """What happened; the names of `Event.Type`.

    VERSION_ADDED is for a version that comes without a change of state; the others carry their `version` themselves.
    """

    ACCEPTED = "ACCEPTED"
    VERSION_ADDED = "VERSION_ADDED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    DELETED = "DELETED"
    WANTS_CHANGED = "WANTS_CHANGED"
    PROGRESS = "PROGRESS"


class SinkKind(enum.StrEnum):
    """How a subscriber is told; the names of `Subscription.Kind`."""

    WEBHOOK = "WEBHOOK"
    WEB_PUSH = "WEB_PUSH"
    APPRISE = "APPRISE"


OPEN_STATES = (State.AWAITING_PARTS, State.PENDING, State.RUNNING)
"""States from which an analysis still moves on by itself."""
WORK_STATES = (State.PENDING, State.RUNNING)
"""States in which an analysis is the workers' to move on."""


_CORRECTED = sa.text("engine = 'person'")


def _id(name: str = "analysis_id") -> sa.Column[str]:
    return sa.Column(name, sa.String(36), nullable=False)


def _word(name: str, words: type[enum.StrEnum]) -> sa.Column[Any]:
    return sa.Column(name, sa.Enum(words, native_enum=False, length=16), nullable=False)


def _of_analysis(*, primary_key: bool = True) -> sa.Column[str]:
    reference = sa.ForeignKey("analyses.analysis_id", ondelete="CASCADE")
    return sa.Column("analysis_id", sa.String(36), reference, primary_key=primary_key, nullable=False)


def _serial(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True)


analyses = sa.Table(
    "analyses",
    metadata,
    sa.Column("analysis_id", sa.String(36), primary_key=True),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("device", sa.String(64), nullable=False),
    _id("request_id"),
    _id("document_id"),
    sa.Column("body_sha256", sa.LargeBinary, nullable=False),
    _word("state", State),
    sa.Column("file_name", sa.String(255), nullable=False),
    sa.Column("effort", sa.Integer, nullable=False),
    sa.Column("route", sa.LargeBinary, nullable=False),
    sa.Column("traffic", sa.LargeBinary, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("error", sa.LargeBinary),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    sa.Column("update_time", sa.BigInteger, nullable=False),
    sa.Column("expire_time", sa.BigInteger, nullable=False),
    # The process at work on it (or `work.SUSPECT`), how often one began, and until when the sweeper leaves it alone.
    sa.Column("owner", sa.String(64)),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("lease_until", sa.BigInteger, nullable=False),
    # Its place in the queue: lanes one after the other, turns within a lane; both 0 until it is PENDING (`queueing`).
    sa.Column("turn", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("lane", sa.Integer, nullable=False, server_default="0"),
    # How many pages its engine has read, of how many; both 0 until it tells.
    sa.Column("pages_done", sa.Integer, nullable=False, server_default="0"),
    sa.Column("pages", sa.Integer, nullable=False, server_default="0"),
    # When nobody waits for it any more; null: never.
    sa.Column("deadline", sa.BigInteger),
    # What it was read from, so that the same once more is known (`content_key`); null until it has finished.
    sa.Column("content_key", sa.LargeBinary),
    sa.UniqueConstraint("tenant", "device", "request_id"),
    sa.Index("analyses_by_turn", "state", "tenant", "turn"),
    sa.Index("analyses_by_content", "tenant", "content_key"),
    sa.Index("analyses_by_state", "state", "lease_until"),
    sa.Index("analyses_by_time", "tenant", "create_time", "analysis_id"),
    sa.Index("analyses_by_document", "tenant", "document_id"),
    sa.Index("analyses_by_expiry", "expire_time"),
)

# What lists, searches and figures need to know, narrow beside the wide rows of `analyses`: no list opens a version.
digests = sa.Table(
    "digests",
    metadata,
    _of_analysis(),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("device", sa.String(64), nullable=False),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    # What a search looks at, folded: what the analysis is called, and what its newest version says.
    sa.Column("names", sa.String(600), nullable=False),
    sa.Column("words", sa.String(2000), nullable=False, server_default=""),
    # Of the newest version.
    sa.Column("headline", sa.String(200), nullable=False, server_default=""),
    sa.Column("pages", sa.Integer, nullable=False, server_default="0"),
    sa.Column("doubts", sa.Integer, nullable=False, server_default="0"),
    # In thousandths, whole: page tokens hold it.
    sa.Column("weight", sa.BigInteger, nullable=False, server_default="0"),
    # A number of `RouteDecision`, predicted risk, bytes, and milliseconds that engines worked on it.
    sa.Column("route", sa.Integer, nullable=False, server_default="0"),
    sa.Column("risk", sa.Float, nullable=False, server_default="0"),
    sa.Column("original_bytes", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("sent_bytes", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("work_ms", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index("digests_by_time", "tenant", "create_time", "analysis_id"),
    sa.Index("digests_by_weight", "tenant", "weight", "analysis_id"),
)

# Apart from `analyses`, so that reading a state never drags a megabyte along.
envelopes = sa.Table("envelopes", metadata, _of_analysis(), sa.Column("body", sa.LargeBinary, nullable=False))

# Requests whose analysis was deleted, so that a late repeat makes no second one.
tombstones = sa.Table(
    "tombstones",
    metadata,
    sa.Column("tenant", sa.String(64), primary_key=True),
    sa.Column("device", sa.String(64), primary_key=True),
    sa.Column("request_id", sa.String(36), primary_key=True),
    sa.Column("expire_time", sa.BigInteger, nullable=False),
    sa.Index("tombstones_by_expiry", "expire_time"),
)

parts = sa.Table(
    "parts",
    metadata,
    _of_analysis(),
    sa.Column("part_id", sa.String(64), primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("announcement", sa.LargeBinary, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.LargeBinary, nullable=False),
    sa.Column("received", sa.BigInteger, nullable=False),
    # Whether its bytes have moved from `chunks` into the tenant's blob of that hash.
    sa.Column("stored", sa.Boolean, nullable=False, server_default=sa.false()),
)

chunks = sa.Table(
    "chunks",
    metadata,
    sa.Column("analysis_id", sa.String(36), primary_key=True),
    sa.Column("part_id", sa.String(64), primary_key=True),
    sa.Column("start", sa.BigInteger, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.ForeignKeyConstraint(["analysis_id", "part_id"], ["parts.analysis_id", "parts.part_id"], ondelete="CASCADE"),
)

# Objects that parts hold, one for all parts of a tenant with the same content; the last holder takes it along.
blobs = sa.Table(
    "blobs",
    metadata,
    sa.Column("tenant", sa.String(64), primary_key=True),
    sa.Column("sha256", sa.LargeBinary, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("holders", sa.Integer, nullable=False),
)

# Objects that no part holds: about to be written, written in vain, or let go. Deleted when their time has come.
spare_blobs = sa.Table(
    "spare_blobs",
    metadata,
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("sha256", sa.LargeBinary, nullable=False),
    sa.Column("due_time", sa.BigInteger, nullable=False),
    sa.Index("spare_blobs_by_due", "due_time"),
)

# What was asked of a device after its envelope had come. Bytes that answer it lie in `parts` and `chunks`, under the
# same part id, from their first chunk on. Inserted after the event of the same transaction: whatever puts events into
# the order of their sequences does so for these.
wants = sa.Table(
    "wants",
    metadata,
    _serial("sequence"),
    _of_analysis(primary_key=False),
    sa.Column("part_id", sa.String(64), nullable=False),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("device", sa.String(64), nullable=False),
    _id("document_id"),
    # A serialized `Want`: what it is; how far it has come stands in the columns.
    sa.Column("message", sa.LargeBinary, nullable=False),
    _word("state", WantState),
    # A serialized `Notice`, once the device has refused.
    sa.Column("refusal", sa.LargeBinary),
    # Whether the analysis waits for it: an engine asked, not a person.
    sa.Column("blocking", sa.Boolean, nullable=False),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    sa.Column("expire_time", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("analysis_id", "part_id"),
    sa.Index("wants_by_device", "tenant", "device", "sequence"),
    sa.Index("wants_by_expiry", "state", "expire_time"),
    # As with events: a resume token must never meet a sequence a second time.
    sqlite_autoincrement=True,
)

versions = sa.Table(
    "versions",
    metadata,
    _of_analysis(),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("engine", sa.String(64), nullable=False),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    sa.Column("interpretation", sa.LargeBinary, nullable=False),
    # Few among many, and looked for by themselves (`reviewed`).
    sa.Index("versions_by_person", "create_time", sqlite_where=_CORRECTED, postgresql_where=_CORRECTED),
)

# Finished analyses that still wait for the full model (`deepen_list`).
deepenings = sa.Table(
    "deepenings",
    metadata,
    _of_analysis(),
    # When to begin, or until when others leave it to whoever has leased it.
    sa.Column("due_time", sa.BigInteger, nullable=False),
    # The process at work on it.
    sa.Column("owner", sa.String(64)),
    sa.Column("attempts", sa.Integer, nullable=False),
    # Those attempts in which the model was there and failed.
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Index("deepenings_by_due", "due_time"),
)

# No foreign key: an event outlives the analysis it tells about. It holds ids and states, never content.
events = sa.Table(
    "events",
    metadata,
    _serial("sequence"),
    _id("event_id"),
    sa.Column("tenant", sa.String(64), nullable=False),
    _id(),
    _id("document_id"),
    _word("type", EventType),
    _word("state", State),
    sa.Column("version", sa.Integer, nullable=False),
    # Of a PROGRESS: pages read, of how many; else 0.
    sa.Column("pages_done", sa.Integer, nullable=False, server_default="0"),
    sa.Column("pages", sa.Integer, nullable=False, server_default="0"),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    sa.Index("events_by_tenant", "tenant", "sequence"),
    sa.Index("events_by_analysis", "analysis_id", "sequence"),
    sa.Index("events_by_time", "create_time"),
    # Sequences are never reused, also after the newest events were purged.
    sqlite_autoincrement=True,
)

subscriptions = sa.Table(
    "subscriptions",
    metadata,
    sa.Column("subscription_id", sa.String(36), primary_key=True),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("kind", sa.Enum(SinkKind, native_enum=False, length=16), nullable=False, server_default="WEBHOOK"),
    # An Apprise address is a secret as a whole.
    sa.Column("url", sa.String(2048), nullable=False),
    # A webhook's signing key; a browser's `p256dh.auth`.
    sa.Column("secret", sa.String(128), nullable=False),
    # The key before it, which signs too until then.
    sa.Column("old_secret", sa.String(128), nullable=False, server_default=""),
    sa.Column("old_secret_until", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("language", sa.String(8), nullable=False, server_default="en"),
    # Only events of this analysis, or of this document; empty: of all.
    sa.Column("analysis_id", sa.String(36), nullable=False, server_default=""),
    sa.Column("document_id", sa.String(36), nullable=False, server_default=""),
    sa.Column("configured", sa.Boolean, nullable=False),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    sa.Column("disabled_reason", sa.String(255), nullable=False),
    # When it last took an event; 0: never.
    sa.Column("delivered_time", sa.BigInteger, nullable=False, server_default="0"),
    # The process that posts to it now, so that first attempts keep their order.
    sa.Column("lease_until", sa.BigInteger, nullable=False),
    sa.Index("subscriptions_by_tenant", "tenant", "create_time"),
)

# What is still to be delivered, and what was given up (`dead_time` is not 0). Ids and states, never content.
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column(
        "subscription_id",
        sa.String(36),
        sa.ForeignKey("subscriptions.subscription_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("sequence", sa.BigInteger, primary_key=True),
    sa.Column("event_id", sa.String(36), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("due_time", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("create_time", sa.BigInteger, nullable=False, server_default="0"),
    # Why the last attempt failed.
    sa.Column("failure", sa.String(255), nullable=False, server_default=""),
    sa.Column("dead_time", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index("deliveries_by_due", "dead_time", "due_time"),
)

# A key's secret is nowhere, only its hash. Rows stay when a key is revoked: the audit log names it.
keys = sa.Table(
    "keys",
    metadata,
    sa.Column("key_id", sa.String(16), primary_key=True),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("device", sa.String(64), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    # Names of `access.rules.Scope`, with commas between.
    sa.Column("scopes", sa.String(64), nullable=False),
    sa.Column("secret_sha256", sa.LargeBinary, nullable=False),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    sa.Column("expire_time", sa.BigInteger),
    sa.Column("revoke_time", sa.BigInteger),
    sa.Column("last_use", sa.BigInteger),
    sa.Index("keys_by_tenant", "tenant", "create_time"),
)

# A person's browser in the place of a key or a token. As with keys, its secret is nowhere.
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("session_id", sa.String(16), primary_key=True),
    sa.Column("secret_sha256", sa.LargeBinary, nullable=False),
    # The key's id, or the hash of the token in hex.
    sa.Column("holder", sa.String(64), nullable=False),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    sa.Column("expire_time", sa.BigInteger, nullable=False),
    sa.Index("sessions_by_expiry", "expire_time"),
)

# Documents handed to somebody without a key: by a link at first, by a session once it was opened. Only hashes of both.
claims = sa.Table(
    "claims",
    metadata,
    sa.Column("claim_id", sa.String(16), primary_key=True),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("device", sa.String(64), nullable=False),
    _of_analysis(primary_key=False),
    sa.Column("link_sha256", sa.LargeBinary, nullable=False),
    sa.Column("session_sha256", sa.LargeBinary),
    sa.Column("create_time", sa.BigInteger, nullable=False),
    sa.Column("expire_time", sa.BigInteger, nullable=False),
    sa.Column("session_until", sa.BigInteger),
    sa.Column("revoke_time", sa.BigInteger),
    sa.Index("claims_by_analysis", "analysis_id"),
)

# What a tenant handed in on a day (days since 1970, UTC); counted only while there is a limit.
usage = sa.Table(
    "usage",
    metadata,
    sa.Column("tenant", sa.String(64), primary_key=True),
    sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("documents", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    _serial("sequence"),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("who", sa.String(130), nullable=False),
    sa.Column("rpc", sa.String(64), nullable=False),
    # As the caller gave it: it need not be an analysis's.
    sa.Column("analysis_id", sa.String(64), nullable=False),
    sa.Column("outcome", sa.String(32), nullable=False),
    sa.Column("peer", sa.String(64), nullable=False),
    sa.Index("audit_by_time", "time"),
    sa.Index("audit_by_tenant", "tenant", "time"),
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("executor_id", sa.String(64), primary_key=True),
    sa.Column("lease_until", sa.BigInteger, nullable=False),
)

# Facts about the store itself: `log_id` names this event log, `purged` is the newest sequence no longer kept.
facts = sa.Table(
    "facts", metadata, sa.Column("name", sa.String(32), primary_key=True), sa.Column("value", sa.String(64))
)
