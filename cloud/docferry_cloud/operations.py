"""What an operator looks at over many documents: figures by route and by day, and the devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from docferry.v1 import envelope_pb2
from docferry_cloud.access.rules import Scope
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Database
from docferry_cloud.schema import State, WantState, analyses, digests, keys, wants

_DAY = 86400 * MICROSECONDS
_MOST_DEVICES = 1000
_SAVING = (envelope_pb2.ROUTE_DECISION_NOTHING, envelope_pb2.ROUTE_DECISION_STRUCTURE)


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """What became of the documents of one route."""

    route: int
    documents: int
    pages: int
    original_bytes: int
    sent_bytes: int
    work_ms: int
    risk: float


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The same of one day, counted from 1970 (UTC); `escalated` is the share for which pixels were sent."""

    day: int
    documents: int
    escalated: float
    risk: float
    doubts: float


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device; `last_seen` in microseconds since 1970."""

    device: str
    last_seen: int
    documents: int = 0
    failed: int = 0
    risk: float = 0.0
    open_wants: int = 0


class Operations:
    """Looks over a tenant's documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def figures(self, tenant: str, days: int) -> tuple[list[RouteFigures], list[DayFigures]]:
        """By route, and by day with the oldest first, of documents of the last `days` days."""
        # A number in the statement and not a parameter: grouping must meet the very same expression.
        day = (digests.c.create_time // sa.literal_column(str(_DAY), sa.BigInteger)).label("day")
        since = self._database.now() - days * _DAY
        # All documents are gone through once; what is left, a row for each day and route, is added up here.
        cells = (
            sa.select(
                day,
                digests.c.route,
                sa.func.count().label("documents"),
                _total(digests.c.pages, "pages"),
                _total(digests.c.original_bytes, "original_bytes"),
                _total(digests.c.sent_bytes, "sent_bytes"),
                _total(digests.c.work_ms, "work_ms"),
                sa.func.sum(digests.c.risk).label("risk"),
                _total(digests.c.doubts, "doubts"),
            )
            .where(digests.c.tenant == tenant, digests.c.create_time >= since)
            .group_by(day, digests.c.route)
        )
        with self._database.read() as connection:
            found = [_Cell(**row) for row in connection.execute(cells).mappings()]
        routes = _parted(found, lambda cell: cell.route)
        by_day = _parted(found, lambda cell: cell.day)
        return [_of_route(*one) for one in routes], [_of_day(*one) for one in by_day]

    def devices(self, tenant: str) -> list[DeviceRow]:
        """Those that handed something in that is still kept, and those that have a key; the last heard of first."""
        of_documents = (
            sa.select(
                digests.c.device,
                sa.func.max(digests.c.create_time).label("last_seen"),
                sa.func.count().label("documents"),
                sa.func.avg(digests.c.risk).label("risk"),
            )
            .where(digests.c.tenant == tenant)
            .group_by(digests.c.device)
            .order_by(sa.desc("last_seen"))
            .limit(_MOST_DEVICES)
        )
        # By themselves: they are few, and no wide row of the others is looked at. Grouped by an expression: for the
        # bare column SQLite would go through all of the tenant's rows, as they lie in its order in an index.
        named = sa.func.coalesce(analyses.c.device, sa.literal_column("''")).label("named")
        of_failed = (
            sa.select(named, sa.func.count())
            .where(analyses.c.tenant == tenant, analyses.c.state == State.FAILED)
            .group_by(named)
        )
        of_keys = sa.select(keys.c.device, keys.c.scopes, keys.c.last_use).where(
            keys.c.tenant == tenant, keys.c.revoke_time.is_(None)
        )
        of_wants = (
            sa.select(wants.c.device, sa.func.count())
            .where(wants.c.tenant == tenant, wants.c.state == WantState.OPEN)
            .group_by(wants.c.device)
        )
        found: dict[str, dict[str, Any]] = {}
        with self._database.read() as connection:
            for row in connection.execute(of_documents).mappings():
                found[row["device"]] = dict(row)
            for device, count in connection.execute(of_failed):
                if device in found:
                    found[device]["failed"] = count
            for device, scopes, last_use in connection.execute(of_keys):
                if Scope.DEVICE in scopes.split(","):
                    known = found.setdefault(device, {"device": device, "last_seen": 0})
                    known["last_seen"] = max(known["last_seen"], last_use or 0)
            for device, count in connection.execute(of_wants):
                if device in found:
                    found[device]["open_wants"] = count
        rows = [DeviceRow(**values) for values in found.values()]
        return sorted(rows, key=lambda row: (-row.last_seen, row.device))[:_MOST_DEVICES]


@dataclass(frozen=True, slots=True)
class _Cell:
    """Sums over the documents of one day and one route."""

    day: int
    route: int
    documents: int
    pages: int
    original_bytes: int
    sent_bytes: int
    work_ms: int
    risk: float
    doubts: int


def _parted(cells: list[_Cell], key: Callable[[_Cell], int]) -> list[tuple[int, list[_Cell]]]:
    """The cells by key, the lowest first."""
    return [(value, list(those)) for value, those in groupby(sorted(cells, key=key), key)]


def _of_route(route: int, cells: list[_Cell]) -> RouteFigures:
    documents = sum(cell.documents for cell in cells)
    return RouteFigures(
        route,
        documents,
        pages=sum(cell.pages for cell in cells),
        original_bytes=sum(cell.original_bytes for cell in cells),
        sent_bytes=sum(cell.sent_bytes for cell in cells),
        work_ms=sum(cell.work_ms for cell in cells),
        risk=sum(cell.risk for cell in cells) / documents,
    )


def _of_day(day: int, cells: list[_Cell]) -> DayFigures:
    documents = sum(cell.documents for cell in cells)
    return DayFigures(
        day,
        documents,
        escalated=sum(cell.documents for cell in cells if cell.route not in _SAVING) / documents,
        risk=sum(cell.risk for cell in cells) / documents,
        doubts=sum(cell.doubts for cell in cells) / documents,
    )


def _total(column: Any, name: str) -> sa.Label[int]:
    """A sum as a whole number: PostgreSQL's of big integers is a decimal."""
    return sa.cast(sa.func.sum(column), sa.BigInteger).label(name)
