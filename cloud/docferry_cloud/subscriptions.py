"""Webhooks and their deliveries as rows, advanced by one loop (`webhooks`)."""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from docferry.errors import ConfigurationError, InputError, NotFound, Overloaded
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Clock, Database
from docferry_cloud.schema import deliveries, subscriptions
from docferry_cloud.settings import Webhook, check_url, secret_key

MAX_SUBSCRIPTIONS = 50
"""Webhooks of one tenant."""
MAX_LEASE_S = 60
"""The longest lease of a webhook."""
MAX_WAIT_S = 96_000
"""Longer than any wait between two attempts: a day and the tenth that spreads it."""


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """One webhook as shown: everything but its secret."""

    subscription_id: str
    url: str
    create_time: int
    disabled_reason: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event that is due at one webhook."""

    subscription_id: str
    sequence: int
    event_id: str
    attempts: int
    body: bytes
    url: str
    secret: str


_SHOWN = (
    subscriptions.c.subscription_id,
    subscriptions.c.url,
    subscriptions.c.create_time,
    subscriptions.c.disabled_reason,
)


class Subscriptions:
    """Webhooks in one database."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or database.now

    def create(self, tenant: str, url: str, secret: str) -> tuple[SubscriptionRow, str]:
        """Add a webhook; gives it with its secret, which is made here if none is given.

        Raises:
            InputError: The URL or the secret cannot be used.
            Overloaded: The tenant has `MAX_SUBSCRIPTIONS` already.
        """
        try:
            check_url(url)
            secret = secret or f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
            secret_key(secret)
        except ConfigurationError as error:
            raise InputError(error.reason, remedy=error.remedy, field="subscription") from error
        row = SubscriptionRow(str(uuid.uuid4()), url, self._clock(), "")
        with self._database.write() as connection:
            count = sa.select(sa.func.count()).where(subscriptions.c.tenant == tenant)
            if connection.execute(count).scalar_one() >= MAX_SUBSCRIPTIONS:
                raise Overloaded(
                    f"the tenant has {MAX_SUBSCRIPTIONS} webhooks", retry_after=60, remedy="delete one first"
                )
            _insert(connection, row, tenant, secret, configured=False)
        return row, secret

    def page(self, tenant: str, limit: int, before: tuple[int, str] | None) -> list[SubscriptionRow]:
        """At most `limit` webhooks, newest first, those older than `(create_time, subscription_id)`."""
        query = sa.select(*_SHOWN).where(subscriptions.c.tenant == tenant)
        order = (subscriptions.c.create_time, subscriptions.c.subscription_id)
        if before is not None:
            query = query.where(sa.tuple_(*order) < before)
        query = query.order_by(*(column.desc() for column in order)).limit(limit)
        with self._database.read() as connection:
            return [SubscriptionRow(**row) for row in connection.execute(query).mappings()]

    def delete(self, tenant: str, subscription_id: str) -> None:
        """Remove a webhook and what was still to be delivered to it.

        Raises:
            NotFound: This tenant has no such webhook.
        """
        own = subscriptions.delete().where(
            subscriptions.c.subscription_id == subscription_id, subscriptions.c.tenant == tenant
        )
        with self._database.write() as connection:
            if connection.execute(own).rowcount == 0:
                raise NotFound(
                    f"there is no webhook {subscription_id[:64]!r}",
                    remedy="list them",
                    subscription_id=subscription_id[:64],
                )

    def configure(self, webhooks: Sequence[Webhook]) -> None:
        """Make the webhooks from the settings what is stored: add, change the secret, remove."""
        wanted = {_configured_id(webhook): webhook for webhook in webhooks}
        with self._database.write() as connection:
            query = sa.select(subscriptions.c.subscription_id).where(subscriptions.c.configured)
            stored = set(connection.execute(query).scalars())
            for gone in stored - set(wanted):
                connection.execute(subscriptions.delete().where(subscriptions.c.subscription_id == gone))
            for name, webhook in wanted.items():
                if name in stored:
                    change = subscriptions.update().where(subscriptions.c.subscription_id == name)
                    connection.execute(change.values(secret=webhook.secret, disabled_reason=""))
                else:
                    row = SubscriptionRow(name, webhook.url, self._clock(), "")
                    _insert(connection, row, webhook.tenant, webhook.secret, configured=True)

    def due(self) -> list[str]:
        """Ids of webhooks that have a delivery due and that no process is posting to."""
        now = self._clock()
        query = (
            sa.select(subscriptions.c.subscription_id)
            .join(deliveries)
            .where(
                _due(now),
                _free(now),
                subscriptions.c.disabled_reason == "",
            )
        )
        with self._database.read() as connection:
            return list(connection.execute(query.distinct()).scalars())

    def next_wait(self) -> float | None:
        """Seconds until the next delivery is due, not below 0; None if none waits."""
        now = self._clock()
        due_time = sa.case((_due(now), now), else_=deliveries.c.due_time)
        query = sa.select(sa.func.min(due_time)).join(subscriptions)
        with self._database.read() as connection:
            due = connection.execute(query.where(subscriptions.c.disabled_reason == "")).scalar_one()
            return None if due is None else max(0.0, (due - now) / MICROSECONDS)

    def lease(self, subscription_id: str, lease_s: float) -> bool:
        """Take a webhook for this process, so that its first attempts are made in order."""
        now = self._clock()
        change = subscriptions.update().where(subscriptions.c.subscription_id == subscription_id, _free(now))
        with self._database.write() as connection:
            leased = connection.execute(change.values(lease_until=now + int(lease_s * MICROSECONDS)))
            return leased.rowcount == 1

    def free(self, subscription_id: str) -> None:
        """Give a webhook back."""
        change = subscriptions.update().where(subscriptions.c.subscription_id == subscription_id)
        with self._database.write() as connection:
            connection.execute(change.values(lease_until=0))

    def next_delivery(self, subscription_id: str) -> Delivery | None:
        """The earliest event that is due at a webhook."""
        columns = (
            deliveries.c.subscription_id,
            deliveries.c.sequence,
            deliveries.c.event_id,
            deliveries.c.attempts,
            deliveries.c.body,
            subscriptions.c.url,
            subscriptions.c.secret,
        )
        query = (
            sa.select(*columns)
            .join(subscriptions)
            .where(
                deliveries.c.subscription_id == subscription_id,
                _due(self._clock()),
                subscriptions.c.disabled_reason == "",
            )
        )
        with self._database.read() as connection:
            row = connection.execute(query.order_by(deliveries.c.sequence).limit(1)).mappings().one_or_none()
            return None if row is None else Delivery(**row)

    def settle(self, delivery: Delivery) -> None:
        """The event was received: the row is done."""
        with self._database.write() as connection:
            connection.execute(deliveries.delete().where(*_same(delivery)))

    def postpone(self, delivery: Delivery, wait_s: float) -> None:
        """The attempt failed: the next one is due after `wait_s`."""
        due = self._clock() + int(wait_s * MICROSECONDS)
        with self._database.write() as connection:
            change = deliveries.update().where(*_same(delivery))
            connection.execute(change.values(attempts=delivery.attempts + 1, due_time=due))

    def disable(self, subscription_id: str, reason: str) -> None:
        """Switch a webhook off and drop what was still to be delivered; clients catch up by Watch or List."""
        with self._database.write() as connection:
            change = subscriptions.update().where(subscriptions.c.subscription_id == subscription_id)
            connection.execute(change.values(disabled_reason=reason[:255]))
            connection.execute(deliveries.delete().where(deliveries.c.subscription_id == subscription_id))


def _configured_id(webhook: Webhook) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"docferry:{webhook.tenant}:{webhook.url}"))


def _insert(connection: sa.Connection, row: SubscriptionRow, tenant: str, secret: str, *, configured: bool) -> None:
    connection.execute(
        subscriptions.insert().values(
            subscription_id=row.subscription_id,
            tenant=tenant,
            url=row.url,
            secret=secret,
            configured=configured,
            create_time=row.create_time,
            disabled_reason="",
            lease_until=0,
        )
    )


def _due(now: int) -> sa.ColumnElement[bool]:
    """A first attempt is due at once, a retry at its time; one too far ahead was set by a clock that was wrong."""
    due = deliveries.c.due_time
    return sa.or_(deliveries.c.attempts == 0, due <= now, due > now + MAX_WAIT_S * MICROSECONDS)


def _free(now: int) -> sa.ColumnElement[bool]:
    until = subscriptions.c.lease_until
    return sa.or_(until <= now, until > now + MAX_LEASE_S * MICROSECONDS)


def _same(delivery: Delivery) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return (
        deliveries.c.subscription_id == delivery.subscription_id,
        deliveries.c.sequence == delivery.sequence,
    )
