"""Sessions of people: what their browsers keep in the place of a key. Rows, so that all front ends know them."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

import sqlalchemy as sa

from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Clock, Database
from docferry_cloud.schema import sessions

SESSION_S = 12 * 3600
"""A working day: nobody logs in twice on one, and a forgotten browser is not in tomorrow."""

PREFIX = "dfo_"
_SHAPE = re.compile(rf"{PREFIX}([0-9a-f]{{16}})_([A-Za-z0-9_-]{{43}})")
# Compared with when there is no such session.
_NOBODYS = bytes(32)


@dataclass(frozen=True, slots=True)
class Session:
    """A session without its secret; times in microseconds since 1970.

    Attributes:
        holder: The key's id, or the hash of the token in hex: whoever opened it, and whose revocation ends it.
    """

    session_id: str
    secret_sha256: bytes
    holder: str
    expire_time: int


def parsed(text: str) -> tuple[str, str] | None:
    """Id and secret in a session's text; None if it has not a session's shape."""
    match = _SHAPE.fullmatch(text)
    return (match[1], match[2]) if match else None


def fits(session: Session | None, secret: str) -> bool:
    """Whether the secret is the session's; takes the same time whatever the answer."""
    same = hmac.compare_digest(session.secret_sha256 if session else _NOBODYS, _digest(secret))
    return same and session is not None


class Sessions:
    """The sessions in one database."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or database.now

    def open(self, holder: str) -> tuple[str, int]:
        """Begin a session; gives its text, which is nowhere kept, and when it ends."""
        session_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        now = self._clock()
        until = now + SESSION_S * MICROSECONDS
        row = {"session_id": session_id, "secret_sha256": _digest(secret), "holder": holder}
        with self._database.write() as connection:
            connection.execute(sessions.insert().values(row | {"create_time": now, "expire_time": until}))
        return f"{PREFIX}{session_id}_{secret}", until

    def find(self, session_id: str) -> Session | None:
        """A session by its id, whether or not it is over."""
        columns = (sessions.c[name] for name in Session.__dataclass_fields__)
        with self._database.read() as connection:
            row = connection.execute(sa.select(*columns).where(sessions.c.session_id == session_id)).one_or_none()
        return None if row is None else Session(**row._mapping)

    def close(self, session_id: str) -> None:
        """End a session; one that is over stays so."""
        with self._database.write() as connection:
            connection.execute(sessions.delete().where(sessions.c.session_id == session_id))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
