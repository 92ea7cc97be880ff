"""The one way in: every call is authenticated, allowed, counted and recorded here, or it is not made."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import math
import time
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import grpc.aio

from docferry.errors import DocferryError, Forbidden, Unauthenticated
from docferry_cloud.access import sessions
from docferry_cloud.access.audit import Entry, Trail
from docferry_cloud.access.claims import Claims, Half, claim_fits, parsed_claim
from docferry_cloud.access.keys import USE_NOTED_S, Keys, Stored, fits, parsed
from docferry_cloud.access.limits import CallLimits
from docferry_cloud.access.rules import RULES, Scope
from docferry_cloud.access.sessions import Session, Sessions
from docferry_cloud.access.strangers import Strangers
from docferry_cloud.analysis_rows import MICROSECONDS, not_found
from docferry_cloud.database import Database
from docferry_cloud.rows import Caller
from docferry_cloud.settings import LOCAL_TENANT
from docferry_cloud.settings_rows import Token

log = logging.getLogger(__name__)

REMEMBERED_S = 2.0
"""How long a looked-up key is taken for what it was: a revoked one is refused everywhere after this."""

CALLED_FROM = "docferry-called-from"
"""Metadata in which this process's own HTTP side names the address of its caller; from others it says nothing."""

_MOST_REMEMBERED = 10_000
_SCHEME = "bearer "
_HASH_DIGITS = 64
_ALL = frozenset(Scope)
_OF_ALL = frozenset({Scope.READ, Scope.ADMIN})
_READERS = RULES["docferry.v1.AnalysisService.Get"].scopes
Context = grpc.aio.ServicerContext[Any, Any]
Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who calls, and what that allows.

    Attributes:
        who: Names the key or the token.
        holder: What a session of it is bound to: the key's id, or the token's hash in hex.
        session_id: The session that it comes by, if it does.
    """

    caller: Caller
    who: str
    scopes: frozenset[Scope]
    holder: str = ""
    session_id: str = ""


LOCAL = Visitor(Caller(LOCAL_TENANT, LOCAL_TENANT), LOCAL_TENANT, _ALL)
"""Everyone, as long as there are neither tokens nor keys."""


class Gate:
    """Admits calls.

    Args:
        tokens: From the settings; each allows everything within its tenant, for its device.
        limits: By keys.
        strangers: Bounds what is tried and is not valid.
    """

    def __init__(
        self,
        database: Database,
        keys: Keys,
        tokens: tuple[Token, ...],
        limits: CallLimits,
        strangers: Strangers,
        trail: Trail,
    ) -> None:
        self._database = database
        self._keys = keys
        self._claims = Claims(database)
        self._tokens = tokens
        self._limits = limits
        self._strangers = strangers
        self.trail = trail
        # A key, the database's time when it was looked up, and ours.
        self._remembered: dict[str, tuple[Stored, int, float]] = {}
        self._sessions = Sessions(database)
        self._remembered_sessions: dict[str, tuple[Session, float]] = {}
        self._noted: dict[str, int] = {}
        self._open: tuple[bool, float] | None = None

    def visit(self, rpc: str, context: Context) -> Visit:
        """A call that comes in; to be entered before anything is done for it."""
        return Visit(self, rpc, context)

    async def visitor(self, metadata: Any, peer: str) -> Visitor:
        """Who carries this metadata, coming from there.

        Raises:
            Unauthenticated: There is no token or key in it, or none that is valid.
            Overloaded: Too much came from there that is not valid.
        """
        given = _given(metadata)
        if not given:
            if await self._is_open():
                return LOCAL
            raise Unauthenticated("the call carries no key", remedy="send the metadata `authorization: Bearer KEY`")
        with self._strangers.asked(given, peer):
            return await self._who(given)

    async def knock(self, metadata: Metadata) -> None:
        """Ask on behalf of whoever called this process's own HTTP side.

        Raises:
            Unauthenticated, Overloaded: As for `visitor`.
        """
        await self.visitor(metadata, _value(metadata, CALLED_FROM))

    async def _who(self, given: str) -> Visitor:
        if parsed_claim(given):
            # Refused when it is over also where everyone else is local: it was for one document.
            if (claimed := await self._by_claim(given)) is None:
                raise Unauthenticated("this link is not valid", remedy="scan the code again, or ask for a new link")
            return claimed
        if (session := sessions.parsed(given)) is not None:
            found = await self._by_session(*session)
        elif (key := parsed(given)) is not None:
            found = await self._by_key(*key)
        else:
            found = self._by_token(hashlib.sha256(given.encode()).digest())
        if found is not None:
            return found
        # A key that someone sends to a service which needs none does no harm.
        if await self._is_open():
            return LOCAL
        # One answer for what never was, is over or was taken back: there is nothing to learn here.
        raise Unauthenticated("this key is not valid", remedy="ask the operator for a key of your own")

    def take(self, visitor: Visitor) -> None:
        """Count a call against the visitor's limit.

        Raises:
            Overloaded: Too many.
        """
        if visitor is not LOCAL:
            self._limits.take(visitor.who)

    def forget(self, session_id: str) -> None:
        """Refuse a session that is over at once; other front ends do within `REMEMBERED_S`."""
        self._remembered_sessions.pop(session_id, None)

    def _by_token(self, digest: bytes) -> Visitor | None:
        # Every token is compared, in constant time: how long this takes tells nothing.
        matches = [token for token in self._tokens if hmac.compare_digest(token.sha256, digest)]
        if not matches:
            return None
        token = matches[0]
        who = f"{token.tenant}/{token.device}"
        return Visitor(Caller(token.tenant, token.device), who, _ALL, digest.hex())

    async def _by_session(self, session_id: str, secret: str) -> Visitor | None:
        """Whoever opened the session, as long as that holds: a key that is revoked takes its sessions along."""
        before = time.monotonic()
        session, looked_up = self._remembered_sessions.get(session_id, (None, -math.inf))
        if before - looked_up > REMEMBERED_S:
            session = await self._database.run(self._sessions.find, session_id)
            self._remembered_sessions.pop(session_id, None)
            if session is not None:
                self._remembered_sessions[session_id] = (session, before)
                if len(self._remembered_sessions) > _MOST_REMEMBERED:
                    del self._remembered_sessions[next(iter(self._remembered_sessions))]
        if not sessions.fits(session, secret) or session is None:
            return None
        if await self._database.run(self._database.now) >= session.expire_time:
            return None
        if len(session.holder) == _HASH_DIGITS:
            found = self._by_token(bytes.fromhex(session.holder))
        else:
            found = await self._by_key(session.holder, None)
        return None if found is None else replace(found, session_id=session_id)

    async def _by_key(self, key_id: str, secret: str | None) -> Visitor | None:
        """The key's visitor, if it is valid and the secret its own; None asks for no secret: a session had its own."""
        stored, now = await self._look_up(key_id)
        if (secret is not None and not fits(stored, secret)) or stored is None or not stored.key.valid(now):
            return None
        key = stored.key
        if now - self._noted.get(key_id, key.last_use or 0) > USE_NOTED_S * MICROSECONDS:
            self._noted[key_id] = now
            await self._database.run(self._keys.note_use, key_id, now)
        return Visitor(Caller(key.tenant, key.device), key_id, key.scopes, key_id)

    async def _by_claim(self, given: str) -> Visitor | None:
        """Whoever holds a claim: looked up at every call, so that taking one back holds at once."""
        half, claim_id, secret = parsed_claim(given) or (Half.LINK, "", "")
        stored, now = await self._database.run(lambda: (self._claims.find(claim_id), self._database.now()))
        if not claim_fits(stored, half, secret) or stored is None:
            return None
        claim, who = stored.claim, f"claim:{claim_id}"
        if half is Half.LINK:
            # Whether it can still be opened is decided when it is, so that of two only one succeeds.
            return Visitor(Caller(claim.tenant, claim.device, link=claim_id), who, frozenset())
        if not claim.session_valid(now):
            return None
        return Visitor(Caller(claim.tenant, claim.device, claimed=claim.analysis_id), who, frozenset())

    async def _look_up(self, key_id: str) -> tuple[Stored | None, int]:
        """A key, and the database's time: every front end takes a key to expire at the same moment."""
        before = time.monotonic()
        known = self._remembered.get(key_id)
        if known is not None and before - known[2] <= REMEMBERED_S:
            return known[0], known[1] + int((before - known[2]) * MICROSECONDS)
        stored, now = await self._database.run(lambda: (self._keys.find(key_id), self._database.now()))
        self._remembered.pop(key_id, None)
        # Ids that nobody issued are not remembered: a flood of them costs time, never memory.
        if stored is not None:
            self._remembered[key_id] = (stored, now, before)
            if len(self._remembered) > _MOST_REMEMBERED:
                gone = next(iter(self._remembered))
                del self._remembered[gone]
                self._noted.pop(gone, None)
        return stored, now

    async def _is_open(self) -> bool:
        """Without tokens, and until the first key is issued, everyone is local: the address is this machine's own.

        Revoking the last key does not open the door again.
        """
        if self._tokens or (self._open is not None and not self._open[0]):
            return False
        if self._open is None or time.monotonic() - self._open[1] > REMEMBERED_S:
            before = time.monotonic()
            self._open = (not await self._database.run(self._keys.exist), before)
        return self._open[0]


class Visit:
    """One call from its coming to its end, which is recorded whatever it was."""

    def __init__(self, gate: Gate, rpc: str, context: Context) -> None:
        self._gate = gate
        self._rpc = rpc
        # Taken now: gRPC's context of a call that was cancelled has no peer left, and asking for it ends the process.
        self._metadata = tuple(context.invocation_metadata() or ())
        self._peer = _peer(context.peer() or "", self._metadata)
        self._visitor: Visitor | None = None
        self._analysis_id = ""
        self._checked = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._visitor is LOCAL:
            return
        if error is None:
            outcome = "OK"
        elif isinstance(error, DocferryError):
            outcome = error.code
        else:
            outcome = "LEFT" if isinstance(error, (asyncio.CancelledError, GeneratorExit)) else "INTERNAL"
        if outcome == "OK" and not RULES[self._rpc].recorded:
            return
        visitor = self._visitor
        key = parsed(_given(self._metadata))
        self._gate.trail.note(
            Entry(
                time=time.time_ns() // 1000,
                tenant=visitor.caller.tenant if visitor else "",
                who=visitor.who if visitor else (key[0] if key else ""),
                rpc=self._rpc.removeprefix("docferry.v1."),
                # Taken from the request before anything was checked; PostgreSQL stores no NUL.
                analysis_id=self._analysis_id.replace("\0", "\ufffd")[:64],
                outcome=outcome,
                peer=self._peer[:64],
            )
        )

    async def admitted(self) -> Caller:
        """The caller, if it may call this.

        Raises:
            Unauthenticated: Nobody knows who it is.
            Forbidden: Its key does not allow this.
            Overloaded: It calls too often, or too much came from its address that is not valid.
            Unavailable: The call could not be recorded.
        """
        rule = RULES[self._rpc]
        visitor = self._visitor = await self._gate.visitor(self._metadata, self._peer)
        self._checked = time.monotonic()
        if visitor is LOCAL:
            return self._caller(visitor)
        caller = visitor.caller
        if not (visitor.scopes & rule.scopes or (caller.claimed and rule.claimed) or (caller.link and rule.opens)):
            raise Forbidden(
                f"this key does not allow {self._rpc.rpartition('.')[2]}",
                remedy=f"use a key with one of the scopes {', '.join(sorted(rule.scopes)) or 'of a link'}",
            )
        if rule.keyed and len(visitor.holder) == _HASH_DIGITS:
            raise Forbidden(
                f"a token of the settings does not allow {self._rpc.rpartition('.')[2]}",
                remedy="use a key: docferry cloud keys create",
            )
        self._gate.take(visitor)
        if rule.recorded:
            self._gate.trail.check_room()
        return self._caller(visitor)

    def _caller(self, visitor: Visitor) -> Caller:
        return replace(
            visitor.caller,
            traceparent=_value(self._metadata, "traceparent"),
            reads=bool(visitor.scopes & _READERS or visitor.caller.claimed),
            only_own=not visitor.scopes & _OF_ALL,
            who="" if visitor is LOCAL else visitor.who,
            scopes=frozenset(visitor.scopes),
            session_id=visitor.session_id,
            holder=visitor.holder,
        )

    async def still_admitted(self) -> None:
        """Between two messages of a stream: a key may expire or be revoked while it runs.

        Raises:
            Unauthenticated: It was.
        """
        if time.monotonic() - self._checked > REMEMBERED_S:
            await self._gate.visitor(self._metadata, self._peer)
            self._checked = time.monotonic()

    def confine(self, request: Any) -> None:
        """Keep the holder of a claim to its document.

        Raises:
            NotFound: The request is about another one, or about none where it could name one.
        """
        claimed, named = self._visitor.caller.claimed if self._visitor else "", RULES[self._rpc].names
        if not claimed or not named:
            return
        value = request
        for name in named.split("."):
            value = getattr(value, name)
        if value != claimed:
            raise not_found(str(value))

    def about(self, message: Any) -> None:
        """Take the analysis's id, or that of the key it is about, from a request or an answer that names one."""
        named = getattr(message, "analysis_id", "") or getattr(getattr(message, "analysis", None), "analysis_id", "")
        named = named or getattr(message, "key_id", "") or getattr(getattr(message, "key", None), "key_id", "")
        self._analysis_id = self._analysis_id or str(named)


def _peer(peer: str, metadata: Metadata) -> str:
    """The address a call came from."""
    if not peer.startswith("unix:"):
        return peer
    # Only our own HTTP side reaches the socket: its folder is this process's.
    return _value(metadata, CALLED_FROM)


def _value(metadata: Metadata, name: str) -> str:
    """A value in a call's metadata; empty if there is none."""
    value = next((value for key, value in metadata if key == name), "")
    return value if isinstance(value, str) else value.decode("latin-1")


def _given(metadata: Any) -> str:
    """The bearer token in a call's metadata; empty if there is none."""
    value = next((value for key, value in metadata or () if key == "authorization"), "")
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return text[len(_SCHEME) :].strip() if text.lower().startswith(_SCHEME) else ""
