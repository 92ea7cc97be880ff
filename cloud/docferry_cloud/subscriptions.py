"""Who is told about events besides those who watch: webhooks, browsers and Apprise addresses, as rows."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from docferry.errors import ConfigurationError, InputError, NotFound, Overloaded
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Clock, Database
from docferry_cloud.schema import SinkKind, subscriptions
from docferry_cloud.settings_rows import AppriseAddress, Webhook, check_url
from docferry_cloud.sinks import keys
from docferry_cloud.sinks.apprise import shown
from docferry_cloud.sinks.titles import LANGUAGES
from docferry_cloud.sinks.web_push import push_keys

MAX_SUBSCRIPTIONS = 50
"""Of one tenant, browsers apart."""
MAX_BROWSERS = 1000
"""Browsers of one tenant."""
MAX_BROWSERS_OF_ONE = 10
"""Browsers that wait for one analysis: so many whoever holds its link can add, and no more."""
MAX_OVERLAP_S = 7 * 86400
"""The longest time that an old key signs beside the new one."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription as somebody asks for it.

    Attributes:
        secret: A webhook's key; empty lets one be made.
        asymmetric: Make an ed25519 key.
        p256dh, auth: A browser's keys.
        analysis_id, document_id: Only events of this one; empty: of all.
    """

    url: str
    kind: SinkKind = SinkKind.WEBHOOK
    secret: str = ""
    asymmetric: bool = False
    p256dh: str = ""
    auth: str = ""
    language: str = "en"
    analysis_id: str = ""
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """One subscription as shown: everything but its secret; of an Apprise address the scheme."""

    subscription_id: str
    kind: SinkKind
    url: str
    create_time: int
    disabled_reason: str
    language: str
    analysis_id: str
    document_id: str
    public_key: str


_SHOWN = (
    subscriptions.c.subscription_id,
    subscriptions.c.kind,
    subscriptions.c.url,
    subscriptions.c.secret,
    subscriptions.c.create_time,
    subscriptions.c.disabled_reason,
    subscriptions.c.language,
    subscriptions.c.analysis_id,
    subscriptions.c.document_id,
)


class Subscriptions:
    """Subscriptions in one database. Every method blocks."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or database.now

    def create(self, tenant: str, wish: Wish) -> tuple[SubscriptionRow, str]:
        """Add a subscription; gives it with a webhook's key, which is made here if none is given.

        A browser that subscribes again to the same keeps its subscription, with its new keys and language.

        Raises:
            InputError: The URL, a key, the language or a filter cannot be used.
            Overloaded: The tenant has `MAX_SUBSCRIPTIONS` or `MAX_BROWSERS` already, or `MAX_BROWSERS_OF_ONE` browsers
                wait for the analysis.
        """
        secret = _checked(wish)
        row = {
            "subscription_id": str(uuid.uuid4()),
            "kind": wish.kind,
            "url": wish.url,
            "secret": secret,
            "create_time": self._clock(),
            "disabled_reason": "",
            "language": wish.language,
            "analysis_id": wish.analysis_id,
            "document_id": wish.document_id,
        }
        browser = subscriptions.c.kind == SinkKind.WEB_PUSH
        most = MAX_BROWSERS if wish.kind is SinkKind.WEB_PUSH else MAX_SUBSCRIPTIONS
        with self._database.write() as connection:
            if wish.kind is SinkKind.WEB_PUSH:
                same = _same_browser(tenant, wish)
                known = connection.execute(sa.select(*_SHOWN).where(*same)).mappings().first()
                if known is not None:
                    changed = {"secret": secret, "language": wish.language, "disabled_reason": ""}
                    connection.execute(subscriptions.update().where(*same).values(changed))
                    return _row({**known, **changed}), ""
            group = browser if wish.kind is SinkKind.WEB_PUSH else sa.not_(browser)
            count = sa.select(sa.func.count()).where(subscriptions.c.tenant == tenant, group)
            if connection.execute(count).scalar_one() >= most:
                raise Overloaded(f"the tenant has {most} subscriptions", retry_after=60, remedy="delete one first")
            if wish.kind is SinkKind.WEB_PUSH and wish.analysis_id:
                of_one = count.where(subscriptions.c.analysis_id == wish.analysis_id)
                if connection.execute(of_one).scalar_one() >= MAX_BROWSERS_OF_ONE:
                    raise Overloaded(
                        f"{MAX_BROWSERS_OF_ONE} browsers wait for this document already",
                        retry_after=60,
                        remedy="let one of those tell you",
                    )
            _insert(connection, row, tenant, configured=False)
        return _row(row), secret if wish.kind is SinkKind.WEBHOOK else ""

    def rotate(
        self, tenant: str, subscription_id: str, secret: str, overlap_s: float, *, asymmetric: bool
    ) -> tuple[SubscriptionRow, str]:
        """Give a webhook a new key, beside which the old one signs for `overlap_s`; gives the new one.

        Raises:
            NotFound: This tenant has no such webhook.
            InputError: The key is malformed, or the overlap is longer than `MAX_OVERLAP_S`.
        """
        if not 0 <= overlap_s <= MAX_OVERLAP_S:
            raise InputError(f"an overlap of {overlap_s:g} s", remedy=f"give 0 to {MAX_OVERLAP_S} s", field="overlap")
        secret = _checked(Wish("https://host/", secret=secret, asymmetric=asymmetric))
        own = (
            subscriptions.c.subscription_id == subscription_id,
            subscriptions.c.tenant == tenant,
            subscriptions.c.kind == SinkKind.WEBHOOK,
        )
        until = self._clock() + int(overlap_s * MICROSECONDS)
        with self._database.write() as connection:
            change = subscriptions.update().where(*own)
            change = change.values(old_secret=subscriptions.c.secret, old_secret_until=until, secret=secret)
            if connection.execute(change).rowcount == 0:
                raise _not_found(subscription_id)
            return _row(connection.execute(sa.select(*_SHOWN).where(*own)).mappings().one()), secret

    def page(self, tenant: str, limit: int, before: tuple[int, str] | None) -> list[SubscriptionRow]:
        """At most `limit` subscriptions, newest first, those older than `(create_time, subscription_id)`."""
        query = sa.select(*_SHOWN).where(subscriptions.c.tenant == tenant)
        order = (subscriptions.c.create_time, subscriptions.c.subscription_id)
        if before is not None:
            query = query.where(sa.tuple_(*order) < before)
        query = query.order_by(*(column.desc() for column in order)).limit(limit)
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(query).mappings()]

    def delete(self, tenant: str, subscription_id: str) -> None:
        """Remove a subscription and what was still to be delivered to it.

        Raises:
            NotFound: This tenant has no such subscription.
        """
        own = subscriptions.delete().where(
            subscriptions.c.subscription_id == subscription_id, subscriptions.c.tenant == tenant
        )
        with self._database.write() as connection:
            if connection.execute(own).rowcount == 0:
                raise _not_found(subscription_id)

    def configure(self, webhooks: Sequence[Webhook], overlap_s: float = 86400.0) -> None:
        """Make the webhooks from the settings what is stored: add, exchange the key, remove.

        Args:
            overlap_s: How long the old key of one whose key has changed signs beside the new one.
        """
        wanted = {_configured_id(webhook): webhook for webhook in webhooks}
        now = self._clock()
        with self._database.write() as connection:
            own = (subscriptions.c.configured, subscriptions.c.kind == SinkKind.WEBHOOK)
            query = sa.select(subscriptions.c.subscription_id, subscriptions.c.secret).where(*own)
            stored = {row.subscription_id: row.secret for row in connection.execute(query)}
            for gone in set(stored) - set(wanted):
                connection.execute(subscriptions.delete().where(subscriptions.c.subscription_id == gone))
            for name, webhook in wanted.items():
                if name in stored:
                    values: dict[str, Any] = {"disabled_reason": "", "language": webhook.language}
                    if stored[name] != webhook.secret:
                        until = now + int(overlap_s * MICROSECONDS)
                        values |= {"secret": webhook.secret, "old_secret": stored[name], "old_secret_until": until}
                    this = subscriptions.c.subscription_id == name
                    connection.execute(subscriptions.update().where(this).values(values))
                else:
                    row = {
                        "subscription_id": name,
                        "kind": SinkKind.WEBHOOK,
                        "url": webhook.url,
                        "secret": webhook.secret,
                        "create_time": now,
                        "language": webhook.language,
                    }
                    _insert(connection, row, webhook.tenant, configured=True)

    def configure_apprise(self, addresses: Sequence[AppriseAddress]) -> None:
        """Make the Apprise addresses from the settings what is stored: add and remove.

        One that has changed is another one: what still waited for the old one goes with it.
        """
        wanted = {(address.tenant, address.url): address for address in addresses}
        now = self._clock()
        with self._database.write() as connection:
            table = subscriptions.c
            query = sa.select(table.tenant, table.url, table.subscription_id).where(table.kind == SinkKind.APPRISE)
            stored = {(row.tenant, row.url): row.subscription_id for row in connection.execute(query)}
            for gone in set(stored) - set(wanted):
                connection.execute(subscriptions.delete().where(table.subscription_id == stored[gone]))
            for name, address in wanted.items():
                if name in stored:
                    change = subscriptions.update().where(table.subscription_id == stored[name])
                    connection.execute(change.values(disabled_reason="", language=address.language))
                else:
                    row = {
                        # Not made from the address, which is a secret that ids must not help to guess.
                        "subscription_id": str(uuid.uuid4()),
                        "kind": SinkKind.APPRISE,
                        "url": address.url,
                        "secret": "",
                        "create_time": now,
                        "language": address.language,
                    }
                    _insert(connection, row, address.tenant, configured=True)


def _checked(wish: Wish) -> str:
    """What is stored as the wish's secret."""
    if wish.language not in LANGUAGES:
        raise InputError(
            f"the language {wish.language[:16]!r} is not known",
            remedy=f"one of {', '.join(LANGUAGES)}",
            field="language",
        )
    if max(len(wish.analysis_id), len(wish.document_id)) > 36:
        raise InputError("the id is none of ours", remedy="give an id as Get has it", field="subscription")
    try:
        if wish.kind is SinkKind.WEB_PUSH:
            check_url(wish.url)
            return push_keys(wish.p256dh, wish.auth).stored
        check_url(wish.url)
        secret = wish.secret or keys.new_secret(asymmetric=wish.asymmetric)
        keys.check_secret(secret)
    except ConfigurationError as error:
        raise InputError(error.reason, remedy=error.remedy, field="subscription") from error
    return secret


def _same_browser(tenant: str, wish: Wish) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        subscriptions.c.tenant == tenant,
        subscriptions.c.kind == SinkKind.WEB_PUSH,
        subscriptions.c.url == wish.url,
        subscriptions.c.analysis_id == wish.analysis_id,
        subscriptions.c.document_id == wish.document_id,
    )


def _row(stored: Mapping[Any, Any]) -> SubscriptionRow:
    fields = {name: value for name, value in stored.items() if name != "secret"}
    if stored["kind"] is SinkKind.APPRISE:
        fields["url"] = shown(stored["url"])
    public = keys.public_key(stored["secret"]) if stored["kind"] is SinkKind.WEBHOOK else ""
    return SubscriptionRow(**fields, public_key=public)


def _not_found(subscription_id: str) -> NotFound:
    name = subscription_id[:64]
    return NotFound(f"there is no subscription {name!r}", remedy="list them", subscription_id=name)


def _configured_id(webhook: Webhook) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"docferry:{webhook.tenant}:{webhook.url}"))


def _insert(connection: sa.Connection, row: Mapping[str, Any], tenant: str, *, configured: bool) -> None:
    values = {"disabled_reason": "", "lease_until": 0, **row, "tenant": tenant, "configured": configured}
    connection.execute(subscriptions.insert().values(values))
