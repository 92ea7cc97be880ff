"""What is still to be delivered, and what was given up, as rows; advanced by one loop (`sinks.loop`)."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from docferry.errors import NotFound
from docferry.v1 import analysis_pb2, document_pb2
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Clock, Database
from docferry_cloud.schema import SinkKind, analyses, deliveries, subscriptions, versions
from docferry_cloud.sinks.port import Delivery
from docferry_cloud.sinks.titles import Facts

MAX_LEASE_S = 60
"""The longest lease of a subscriber."""
MAX_WAIT_S = 96_000
"""Longer than any wait between two attempts: a day and the tenth that spreads it."""
MAX_REPLAY = 1000
"""Dead letters that one call brings back."""
_UNUSED_S = 86400


@dataclass(frozen=True, slots=True)
class Due:
    """A subscriber that something is due at."""

    subscription_id: str
    tenant: str


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A delivery as shown.

    Attributes:
        due_time: When the next attempt is due, microseconds.
        dead_time: When it was given up; 0 while attempts go on.
        failure: Why the last attempt failed; empty before the first.
    """

    subscription_id: str
    tenant: str
    sequence: int
    event_id: str
    attempts: int
    create_time: int
    due_time: int
    dead_time: int
    failure: str


_SHOWN = (
    deliveries.c.subscription_id,
    subscriptions.c.tenant,
    deliveries.c.sequence,
    deliveries.c.event_id,
    deliveries.c.attempts,
    deliveries.c.create_time,
    deliveries.c.due_time,
    deliveries.c.dead_time,
    deliveries.c.failure,
)
_ALIVE = deliveries.c.dead_time == 0
_ENABLED = subscriptions.c.disabled_reason == ""


class Deliveries:
    """The delivery rows of one database. Every method blocks.

    Args:
        retention_days: How long what was given up is kept.
    """

    def __init__(self, database: Database, retention_days: int = 30, clock: Clock | None = None) -> None:
        self._database = database
        self._retention = retention_days * 86400 * MICROSECONDS
        self._clock = clock or database.now

    def due(self) -> list[Due]:
        """Subscribers that have a delivery due and that no process is posting to."""
        now = self._clock()
        query = sa.select(subscriptions.c.subscription_id, subscriptions.c.tenant).join(deliveries)
        query = query.where(_due(now), _free(now), _ENABLED)
        with self._database.read() as connection:
            return [Due(*row) for row in connection.execute(query.distinct())]

    def next_wait(self) -> float | None:
        """Seconds until a delivery can be begun, not below 0; None if none waits. A lease must end first."""
        now = self._clock()
        due_time = sa.case(
            (sa.not_(_free(now)), subscriptions.c.lease_until), (_due(now), now), else_=deliveries.c.due_time
        )
        query = sa.select(sa.func.min(due_time)).join(subscriptions).where(_ENABLED, _ALIVE)
        with self._database.read() as connection:
            due = connection.execute(query).scalar_one()
            return None if due is None else max(0.0, (due - now) / MICROSECONDS)

    def lease(self, subscription_id: str, lease_s: float) -> bool:
        """Take a subscriber for this process, so that its first attempts are made in order."""
        now = self._clock()
        change = subscriptions.update().where(subscriptions.c.subscription_id == subscription_id, _free(now))
        with self._database.write() as connection:
            leased = connection.execute(change.values(lease_until=now + int(lease_s * MICROSECONDS)))
            return leased.rowcount == 1

    def free(self, subscription_id: str) -> None:
        """Give a subscriber back."""
        with self._database.write() as connection:
            connection.execute(_subscription(subscription_id).values(lease_until=0))

    def next_delivery(self, subscription_id: str) -> Delivery | None:
        """The earliest event that is due at a subscriber."""
        now = self._clock()
        until = subscriptions.c.old_secret_until
        columns = (
            deliveries.c.subscription_id,
            subscriptions.c.tenant,
            subscriptions.c.kind,
            subscriptions.c.url,
            subscriptions.c.secret,
            sa.case((until > now, subscriptions.c.old_secret), else_="").label("old_secret"),
            subscriptions.c.language,
            deliveries.c.sequence,
            deliveries.c.event_id,
            deliveries.c.attempts,
            deliveries.c.create_time,
            deliveries.c.body,
        )
        query = sa.select(*columns).join(subscriptions)
        query = query.where(deliveries.c.subscription_id == subscription_id, _due(now), _ENABLED)
        with self._database.read() as connection:
            row = connection.execute(query.order_by(deliveries.c.sequence).limit(1)).mappings().one_or_none()
            return None if row is None else Delivery(**row)

    def facts(self, tenant: str, analysis_id: str, version: int) -> Facts:
        """What a title may say of one version of a tenant's analysis; nothing once it is deleted."""
        query = (
            sa.select(versions.c.interpretation)
            .join(analyses, analyses.c.analysis_id == versions.c.analysis_id)
            .where(analyses.c.analysis_id == analysis_id, analyses.c.tenant == tenant, versions.c.version == version)
        )
        with self._database.read() as connection:
            stored = connection.execute(query).scalar_one_or_none()
        if stored is None:
            return Facts()
        document = analysis_pb2.Interpretation.FromString(stored).document
        table = any(region.type == document_pb2.REGION_TYPE_TABLE for page in document.pages for region in page.regions)
        return Facts(table, {field.name: field.normalized for field in document.fields})

    def settle(self, delivery: Delivery) -> None:
        """The event was received: the row is done."""
        with self._database.write() as connection:
            connection.execute(deliveries.delete().where(*_same(delivery)))
            connection.execute(_subscription(delivery.subscription_id).values(delivered_time=self._clock()))

    def postpone(self, delivery: Delivery, wait_s: float, failure: str) -> None:
        """The attempt failed: the next one is due after `wait_s`."""
        due = self._clock() + int(wait_s * MICROSECONDS)
        with self._database.write() as connection:
            change = deliveries.update().where(*_same(delivery))
            values = {"attempts": delivery.attempts + 1, "due_time": due, "failure": failure[:255]}
            connection.execute(change.values(values))

    def bury(self, delivery: Delivery, reason: str) -> None:
        """This event will never be taken: keep it as a dead letter; the others go on."""
        with self._database.write() as connection:
            self._bury(connection, delivery, reason)

    def give_up(self, delivery: Delivery, reason: str) -> None:
        """The schedule is used up. A subscriber that has taken nothing since the event is switched off."""
        with self._database.write() as connection:
            self._bury(connection, delivery, reason)
            since = subscriptions.c.delivered_time <= delivery.create_time
            silent = _subscription(delivery.subscription_id).where(since)
            if connection.execute(silent.values(disabled_reason=reason[:255])).rowcount:
                self._bury_all(connection, delivery.subscription_id, reason)

    def gone(self, delivery: Delivery, reason: str) -> None:
        """The subscriber wants nothing more: a browser's subscription is removed, any other is switched off."""
        with self._database.write() as connection:
            if delivery.kind is SinkKind.WEB_PUSH:
                own = subscriptions.c.subscription_id == delivery.subscription_id
                connection.execute(subscriptions.delete().where(own))
                return
            self._bury(connection, delivery, reason)
            connection.execute(_subscription(delivery.subscription_id).values(disabled_reason=reason[:255]))
            self._bury_all(connection, delivery.subscription_id, reason)

    def page(
        self, tenant: str | None, subscription_id: str, *, dead: bool, limit: int, before: tuple[int, str] | None = None
    ) -> list[DeliveryRow]:
        """At most `limit` deliveries, newest event first, those before `(sequence, subscription_id)`.

        Args:
            tenant: Of this tenant; None: of all.
            subscription_id: To this subscriber; empty: to all.
            dead: Only what was given up.
        """
        query = sa.select(*_SHOWN).join(subscriptions)
        if tenant is not None:
            query = query.where(subscriptions.c.tenant == tenant)
        if subscription_id:
            query = query.where(deliveries.c.subscription_id == subscription_id)
        if dead:
            query = query.where(deliveries.c.dead_time > 0)
        order = (deliveries.c.sequence, deliveries.c.subscription_id)
        if before is not None:
            query = query.where(sa.tuple_(*order) < before)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(*(each.desc() for each in order)).limit(limit)).mappings()
            return [DeliveryRow(**row) for row in rows]

    def replay(self, tenant: str | None, subscription_id: str, event_id: str = "") -> int:
        """Make a subscriber's dead letters due again, and switch it on if it was off; gives how many.

        At most `MAX_REPLAY`, the oldest first. They keep their event ids: a receiver knows what it has had.

        Args:
            tenant: Whose subscriber; None: anybody's.
            event_id: Only this event; empty: all.

        Raises:
            NotFound: There is no such subscriber.
        """
        own = [subscriptions.c.subscription_id == subscription_id]
        if tenant is not None:
            own.append(subscriptions.c.tenant == tenant)
        dead = [deliveries.c.subscription_id == subscription_id, deliveries.c.dead_time > 0]
        if event_id:
            dead.append(deliveries.c.event_id == event_id)
        with self._database.write() as connection:
            if connection.execute(subscriptions.update().where(*own).values(disabled_reason="")).rowcount == 0:
                shown = subscription_id[:64]
                raise NotFound(f"there is no subscription {shown!r}", remedy="list them", subscription_id=shown)
            oldest = sa.select(deliveries.c.sequence).where(*dead).order_by(deliveries.c.sequence).limit(MAX_REPLAY)
            chosen = list(connection.execute(oldest).scalars())
            again = deliveries.update().where(*dead, deliveries.c.sequence.in_(chosen))
            values = {"attempts": 0, "due_time": self._clock(), "dead_time": 0, "create_time": self._clock()}
            connection.execute(again.values(values))
        return len(chosen)

    def tidy(self) -> None:
        """Drop dead letters past the retention, and browsers that wait for a document that is deleted."""
        now = self._clock()
        old = sa.and_(deliveries.c.dead_time > 0, deliveries.c.dead_time < now - self._retention)
        one, several = subscriptions.c.analysis_id, subscriptions.c.document_id
        tenant = analyses.c.tenant == subscriptions.c.tenant
        left = sa.and_(
            subscriptions.c.kind == SinkKind.WEB_PUSH,
            subscriptions.c.create_time < now - _UNUSED_S * MICROSECONDS,
            sa.or_(one != "", several != ""),
            ~sa.exists().where(
                tenant,
                sa.or_(one == "", analyses.c.analysis_id == one),
                sa.or_(several == "", analyses.c.document_id == several),
            ),
        )
        with self._database.read() as connection:
            found = connection.execute(sa.select(sa.exists().where(old))).scalar_one()
            ended = list(connection.execute(sa.select(subscriptions.c.subscription_id).where(left)).scalars())
        if not found and not ended:
            return
        with self._database.write() as connection:
            connection.execute(deliveries.delete().where(old))
            connection.execute(subscriptions.delete().where(subscriptions.c.subscription_id.in_(ended)))

    def _bury(self, connection: sa.Connection, delivery: Delivery, reason: str) -> None:
        change = deliveries.update().where(*_same(delivery))
        values = {"attempts": delivery.attempts + 1, "dead_time": self._clock(), "failure": reason[:255]}
        connection.execute(change.values(values))

    def _bury_all(self, connection: sa.Connection, subscription_id: str, reason: str) -> None:
        waiting = deliveries.update().where(deliveries.c.subscription_id == subscription_id, _ALIVE)
        connection.execute(waiting.values(dead_time=self._clock(), failure=f"switched off: {reason}"[:255]))


def _due(now: int) -> sa.ColumnElement[bool]:
    """A first attempt is due at once, a retry at its time; one too far ahead was set by a clock that was wrong."""
    due = deliveries.c.due_time
    now_or_never = sa.or_(deliveries.c.attempts == 0, due <= now, due > now + MAX_WAIT_S * MICROSECONDS)
    return sa.and_(_ALIVE, now_or_never)


def _free(now: int) -> sa.ColumnElement[bool]:
    until = subscriptions.c.lease_until
    return sa.or_(until <= now, until > now + MAX_LEASE_S * MICROSECONDS)


def _same(delivery: Delivery) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return (
        deliveries.c.subscription_id == delivery.subscription_id,
        deliveries.c.sequence == delivery.sequence,
    )


def _subscription(subscription_id: str) -> sa.Update:
    return subscriptions.update().where(subscriptions.c.subscription_id == subscription_id)
