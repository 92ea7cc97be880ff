"""The rows of one analysis within a transaction: found, read, moved from state to state, removed.

Every change of state appends its event in the same transaction. Functions here block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from google.rpc import status_pb2

from docferry.errors import NotFound, TooLate
from docferry_cloud import blob_list, wanted
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.rows import AnalysisRow, NewVersion, PartRow, VersionRow
from docferry_cloud.schema import OPEN_STATES, EventType, State, analyses, parts, tombstones, versions

MICROSECONDS = 1_000_000
DIRECT_LEASE_S = 5
"""How long the sweeper leaves a new row to the process that took it in."""

MAX_CONTENT_BYTES = 12 << 20
"""Content of versions in one answer: an answer may have 16 MiB."""

COLUMNS = (
    analyses.c.analysis_id,
    analyses.c.tenant,
    analyses.c.device,
    analyses.c.request_id,
    analyses.c.document_id,
    analyses.c.state,
    analyses.c.file_name,
    analyses.c.effort,
    analyses.c.route,
    analyses.c.traffic,
    analyses.c.version,
    analyses.c.error,
    analyses.c.create_time,
    analyses.c.update_time,
    analyses.c.expire_time,
    analyses.c.attempts,
    analyses.c.deadline,
    analyses.c.pages_done,
    analyses.c.pages,
)

# Built once: building a statement costs more than running it.
_BY_ID = sa.select(*COLUMNS).where(
    analyses.c.analysis_id == sa.bindparam("analysis_id"), analyses.c.tenant == sa.bindparam("tenant")
)
_PARTS = (
    sa.select(parts.c.part_id, parts.c.announcement, parts.c.size, parts.c.sha256, parts.c.received)
    .where(parts.c.analysis_id == sa.bindparam("analysis_id"))
    .order_by(parts.c.position)
)
_SEVERAL_PARTS = (
    sa.select(
        parts.c.analysis_id, parts.c.part_id, parts.c.announcement, parts.c.size, parts.c.sha256, parts.c.received
    )
    .where(parts.c.analysis_id.in_(sa.bindparam("of", expanding=True)))
    .order_by(parts.c.position)
)
_SEVERAL_HEADS = (
    sa.select(versions.c.analysis_id, versions.c.version, versions.c.engine, versions.c.create_time)
    .where(versions.c.analysis_id.in_(sa.bindparam("of", expanding=True)))
    .order_by(versions.c.version)
)
_LENGTH = sa.func.length(versions.c.interpretation)
# Newest first, with all that are newer.
_SO_FAR = sa.func.sum(_LENGTH).over(order_by=versions.c.version.desc())
_VERSIONS = (
    sa.select(
        versions.c.version,
        versions.c.engine,
        versions.c.create_time,
        sa.case(
            (sa.or_(_SO_FAR <= MAX_CONTENT_BYTES, _SO_FAR == _LENGTH), versions.c.interpretation), else_=sa.literal(b"")
        ).label("interpretation"),
    )
    .where(versions.c.analysis_id == sa.bindparam("analysis_id"))
    .order_by(versions.c.version)
)
_ONE_VERSION = sa.select(
    versions.c.version, versions.c.engine, versions.c.create_time, versions.c.interpretation
).where(versions.c.analysis_id == sa.bindparam("analysis_id"), versions.c.version == sa.bindparam("version"))


def add_version(connection: sa.Connection, analysis_id: str, number: int, version: NewVersion, now: int) -> None:
    """Add a version's row."""
    row = {"analysis_id": analysis_id, "version": number, "engine": version.engine, "create_time": now}
    connection.execute(versions.insert(), row | {"interpretation": version.interpretation})


def move(connection: sa.Connection, log: EventLog, row: AnalysisRow, state: State, now: int) -> None:
    """Move an analysis to a final state and append the event of that name; `row` is how it stood before."""
    wanted.give_up(connection, row.analysis_id)
    change = analyses.update().where(analyses.c.analysis_id == row.analysis_id)
    connection.execute(change.values(state=state, owner=None, update_time=now))
    kind = EventType(state.value)
    log.append(connection, Happening(kind, row.tenant, row.analysis_id, row.document_id, state, row.version))


def fail(connection: sa.Connection, log: EventLog, row: AnalysisRow, error: status_pb2.Status, now: int) -> None:
    """Move an analysis to FAILED, with the reason and the event."""
    change = analyses.update().where(analyses.c.analysis_id == row.analysis_id)
    connection.execute(change.values(error=error.SerializeToString(deterministic=True)))
    move(connection, log, row, State.FAILED, now)


def remove(connection: sa.Connection, log: EventLog, row: AnalysisRow, now: int, retention_days: int) -> list[str]:
    """Delete an analysis and all that was received or made for it; its request is remembered for `retention_days`.

    Gives the names of the objects that nobody holds any more.
    """
    this = analyses.c.analysis_id == row.analysis_id
    until = now + retention_days * 86400 * MICROSECONDS
    named = (analyses.c.tenant, analyses.c.device, analyses.c.request_id)
    request = sa.select(*named, sa.literal(until, sa.BigInteger)).where(this)
    columns = ["tenant", "device", "request_id", "expire_time"]
    connection.execute(tombstones.insert().from_select(columns, request))
    released = blob_list.release(connection, row.tenant, row.analysis_id, now)
    connection.execute(analyses.delete().where(this))
    # What was unfinished never will be: those who wait for a final state must hear one.
    state = State.CANCELLED if row.state in OPEN_STATES else row.state
    log.append(
        connection, Happening(EventType.DELETED, row.tenant, row.analysis_id, row.document_id, state, row.version)
    )
    return released


def own(connection: sa.Connection, tenant: str, analysis_id: str) -> AnalysisRow:
    """A tenant's analysis, without parts and versions.

    Raises:
        NotFound: This tenant has no such analysis; whether another has is not told.
    """
    found = connection.execute(_BY_ID, {"analysis_id": analysis_id, "tenant": tenant}).mappings().first()
    if found is None:
        raise not_found(analysis_id)
    return AnalysisRow(**found)


def first(connection: sa.Connection, query: sa.Select[Any]) -> AnalysisRow | None:
    """The first row of a query over `COLUMNS`."""
    row = connection.execute(query).mappings().first()
    return None if row is None else AnalysisRow(**row)


def not_found(name: str) -> NotFound:
    """The error for an id that this tenant does not have."""
    shown = name[:64]
    return NotFound(
        f"there is no analysis {shown!r}",
        remedy="check the id; results are deleted when their time is over",
        analysis_id=shown,
    )


def too_late() -> TooLate:
    """The error of an analysis that nobody waits for any more."""
    return TooLate(
        "it could not be begun within the time that the caller gave it",
        remedy="submit it again under a new request id, with more time or when there is less to do",
    )


def part_rows(connection: sa.Connection, analysis_id: str) -> tuple[PartRow, ...]:
    """The announced parts, in the order of the envelope."""
    return tuple(PartRow(**row) for row in connection.execute(_PARTS, {"analysis_id": analysis_id}).mappings())


def heads(
    connection: sa.Connection, analysis_ids: Sequence[str]
) -> tuple[dict[str, tuple[PartRow, ...]], dict[str, tuple[VersionRow, ...]]]:
    """Parts and versions of several analyses by their ids, versions without content."""
    found: dict[str, tuple[PartRow, ...]] = {}
    told: dict[str, tuple[VersionRow, ...]] = {}
    these = {"of": list(analysis_ids)}
    for name, *values in connection.execute(_SEVERAL_PARTS, these):
        found[name] = (*found.get(name, ()), PartRow(*values))
    for name, number, engine, created in connection.execute(_SEVERAL_HEADS, these):
        told[name] = (*told.get(name, ()), VersionRow(number, engine, created, b""))
    return found, told


def whole(connection: sa.Connection, row: AnalysisRow, *, version: int = 0) -> AnalysisRow:
    """An analysis with its parts, wants and versions, or with one version alone.

    The newest versions that go into one answer together have their content.

    Raises:
        NotFound: It has no such version.
    """
    this = {"analysis_id": row.analysis_id}
    if version:
        found = connection.execute(_ONE_VERSION, this | {"version": version}).mappings().all()
        if not found:
            raise NotFound(
                f"analysis {row.analysis_id} has no version {version}",
                remedy=f"its newest is {row.version}",
                analysis_id=row.analysis_id,
            )
    else:
        found = connection.execute(_VERSIONS, this).mappings().all()
    return replace(
        row,
        parts=part_rows(connection, row.analysis_id),
        wants=wanted.of_analysis(connection, row.analysis_id),
        versions=tuple(VersionRow(**each) for each in found),
    )
