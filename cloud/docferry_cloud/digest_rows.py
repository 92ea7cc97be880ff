"""Digests as rows: made with their analysis, brought up to date with each version, within the caller's transaction."""

from __future__ import annotations

import math

import sqlalchemy as sa

from docferry.v1 import analysis_pb2, envelope_pb2
from docferry_cloud import digest
from docferry_cloud.digest import Digest
from docferry_cloud.rows import Submission
from docferry_cloud.schema import digests

_CHANGE = (
    digests.update()
    .where(digests.c.analysis_id == sa.bindparam("of"))
    .values(work_ms=digests.c.work_ms + sa.bindparam("more_ms"))
)


def of_submission(analysis_id: str, new: Submission, now: int) -> dict[str, str | int | float]:
    """The row of a submission's digest, with what the edge's version says if it has one."""
    route = envelope_pb2.Route.FromString(new.route)
    traffic = analysis_pb2.Traffic.FromString(new.traffic)
    row: dict[str, str | int | float] = {
        "analysis_id": analysis_id,
        "tenant": new.caller.tenant,
        "device": new.caller.device,
        "create_time": now,
        "names": digest.names(new.file_name, new.caller.device, analysis_id, new.document_id),
        "route": route.decision,
        # NaN sorts and sums differently on each database.
        "risk": min(1.0, max(0.0, route.risk)) if not math.isnan(route.risk) else 1.0,
        "original_bytes": min(traffic.original_bytes, 1 << 62),
        "sent_bytes": traffic.sent_bytes,
    }
    return row | _values(digest.digest(new.edge.interpretation) if new.edge else Digest())


def keep(connection: sa.Connection, analysis_id: str, of: Digest, work_ms: int = 0) -> None:
    """What the newest version says, and how long an engine worked on it."""
    connection.execute(_CHANGE, _values(of) | {"of": analysis_id, "more_ms": work_ms})


def sent(connection: sa.Connection, analysis_id: str, more: int) -> None:
    """More bytes were sent for it."""
    change = digests.update().where(digests.c.analysis_id == analysis_id)
    connection.execute(change.values(sent_bytes=digests.c.sent_bytes + more))


def _values(of: Digest) -> dict[str, str | int | float]:
    return {
        "headline": of.headline,
        "words": of.words,
        "pages": of.pages,
        "doubts": of.doubts,
        "weight": round(of.weight * 1000),
    }
