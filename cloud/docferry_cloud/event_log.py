"""The one ordered event log. Events are appended in the transaction of the change they tell about.

There is one writer at a time (`dialects`), so events commit in the order of their sequences.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from docferry_cloud import webhook_format
from docferry_cloud.database import Clock, Database
from docferry_cloud.schema import EventType, SinkKind, State, deliveries, events, facts, subscriptions

_FOR_PEOPLE = (EventType.SUCCEEDED, EventType.FAILED, EventType.VERSION_ADDED)
"""What people are told; a program that has a webhook is told everything."""
_SUBSCRIBERS = sa.select(subscriptions.c.subscription_id).where(
    subscriptions.c.tenant == sa.bindparam("tenant"),
    subscriptions.c.disabled_reason == "",
    subscriptions.c.analysis_id.in_(("", sa.bindparam("analysis_id"))),
    subscriptions.c.document_id.in_(("", sa.bindparam("document_id"))),
)
_PROGRAMS = _SUBSCRIBERS.where(subscriptions.c.kind == SinkKind.WEBHOOK)
_ANY_SUBSCRIBER = (
    sa.select(sa.literal(1))
    .where(subscriptions.c.tenant.in_(sa.bindparam("of", expanding=True)), subscriptions.c.disabled_reason == "")
    .limit(1)
)
_APPENDED = events.insert()


@dataclass(frozen=True, slots=True)
class Happening:
    """What an event tells: state and version after it; of PROGRESS, how many pages were read, of how many."""

    type: EventType
    tenant: str
    analysis_id: str
    document_id: str
    state: State
    version: int
    pages_done: int = 0
    pages: int = 0


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event as stored."""

    sequence: int
    event_id: str
    analysis_id: str
    document_id: str
    type: EventType
    state: State
    version: int
    pages_done: int
    pages: int
    create_time: int


@dataclass(frozen=True, slots=True)
class TenantEvent:
    """An event and whose it is."""

    tenant: str
    row: EventRow


class EventLog:
    """Appends and reads events."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or database.now
        self._listeners: tuple[Callable[[], None], ...] = ()

    def open(self) -> str:
        """The log's own random name, made at its first opening; tokens of another log are told apart by it."""
        with self._database.write() as connection:
            name = _fact(connection, "log_id")
            if name is None:
                name = secrets.token_hex(4)
                connection.execute(facts.insert().values(name="log_id", value=name))
        return name

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener`, from whatever thread, whenever events were committed by this process."""
        self._listeners = (*self._listeners, listener)

    def announce(self) -> None:
        """Say that a transaction with events was committed."""
        for listener in self._listeners:
            listener()

    def append(self, connection: sa.Connection, happening: Happening) -> None:
        """Append one event and a delivery for every subscriber whom it concerns, in the caller's transaction.

        PROGRESS is for those who watch: a receiver that was away would be sent what is long past.
        """
        row = self._row(happening)
        (sequence,) = connection.execute(_APPENDED, row).inserted_primary_key or (0,)
        if happening.type is EventType.PROGRESS:
            return
        concerned = _SUBSCRIBERS if happening.type in _FOR_PEOPLE else _PROGRAMS
        known = {key: row[key] for key in ("tenant", "analysis_id", "document_id")}
        hooks = connection.execute(concerned, known).scalars().all()
        if not hooks:
            return
        body = webhook_format.payload(
            kind=happening.type.value,
            create_time=row["create_time"],
            analysis_id=happening.analysis_id,
            document_id=happening.document_id,
            state=happening.state.value,
            version=happening.version,
            sequence=sequence,
        )
        rows = [
            {
                "subscription_id": hook,
                "sequence": sequence,
                "event_id": row["event_id"],
                "attempts": 0,
                "due_time": row["create_time"],
                "create_time": row["create_time"],
                "body": body,
            }
            for hook in hooks
        ]
        connection.execute(deliveries.insert(), rows)

    def append_all(self, connection: sa.Connection, happenings: Sequence[Happening]) -> None:
        """`append` for several, in two statements where no tenant of them has subscriptions."""
        tenants = {"of": list({happening.tenant for happening in happenings})}
        if len(happenings) < 2 or connection.execute(_ANY_SUBSCRIBER, tenants).first() is not None:
            for happening in happenings:
                self.append(connection, happening)
        else:
            connection.execute(_APPENDED, [self._row(happening) for happening in happenings])

    def _row(self, happening: Happening) -> dict[str, Any]:
        return {
            "event_id": str(uuid.uuid4()),
            "tenant": happening.tenant,
            "analysis_id": happening.analysis_id,
            "document_id": happening.document_id,
            "type": happening.type,
            "state": happening.state,
            "version": happening.version,
            "pages_done": happening.pages_done,
            "pages": happening.pages,
            "create_time": self._clock(),
        }

    def latest(self) -> int:
        """The newest sequence; 0 in an empty log."""
        with self._database.read() as connection:
            return self._latest(connection)

    def purged(self) -> int:
        """The newest sequence that is no longer kept; 0 while all is."""
        with self._database.read() as connection:
            return int(_fact(connection, "purged") or 0)

    def read(
        self, tenant: str, after: int, upto: int, limit: int, analysis_id: str = "", *, progress: bool = False
    ) -> list[EventRow]:
        """The tenant's events with `after < sequence <= upto`, oldest first, at most `limit`.

        Args:
            analysis_id: Only those about this analysis; empty for all.
            progress: PROGRESS too.
        """
        query = sa.select(*(column for column in events.c if column.name != "tenant")).where(
            events.c.tenant == tenant, events.c.sequence > after, events.c.sequence <= upto
        )
        if analysis_id:
            query = query.where(events.c.analysis_id == analysis_id)
        if not progress:
            query = query.where(events.c.type != EventType.PROGRESS)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(events.c.sequence).limit(limit)).mappings()
            return [EventRow(**row) for row in rows]

    def newest(self, after: int, upto: int, limit: int) -> list[TenantEvent]:
        """All tenants' events with `after < sequence <= upto`, oldest first; of more than `limit` only the newest."""
        query = sa.select(events).where(events.c.sequence > after, events.c.sequence <= upto)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(events.c.sequence.desc()).limit(limit)).mappings().all()
        return [TenantEvent(row["tenant"], EventRow(**{k: row[k] for k in row if k != "tenant"})) for row in rows][::-1]

    def purge(self, before: int) -> None:
        """Drop the events stored before a time (microseconds) and remember up to where."""
        with self._database.write() as connection:
            # By sequence up to the first event to keep: a clock that was set back tears no hole into the log.
            kept = sa.select(sa.func.min(events.c.sequence)).where(events.c.create_time >= before)
            first = connection.execute(kept).scalar_one()
            last = first - 1 if first is not None else self._latest(connection)
            if (
                connection.execute(sa.select(events.c.sequence).where(events.c.sequence <= last).limit(1)).first()
                is None
            ):
                return
            connection.execute(events.delete().where(events.c.sequence <= last))
            connection.execute(facts.delete().where(facts.c.name == "purged"))
            connection.execute(facts.insert().values(name="purged", value=str(last)))

    def _latest(self, connection: sa.Connection) -> int:
        newest = connection.execute(sa.select(sa.func.max(events.c.sequence))).scalar_one()
        return int(newest if newest is not None else _fact(connection, "purged") or 0)


def _fact(connection: sa.Connection, name: str) -> str | None:
    return connection.execute(sa.select(facts.c.value).where(facts.c.name == name)).scalar_one_or_none()
