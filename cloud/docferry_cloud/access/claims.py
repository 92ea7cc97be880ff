"""Claims: one document handed to whoever opens a one-time link first; rows in the database, secrets as hashes.

A claim has two secrets, one after the other: the link's, which opens it once, and the session's, which is taken for its
analysis from then on. Both end with the analysis, whose rows these hang on.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from docferry.errors import InputError, NotFound, Overloaded
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Clock, Database
from docferry_cloud.schema import SinkKind, claims, subscriptions

OPEN_WITHIN_S = 86400.0
"""How long a link can be opened unless its maker says otherwise."""
MAX_OPEN_WITHIN_S = 7 * 86400.0
SESSION_S = 30 * 86400.0
"""How long a session is taken."""
MAX_CLAIMS = 50
"""Of one analysis: a kiosk makes a new link whenever somebody asks for one."""

_ID_BYTES, _SECRET_BYTES = 6, 32
# Compared with when there is no such claim: the answer then takes as long as for a wrong secret.
_NOBODYS = bytes(32)


class Half(enum.StrEnum):
    """Which of a claim's two secrets a text holds; the value is what the text begins with."""

    LINK = "dfl_"
    SESSION = "dfs_"


_SHAPE = re.compile(rf"({'|'.join(Half)})([0-9a-f]{{{2 * _ID_BYTES}}})_([A-Za-z0-9_-]{{43}})")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim without its secrets; times in microseconds since 1970.

    Attributes:
        device: That of the analysis.
        expire_time: Until when the link can be opened.
        session_until: Until when the session is taken; None before it was opened.
    """

    claim_id: str
    tenant: str
    device: str
    analysis_id: str
    expire_time: int
    session_until: int | None
    revoke_time: int | None

    def session_valid(self, now: int) -> bool:
        """Whether its session is still taken."""
        return self.revoke_time is None and self.session_until is not None and now < self.session_until


@dataclass(frozen=True, slots=True)
class StoredClaim:
    """A claim as it is looked up: with the hashes of its secrets."""

    claim: Claim
    link_sha256: bytes
    session_sha256: bytes | None


def parsed_claim(text: str) -> tuple[Half, str, str] | None:
    """Which half, id and secret in a claim's text; None if it has not a claim's shape."""
    match = _SHAPE.fullmatch(text)
    return (Half(match[1]), match[2], match[3]) if match else None


def claim_fits(stored: StoredClaim | None, half: Half, secret: str) -> bool:
    """Whether the secret is the claim's; takes the same time whatever the answer."""
    kept = None if stored is None else stored.link_sha256 if half is Half.LINK else stored.session_sha256
    same = hmac.compare_digest(kept or _NOBODYS, _digest(secret))
    return same and kept is not None


class Claims:
    """The claims in one database. Every method blocks."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or database.now

    def create(self, tenant: str, device: str, analysis_id: str, open_within_s: float) -> tuple[Claim, str]:
        """Make a link for an analysis that is there; gives the claim and the link's text, which is nowhere kept.

        Raises:
            InputError: The time cannot be used.
            Overloaded: The analysis has `MAX_CLAIMS` links that can still be opened.
        """
        if not 0 < open_within_s <= MAX_OPEN_WITHIN_S:
            raise InputError(
                f"the link would be open for {open_within_s:g} s",
                remedy=f"give more than 0 and at most {MAX_OPEN_WITHIN_S:g} s",
                field="open_within",
            )
        claim_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        now = self._clock()
        claim = Claim(claim_id, tenant, device, analysis_id, now + int(open_within_s * MICROSECONDS), None, None)
        waiting = (claims.c.analysis_id == analysis_id, claims.c.session_sha256.is_(None), claims.c.expire_time > now)
        with self._database.write() as connection:
            count = sa.select(sa.func.count()).select_from(claims).where(*waiting, claims.c.revoke_time.is_(None))
            if connection.execute(count).scalar_one() >= MAX_CLAIMS:
                raise Overloaded(
                    f"the analysis has {MAX_CLAIMS} links that nobody has opened", retry_after=60, remedy="revoke them"
                )
            connection.execute(
                claims.insert().values(
                    claim_id=claim_id,
                    tenant=tenant,
                    device=device,
                    analysis_id=analysis_id,
                    link_sha256=_digest(secret),
                    create_time=now,
                    expire_time=claim.expire_time,
                )
            )
        return claim, f"{Half.LINK}{claim_id}_{secret}"

    def find(self, claim_id: str) -> StoredClaim | None:
        """A claim by its id, in whatever state it is."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(claims).where(claims.c.claim_id == claim_id)).one_or_none()
        return None if row is None else StoredClaim(_claim(row), row.link_sha256, row.session_sha256)

    def open(self, claim_id: str) -> tuple[Claim, str]:
        """Open a link: gives the claim and its session's text, which is nowhere kept. Of two who try, one succeeds.

        Raises:
            NotFound: It was opened before, has expired or was taken back.
        """
        secret, now = secrets.token_urlsafe(_SECRET_BYTES), self._clock()
        until = now + int(SESSION_S * MICROSECONDS)
        this = claims.c.claim_id == claim_id
        unopened = (claims.c.session_sha256.is_(None), claims.c.revoke_time.is_(None), claims.c.expire_time > now)
        change = claims.update().where(this, *unopened).values(session_sha256=_digest(secret), session_until=until)
        with self._database.write() as connection:
            if connection.execute(change).rowcount == 0:
                # One answer for all three: whoever holds the link learns nothing of who came before.
                raise NotFound("this link leads nowhere any more", remedy="scan the code again, or ask for a new link")
            row = connection.execute(sa.select(claims).where(this)).one()
        return _claim(row), f"{Half.SESSION}{claim_id}_{secret}"

    def revoke(self, tenant: str, analysis_id: str) -> int:
        """Take back all claims of an analysis, and the browsers that were told of it alone; gives how many claims."""
        change = claims.update().where(
            claims.c.tenant == tenant, claims.c.analysis_id == analysis_id, claims.c.revoke_time.is_(None)
        )
        told = subscriptions.delete().where(
            subscriptions.c.tenant == tenant,
            subscriptions.c.analysis_id == analysis_id,
            subscriptions.c.kind == SinkKind.WEB_PUSH,
        )
        with self._database.write() as connection:
            count = connection.execute(change.values(revoke_time=self._clock())).rowcount
            connection.execute(told)
        return count


def _claim(row: sa.Row[Any]) -> Claim:
    return Claim(
        claim_id=row.claim_id,
        tenant=row.tenant,
        device=row.device,
        analysis_id=row.analysis_id,
        expire_time=row.expire_time,
        session_until=row.session_until,
        revoke_time=row.revoke_time,
    )


def _digest(secret: str) -> bytes:
    # 32 random bytes, as with keys: nobody guesses them, so a slow hash would only slow every call.
    return hashlib.sha256(secret.encode()).digest()
