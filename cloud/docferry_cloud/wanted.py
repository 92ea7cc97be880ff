"""Wants as rows: what was asked of a device after its envelope, within the caller's transaction.

A blocking want holds its analysis in AWAITING_PARTS: an engine asked for it. Every other one was asked for by a person,
and nothing waits for it but that person.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from docferry.v1 import analysis_pb2 as pb
from docferry.v1 import envelope_pb2 as envelope_pb
from docferry_cloud import places
from docferry_cloud.rows import AnalysisRow, WantRow
from docferry_cloud.schema import State, WantState, analyses, chunks, parts, wants

MAX_WANTS = 64
"""Wants of one analysis, ever."""
MAX_WANTED_BYTES = 64 << 20
"""All parts of one analysis that were asked for, together: they are held in memory at once when it is read again."""

_SAME = sa.and_(parts.c.analysis_id == wants.c.analysis_id, parts.c.part_id == wants.c.part_id)
_ROWS = (
    sa.select(
        *(wants.c[name] for name in WantRow.__dataclass_fields__ if name != "received"),
        sa.func.coalesce(parts.c.received, 0).label("received"),
    )
    .select_from(wants.outerjoin(parts, _SAME))
    .order_by(wants.c.sequence)
)
_OF_ANALYSES = _ROWS.where(wants.c.analysis_id.in_(sa.bindparam("of", expanding=True)))
_OF_ANALYSIS = _ROWS.where(wants.c.analysis_id == sa.bindparam("of"))


def of_analysis(connection: sa.Connection, analysis_id: str) -> tuple[WantRow, ...]:
    """All wants of an analysis, in the order in which they were raised."""
    return tuple(WantRow(**row) for row in connection.execute(_OF_ANALYSIS, {"of": analysis_id}).mappings())


def of_analyses(connection: sa.Connection, analysis_ids: Sequence[str]) -> dict[str, tuple[WantRow, ...]]:
    """The same of several analyses, by their ids; those without wants are left out."""
    found: dict[str, tuple[WantRow, ...]] = {}
    for row in connection.execute(_OF_ANALYSES, {"of": list(analysis_ids)}).mappings():
        found[row["analysis_id"]] = (*found.get(row["analysis_id"], ()), WantRow(**row))
    return found


def rows(
    connection: sa.Connection, *conditions: sa.ColumnElement[bool], limit: int | None = None
) -> tuple[WantRow, ...]:
    """Wants that meet all conditions, in the order in which they were raised."""
    query = _ROWS.where(*conditions)
    if limit is not None:
        query = query.limit(limit)
    return tuple(WantRow(**row) for row in connection.execute(query).mappings())


def find(connection: sa.Connection, analysis_id: str, part_id: str) -> WantRow | None:
    """One want, or None."""
    return next(iter(rows(connection, wants.c.analysis_id == analysis_id, wants.c.part_id == part_id)), None)


def insert(
    connection: sa.Connection,
    row: AnalysisRow,
    messages: Sequence[pb.Want],
    *,
    blocking: bool,
    now: int,
    expire_time: int,
) -> None:
    """Raise wants. Append the event of the transaction first: it is what orders sequences among writers."""
    values: dict[str, Any] = {
        "analysis_id": row.analysis_id,
        "tenant": row.tenant,
        "device": row.device,
        "document_id": row.document_id,
        "state": WantState.OPEN,
        "blocking": blocking,
        "create_time": now,
        "expire_time": expire_time,
    }
    for message in messages:
        body = message.SerializeToString(deterministic=True)
        connection.execute(wants.insert().values(part_id=message.part_id, message=body, **values))


def close(connection: sa.Connection, want: WantRow, state: WantState, refusal: bytes | None = None) -> None:
    """Move a want to a final state; what was received of a part that will not become whole is dropped."""
    this = (wants.c.analysis_id == want.analysis_id, wants.c.part_id == want.part_id)
    connection.execute(wants.update().where(*this).values(state=state, refusal=refusal))
    if state is not WantState.SUPPLIED:
        drop_bytes(connection, want.analysis_id, want.part_id)


def drop_bytes(connection: sa.Connection, analysis_id: str, part_id: str) -> None:
    """Forget what was received of a wanted part: its next chunk begins it anew."""
    for table in (chunks, parts):
        connection.execute(table.delete().where(table.c.analysis_id == analysis_id, table.c.part_id == part_id))


def give_up(connection: sa.Connection, analysis_id: str) -> None:
    """Close what an analysis that ends was waiting for."""
    waited_for = (wants.c.state == WantState.OPEN, wants.c.blocking)
    for want in rows(connection, wants.c.analysis_id == analysis_id, *waited_for):
        close(connection, want, WantState.LAPSED)


def missing(connection: sa.Connection, analysis_id: str) -> bool:
    """Whether an analysis still waits for bytes: of an announced part, or of one that an engine asked for."""
    here = wants.c.analysis_id == analysis_id
    asked = sa.select(wants.c.part_id).where(here)
    announced = sa.select(parts.c.part_id).where(
        parts.c.analysis_id == analysis_id, parts.c.received < parts.c.size, parts.c.part_id.not_in(asked)
    )
    waited_for = asked.where(wants.c.blocking, wants.c.state == WantState.OPEN)
    return any(connection.execute(query.limit(1)).first() is not None for query in (announced, waited_for))


def resume(connection: sa.Connection, row: AnalysisRow, *, now: int, lease_until: int) -> bool:
    """Let an analysis that waits for nothing any more go on; False if it waits, or waited for nothing."""
    if row.state is not State.AWAITING_PARTS or missing(connection, row.analysis_id):
        return False
    change = analyses.update().where(analyses.c.analysis_id == row.analysis_id)
    connection.execute(change.values(state=State.PENDING, update_time=now, lease_until=lease_until))
    places.assign(connection, row.analysis_id)
    return True


def part_of(want: WantRow) -> envelope_pb.Part:
    """The part that answers a want, as far as the want says what it is."""
    message = pb.Want.FromString(want.message)
    part = envelope_pb.Part(part_id=message.part_id, kind=message.kind, page=message.page)
    if message.HasField("box"):
        part.box.CopyFrom(message.box)
    return part
