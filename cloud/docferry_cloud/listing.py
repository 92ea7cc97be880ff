"""Lists of analyses: which, in which order, page by page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from google.protobuf.timestamp_pb2 import Timestamp

from docferry.errors import InputError
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud import wanted as want_rows
from docferry_cloud.analysis_rows import COLUMNS, MICROSECONDS, heads
from docferry_cloud.containing import contains
from docferry_cloud.database import Database
from docferry_cloud.digest import folded
from docferry_cloud.rows import AnalysisRow, DigestRow
from docferry_cloud.schema import State, analyses, digests

_STATES: Mapping[int, State] = {analysis_pb2.Analysis.State.Value(f"STATE_{state.value}"): state for state in State}
_ORDER = pb.AnalysisServiceListRequest.Order
_LONGEST_QUERY = 200
_DIGEST = tuple(digests.c[name] for name in DigestRow.__dataclass_fields__)
_FEW = frozenset(State) - {State.SUCCEEDED}
"""States in which few analyses are, as a rule."""
_EVERYTHING = sa.select(*COLUMNS, *(column.label(f"digest_{column.name}") for column in _DIGEST)).join_from(
    analyses, digests, digests.c.analysis_id == analyses.c.analysis_id
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Which analyses to list, and in which order. Times in microseconds since 1970; None is no bound.

    Attributes:
        created_from, created_before: The first time that counts, and the first that does not any more.
        words: Each must stand in what a search looks at; folded.
        name: Tells one listing from another, so that a page token of one is not taken for another's.
    """

    states: frozenset[State] = frozenset()
    document_id: str = ""
    created_from: int | None = None
    created_before: int | None = None
    oldest_first: bool = False
    doubt_first: bool = False
    words: tuple[str, ...] = ()
    routes: frozenset[int] = frozenset()
    device: str = ""
    name: str = ""


def listing(request: pb.AnalysisServiceListRequest) -> Listing:
    """What a request asks for.

    Raises:
        InputError: There is no such state, route or order, or the query is too long.
    """
    unknown = [number for number in request.states if number not in _STATES]
    if unknown:
        raise InputError(f"states holds {unknown[0]}", remedy="name states of Analysis.State", field="states")
    if request.order not in _ORDER.values():
        raise InputError(f"order is {request.order}", remedy="leave it out for the newest first", field="order")
    strange = [number for number in request.routes if number not in envelope_pb2.RouteDecision.values()]
    if strange:
        raise InputError(f"routes holds {strange[0]}", remedy="name values of RouteDecision", field="routes")
    if len(request.query) > _LONGEST_QUERY:
        raise InputError(
            f"the query has {len(request.query)} characters", remedy=f"give at most {_LONGEST_QUERY}", field="query"
        )
    same = pb.AnalysisServiceListRequest()
    same.CopyFrom(request)
    same.ClearField("page_size")
    same.ClearField("page_token")
    return Listing(
        states=frozenset(_STATES[number] for number in request.states),
        document_id=request.document_id.replace("\0", ""),
        created_from=_micros(request.created_from) if request.HasField("created_from") else None,
        created_before=_micros(request.created_before) if request.HasField("created_before") else None,
        oldest_first=request.order == _ORDER.Value("ORDER_OLDEST_FIRST"),
        doubt_first=request.order == _ORDER.Value("ORDER_DOUBT_FIRST"),
        words=tuple(folded(request.query).split()),
        routes=frozenset(request.routes),
        # PostgreSQL takes no NUL, not even in what is compared.
        device=request.device.replace("\0", ""),
        name=hashlib.sha256(same.SerializeToString(deterministic=True)).hexdigest()[:8],
    )


def page(
    database: Database, tenant: str, wanted: Listing, limit: int, after: tuple[int, str] | None
) -> list[AnalysisRow]:
    """At most `limit` of a tenant's analyses, those behind `(place, analysis_id)`; versions as heads."""
    key = digests.c.weight if wanted.doubt_first else digests.c.create_time
    order = (key, digests.c.analysis_id)
    turned = [column if wanted.oldest_first else column.desc() for column in order]
    # First which, from narrow rows alone, then what they hold: a planner that does not know yet how many rows there are
    # (PostgreSQL before its first ANALYZE) would fetch every wide row of the tenant and sort them.
    which = sa.select(digests.c.analysis_id).where(digests.c.tenant == tenant, *_conditions(tenant, wanted))
    if after is not None:
        here = sa.tuple_(*order)
        which = which.where(here > after if wanted.oldest_first else here < after)
    chosen = which.order_by(*turned).limit(limit).subquery("chosen")
    query = _EVERYTHING.join(chosen, chosen.c.analysis_id == digests.c.analysis_id).order_by(*turned)
    with database.read() as connection:
        rows = [_row(found) for found in connection.execute(query).mappings()]
        return _completed(connection, rows)


def place(row: AnalysisRow, wanted: Listing) -> int:
    """Where a row stands in its list, beside its id: what a page token holds."""
    return row.digest.weight if wanted.doubt_first and row.digest else row.create_time


def _conditions(tenant: str, wanted: Listing) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    if wanted.states:
        found.append(_in_state(tenant, wanted.states))
    if wanted.document_id:
        found.append(_of_analyses(tenant, analyses.c.document_id == wanted.document_id))
    if wanted.created_from is not None:
        found.append(digests.c.create_time >= wanted.created_from)
    if wanted.created_before is not None:
        found.append(digests.c.create_time < wanted.created_before)
    found += [_holds(word) for word in wanted.words]
    if wanted.routes:
        found.append(digests.c.route.in_(wanted.routes))
    if wanted.device:
        found.append(digests.c.device == wanted.device)
    if wanted.doubt_first:
        found += [digests.c.weight > 0, _in_state(tenant, frozenset({State.SUCCEEDED}))]
    return found


def _in_state(tenant: str, states: frozenset[State]) -> sa.ColumnElement[bool]:
    """Few are looked for by their state; for the many, each digest that comes up has its state looked at."""
    if states <= _FEW:
        return _of_analyses(tenant, analyses.c.state.in_(states))
    this = sa.select(analyses.c.analysis_id).where(analyses.c.analysis_id == digests.c.analysis_id)
    return this.where(analyses.c.state.in_(states)).exists()


def _of_analyses(tenant: str, condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    found = sa.select(analyses.c.analysis_id).where(analyses.c.tenant == tenant, condition)
    return digests.c.analysis_id.in_(found)


def _holds(word: str) -> sa.ColumnElement[bool]:
    return sa.or_(contains(digests.c.names, word), contains(digests.c.words, word))


def _row(found: sa.RowMapping) -> AnalysisRow:
    plain = {column.name: found[column.name] for column in COLUMNS}
    return AnalysisRow(**plain, digest=DigestRow(**{column.name: found[f"digest_{column.name}"] for column in _DIGEST}))


def _completed(connection: sa.Connection, rows: Sequence[AnalysisRow]) -> list[AnalysisRow]:
    """The rows with what belongs to them, in three queries however many there are."""
    ids = [row.analysis_id for row in rows]
    parts, versions = heads(connection, ids)
    wants = want_rows.of_analyses(connection, ids)
    return [
        replace(
            row,
            parts=parts.get(row.analysis_id, ()),
            versions=versions.get(row.analysis_id, ()),
            wants=wants.get(row.analysis_id, ()),
        )
        for row in rows
    ]


def _micros(time: Timestamp) -> int:
    # Whatever lies beyond what the database can hold lies beyond every analysis.
    return max(-(1 << 62), min(1 << 62, time.seconds * MICROSECONDS + time.nanos // 1000))
