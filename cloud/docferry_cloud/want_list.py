"""What the cloud wants of devices: asked for by people, given to devices, refused, given up.

Engines ask through `WorkList.ask`, and `supply` stores what comes.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass

import sqlalchemy as sa
from google.protobuf.timestamp_pb2 import Timestamp

from docferry.document import Box
from docferry.errors import EnvelopeError, InputError, NotFound, Overloaded, PixelsUnavailable
from docferry.packing import MAX_PAGES
from docferry.v1 import analysis_pb2 as pb
from docferry.v1 import analysis_service_pb2 as service_pb
from docferry.v1 import device_service_pb2 as device_pb
from docferry.v1 import envelope_pb2 as envelope_pb
from docferry.wire import box_from_proto, box_to_proto
from docferry_cloud import wanted
from docferry_cloud.analysis_rows import COLUMNS, DIRECT_LEASE_S, MICROSECONDS, first, own
from docferry_cloud.database import Clock, Database
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.rows import AnalysisRow, Caller, WantRow
from docferry_cloud.schema import EventType, State, WantState, analyses, envelopes, wants

MAX_SCALE = 16.0
"""Pixels for one of the prepared page; more is a mistake."""
_WRONG_CLOCK_S = 60
"""A want raised further ahead than this was raised by a clock that was wrong."""
_WHOLE_PAGE = (envelope_pb.PART_KIND_PAGE, envelope_pb.PART_KIND_ORIGINAL)


@dataclass(frozen=True, slots=True)
class Refused:
    """The analysis's state after a refusal; `resumed` if it was the last thing it waited for."""

    state: State
    resumed: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """A picture that a person would like to see: a page, or the piece in `box` of it, at a scale."""

    page: int
    box: Box | None = None
    scale: float = 1.0


class WantList:
    """The wants in one database. Every method blocks.

    Args:
        request_s: How long a device has for what a person asked for.
    """

    def __init__(self, database: Database, log: EventLog, *, request_s: float, clock: Clock | None = None) -> None:
        self._database = database
        self._log = log
        self._request_s = request_s
        self._clock = clock or database.now

    def latest(self) -> int:
        """The newest want's sequence; 0 if there is none."""
        with self._database.read() as connection:
            return int(connection.execute(sa.select(sa.func.max(wants.c.sequence))).scalar_one() or 0)

    def open(self, caller: Caller, after: int, limit: int) -> tuple[WantRow, ...]:
        """What this device has still to supply, oldest first, of what was raised after a sequence."""
        with self._database.read() as connection:
            return wanted.rows(
                connection,
                wants.c.tenant == caller.tenant,
                wants.c.device == caller.device,
                wants.c.sequence > after,
                wants.c.state == WantState.OPEN,
                limit=limit,
            )

    def request(self, tenant: str, analysis_id: str, wish: Wish) -> str:
        """Ask the device for a picture, for a person; gives its part id.

        What is here already, or already awaited, is not asked for again.

        Raises:
            NotFound: This tenant has no such analysis.
            PixelsUnavailable: The device keeps no original.
            Overloaded: Too much was asked for about this analysis.
        """
        with self._database.write() as connection:
            row = own(connection, tenant, analysis_id)
            known = wanted.rows(connection, wants.c.analysis_id == analysis_id)
            envelope = _envelope(connection, analysis_id)
            at_hand = _at_hand(envelope, known, wish)
            if at_hand:
                return at_hand
            if not envelope.original_percent:
                raise PixelsUnavailable(
                    f"analysis {analysis_id}: its device keeps no original, so nothing more of it can be fetched",
                    remedy="capture the document again, or use an agent that keeps originals",
                    analysis_id=analysis_id,
                )
            if len(known) >= wanted.MAX_WANTS:
                raise Overloaded(f"{wanted.MAX_WANTS} pictures were asked for already", retry_after=self._request_s)
            now = self._clock()
            expire_time = now + int(self._request_s * MICROSECONDS)
            message = new_want(wish.page, wish.box, wish.scale, "somebody would like to see it", expire_time)
            self._append(connection, row)
            wanted.insert(connection, row, [message], blocking=False, now=now, expire_time=expire_time)
        self._log.announce()
        return message.part_id

    def refuse(self, caller: Caller, analysis_id: str, part_id: str, reason: pb.Notice) -> Refused:
        """Store that a device will not supply a part; a want that is closed already stays as it is.

        Raises:
            NotFound: Nothing of that name is wanted of this device.
        """
        with self._database.write() as connection:
            row = own(connection, caller.tenant, analysis_id)
            want = wanted.find(connection, analysis_id, part_id)
            if want is None or want.device != caller.device:
                raise NotFound(
                    f"part {part_id[:64]!r} is not wanted of this device", remedy="refuse what Watch has told"
                )
            if want.state is not WantState.OPEN:
                return Refused(row.state, resumed=False)
            resumed = self._close(connection, row, want, WantState.REFUSED, reason.SerializeToString())
        self._log.announce()
        return Refused(State.PENDING if resumed else row.state, resumed)

    def lapse(self, limit: int = 200) -> int:
        """Give up at most `limit` wants whose time is over; analyses that waited for them go on. Gives how many."""
        with self._database.write() as connection:
            now = self._clock()
            over = sa.or_(wants.c.expire_time <= now, wants.c.create_time > now + _WRONG_CLOCK_S * MICROSECONDS)
            lapsed = wanted.rows(connection, wants.c.state == WantState.OPEN, over, limit=limit)
            for want in lapsed:
                row = first(connection, sa.select(*COLUMNS).where(analyses.c.analysis_id == want.analysis_id))
                if row is not None:
                    self._close(connection, row, want, WantState.LAPSED, None, lease_s=0)
        if lapsed:
            self._log.announce()
        return len(lapsed)

    def _close(
        self,
        connection: sa.Connection,
        row: AnalysisRow,
        want: WantRow,
        state: WantState,
        refusal: bytes | None,
        lease_s: float = DIRECT_LEASE_S,
    ) -> bool:
        wanted.close(connection, want, state, refusal)
        if not want.blocking:
            self._append(connection, row)
        now = self._clock()
        return wanted.resume(connection, row, now=now, lease_until=now + int(lease_s * MICROSECONDS))

    def _append(self, connection: sa.Connection, row: AnalysisRow) -> None:
        self._log.append(connection, wants_changed(row))


def wants_changed(row: AnalysisRow) -> Happening:
    """The event that tells people of what they asked for."""
    kind = EventType.WANTS_CHANGED
    return Happening(kind, row.tenant, row.analysis_id, row.document_id, row.state, row.version)


def new_want(page: int, box: Box | None, scale: float, why: str, expire_time: int) -> pb.Want:
    """A want with a name that no other part has: of a page, or of the piece in `box` of it."""
    return pb.Want(
        # Devices name the parts of their envelopes as they like; nobody guesses this one.
        part_id=f"w{secrets.token_hex(8)}",
        kind=envelope_pb.PART_KIND_PAGE if box is None else envelope_pb.PART_KIND_CROP,
        page=page,
        box=None if box is None else box_to_proto(box),
        scale=scale,
        why=why,
        expire_time=Timestamp(seconds=expire_time // MICROSECONDS),
    )


def wish(request: service_pb.RequestPartRequest) -> Wish:
    """The wish in a request.

    Raises:
        InputError: There is no such page, piece or scale.
    """
    if request.page >= MAX_PAGES:
        raise InputError(f"page is {request.page}", remedy=f"number pages 0..{MAX_PAGES - 1}", field="page")
    scale = request.scale or 1.0
    if not (math.isfinite(scale) and 0 < scale <= MAX_SCALE):
        raise InputError(f"scale is {scale:g}", remedy=f"give at most {MAX_SCALE:g}, or 0 for 1", field="scale")
    if not request.HasField("box"):
        return Wish(request.page, None, scale)
    box = box_from_proto(request.box)
    if not (0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1):
        raise InputError(
            "box is not a box within the page", remedy="0 <= x0 < x1 <= 1, same for y; or leave it out", field="box"
        )
    return Wish(request.page, box, scale)


def refusal(request: device_pb.RefuseRequest) -> pb.Notice:
    """The reason in a refusal.

    Raises:
        EnvelopeError: There is none, or a longer one than is kept.
    """
    reason = request.reason
    if not 0 < len(reason.code) <= 64 or len(reason.detail) > 500:
        raise EnvelopeError(
            "the reason is missing or too long", remedy="a code of 1..64, a detail of at most 500", field="reason"
        )
    return reason


def _envelope(connection: sa.Connection, analysis_id: str) -> envelope_pb.Envelope:
    query = sa.select(envelopes.c.body).where(envelopes.c.analysis_id == analysis_id)
    return envelope_pb.Envelope.FromString(connection.execute(query).scalar_one())


def _at_hand(envelope: envelope_pb.Envelope, known: tuple[WantRow, ...], wish: Wish) -> str:
    """The part that shows what is wished for, whether here or awaited; empty if none does."""
    for want in known:
        message = pb.Want.FromString(want.message)
        box = box_from_proto(message.box) if message.HasField("box") else None
        same = (message.page, box) == (wish.page, wish.box) and message.scale >= wish.scale
        if same and want.state in {WantState.OPEN, WantState.SUPPLIED}:
            return want.part_id
    if wish.box is not None or wish.scale > 1:
        return ""
    pages = (part.part_id for part in envelope.parts if part.page == wish.page and part.kind in _WHOLE_PAGE)
    return next(pages, "")
