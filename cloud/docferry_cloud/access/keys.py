"""API keys: made once, shown once, kept as a hash; rows in the service's database."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from docferry.errors import InputError, NotFound
from docferry_cloud.access.rules import Scope
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Clock, Database
from docferry_cloud.schema import keys

PREFIX = "dfk_"
"""What every key begins with, so that a leaked one is recognised for what it is."""

USE_NOTED_S = 60
"""The use of a key is noted at most this often."""

_ID_BYTES, _SECRET_BYTES = 6, 32
_SHAPE = re.compile(rf"{PREFIX}([0-9a-f]{{{2 * _ID_BYTES}}})_([A-Za-z0-9_-]{{43}})")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Compared with when there is no such key: the answer then takes as long as for a wrong secret.
_NOBODYS = bytes(32)


@dataclass(frozen=True, slots=True)
class Key:
    """An issued key without its secret; times in microseconds since 1970.

    Attributes:
        device: Whom requests and wants belong to: a kiosk's name, or the key's own id.
    """

    key_id: str
    tenant: str
    device: str
    name: str
    scopes: frozenset[Scope]
    create_time: int
    expire_time: int | None = None
    revoke_time: int | None = None
    last_use: int | None = None

    def valid(self, now: int) -> bool:
        """Whether it may still be used."""
        return self.revoke_time is None and (self.expire_time is None or now < self.expire_time)


@dataclass(frozen=True, slots=True)
class Stored:
    """A key as it is looked up: with the hash of its secret."""

    key: Key
    secret_sha256: bytes


def parsed(text: str) -> tuple[str, str] | None:
    """Id and secret in a key's text; None if it has not a key's shape."""
    match = _SHAPE.fullmatch(text)
    return (match[1], match[2]) if match else None


def fits(stored: Stored | None, secret: str) -> bool:
    """Whether the secret is the key's; takes the same time whatever the answer."""
    same = hmac.compare_digest(stored.secret_sha256 if stored else _NOBODYS, _digest(secret))
    return same and stored is not None


class Keys:
    """The keys in one database."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or database.now

    def create(
        self, tenant: str, scopes: Iterable[Scope], *, device: str = "", name: str = "", days: float | None = None
    ) -> tuple[Key, str]:
        """Issue a key; gives it and its text, which is nowhere kept.

        Args:
            days: Until it expires; None for never.

        Raises:
            InputError: A name, the scopes or the time cannot be used.
        """
        granted = frozenset(scopes)
        _check(tenant, granted, device, name, days)
        key_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        now = self._clock()
        until = None if days is None else now + int(days * 86400 * MICROSECONDS)
        key = Key(key_id, tenant, device or key_id, name, granted, now, until)
        with self._database.write() as connection:
            connection.execute(
                keys.insert().values(
                    key_id=key_id,
                    tenant=tenant,
                    device=key.device,
                    name=name,
                    scopes=",".join(sorted(granted)),
                    secret_sha256=_digest(secret),
                    create_time=now,
                    expire_time=until,
                )
            )
        return key, f"{PREFIX}{key_id}_{secret}"

    def find(self, key_id: str) -> Stored | None:
        """A key by its id, whether or not it is still valid."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(keys).where(keys.c.key_id == key_id)).one_or_none()
        return None if row is None else Stored(_key(row), row.secret_sha256)

    def exist(self) -> bool:
        """Whether a key was ever issued; one that was revoked counts."""
        with self._database.read() as connection:
            return connection.execute(sa.select(keys.c.key_id).limit(1)).first() is not None

    def newest(self, tenant: str, limit: int) -> list[Key]:
        """A tenant's keys, the newest first, at most `limit`."""
        query = sa.select(keys).where(keys.c.tenant == tenant)
        query = query.order_by(keys.c.create_time.desc(), keys.c.key_id).limit(limit)
        with self._database.read() as connection:
            return [_key(row) for row in connection.execute(query)]

    def all(self, tenant: str = "") -> list[Key]:
        """All keys, or a tenant's, the oldest first."""
        query = sa.select(keys).order_by(keys.c.create_time, keys.c.key_id)
        with self._database.read() as connection:
            found = connection.execute(query.where(keys.c.tenant == tenant) if tenant else query)
            return [_key(row) for row in found]

    def revoke(self, key_id: str, tenant: str = "") -> Key:
        """Take a key back; one that is revoked already stays as it is.

        Args:
            tenant: Whose key it must be; empty for anybody's.

        Raises:
            NotFound: There is no such key.
        """
        change = keys.update().where(keys.c.key_id == key_id, keys.c.revoke_time.is_(None))
        change = change.where(keys.c.tenant == tenant) if tenant else change
        with self._database.write() as connection:
            connection.execute(change.values(revoke_time=self._clock()))
        stored = self.find(key_id)
        if stored is None or (tenant and stored.key.tenant != tenant):
            raise NotFound(f"there is no key {key_id[:64]!r}", remedy="see: docferry cloud keys list")
        return stored.key

    def note_use(self, key_id: str, now: int) -> None:
        """Note that a key was used."""
        with self._database.write() as connection:
            connection.execute(keys.update().where(keys.c.key_id == key_id).values(last_use=now))


def _check(tenant: str, scopes: frozenset[Scope], device: str, name: str, days: float | None) -> None:
    for what, value in (("tenant", tenant), ("device", device or "-"), ("name", name or "-")):
        if not _NAME.fullmatch(value):
            raise InputError(f"{what} is {value[:80]!r}", remedy="use 1..64 letters, digits, '.', '_' or '-'")
    if not scopes:
        raise InputError("the key allows nothing", remedy=f"give one or more of {', '.join(Scope)}")
    if Scope.DEVICE in scopes and not device:
        raise InputError("a key with the scope device belongs to one device", remedy="give --device NAME")
    if days is not None and not 0 < days <= 36500:
        raise InputError(f"the key would expire in {days:g} days", remedy="give more than 0 and at most 36500")


def _key(row: sa.Row[Any]) -> Key:
    scopes = frozenset(Scope(scope) for scope in row.scopes.split(","))
    times = (row.create_time, row.expire_time, row.revoke_time, row.last_use)
    return Key(row.key_id, row.tenant, row.device, row.name, scopes, *times)


def _digest(secret: str) -> bytes:
    # The secret is 32 random bytes: nobody guesses it, so a slow hash would only slow every call.
    return hashlib.sha256(secret.encode()).digest()
