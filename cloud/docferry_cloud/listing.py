"""Lists of analyses: which, in which order, page by page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from google.protobuf.timestamp_pb2 import Timestamp

from docferry.errors import InputError
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.analysis_rows import COLUMNS, MICROSECONDS, whole
from docferry_cloud.database import Database
from docferry_cloud.rows import AnalysisRow
from docferry_cloud.schema import State, analyses

_STATES: Mapping[int, State] = {analysis_pb2.Analysis.State.Value(f"STATE_{state.value}"): state for state in State}


@dataclass(frozen=True, slots=True)
class Listing:
    """Which analyses to list, and in which order. Times in microseconds since 1970; None is no bound.

    Attributes:
        created_from, created_before: The first time that counts, and the first that does not any more.
        name: Tells one listing from another, so that a page token of one is not taken for another's.
    """

    states: frozenset[State] = frozenset()
    document_id: str = ""
    created_from: int | None = None
    created_before: int | None = None
    oldest_first: bool = False
    name: str = ""


def listing(request: pb.AnalysisServiceListRequest) -> Listing:
    """What a request asks for.

    Raises:
        InputError: There is no such state or order.
    """
    unknown = [number for number in request.states if number not in _STATES]
    if unknown:
        raise InputError(f"states holds {unknown[0]}", remedy="name states of Analysis.State", field="states")
    if request.order not in pb.AnalysisServiceListRequest.Order.values():
        raise InputError(f"order is {request.order}", remedy="leave it out for the newest first", field="order")
    same = pb.AnalysisServiceListRequest()
    same.CopyFrom(request)
    same.ClearField("page_size")
    same.ClearField("page_token")
    return Listing(
        states=frozenset(_STATES[number] for number in request.states),
        document_id=request.document_id,
        created_from=_micros(request.created_from) if request.HasField("created_from") else None,
        created_before=_micros(request.created_before) if request.HasField("created_before") else None,
        oldest_first=request.order == pb.AnalysisServiceListRequest.ORDER_OLDEST_FIRST,
        name=hashlib.sha256(same.SerializeToString(deterministic=True)).hexdigest()[:8],
    )


def page(
    database: Database, tenant: str, wanted: Listing, limit: int, after: tuple[int, str] | None
) -> list[AnalysisRow]:
    """At most `limit` of a tenant's analyses, those behind `(create_time, analysis_id)`; versions as heads."""
    query = sa.select(*COLUMNS).where(analyses.c.tenant == tenant)
    if wanted.states:
        query = query.where(analyses.c.state.in_(wanted.states))
    if wanted.document_id:
        query = query.where(analyses.c.document_id == wanted.document_id)
    if wanted.created_from is not None:
        query = query.where(analyses.c.create_time >= wanted.created_from)
    if wanted.created_before is not None:
        query = query.where(analyses.c.create_time < wanted.created_before)
    order = (analyses.c.create_time, analyses.c.analysis_id)
    if after is not None:
        place = sa.tuple_(*order)
        query = query.where(place > after if wanted.oldest_first else place < after)
    query = query.order_by(*(column if wanted.oldest_first else column.desc() for column in order))
    with database.read() as connection:
        rows = [AnalysisRow(**row) for row in connection.execute(query.limit(limit)).mappings()]
        return [whole(connection, row, content=False) for row in rows]


def _micros(time: Timestamp) -> int:
    # Whatever lies beyond what the database can hold lies beyond every analysis.
    return max(-(1 << 62), min(1 << 62, time.seconds * MICROSECONDS + time.nanos // 1000))
