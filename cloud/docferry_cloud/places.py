"""Who comes next: a place in the queue that lets tenants take turns.

Every analysis gets a turn when it becomes PENDING: one after the last of its tenant's that are unfinished, but never
before the lowest turn that is unfinished at all. A tenant that floods the queue so piles up turns of its own; another
one's first analysis gets the turn that is being served and waits for no more than what runs already (start-time fair
queueing, Goyal, Vin and Cheng 1996, with every analysis counted alike). Lanes come before turns.
"""

from __future__ import annotations

import sqlalchemy as sa

from docferry_cloud.schema import WORK_STATES, analyses

INTERACTIVE, BACKGROUND = 0, 1
"""Lanes: all of the first goes before any of the second."""
_TURNS = 1 << 29
LAST = 1 << 30
"""The place behind all others."""
TURNS = sa.select(
    sa.func.min(analyses.c.turn).label("served"),
    sa.func.max(analyses.c.turn).filter(analyses.c.tenant == sa.bindparam("tenant")).label("own_turn"),
).where(analyses.c.state.in_(WORK_STATES), analyses.c.lane == sa.bindparam("lane"), analyses.c.turn > 0)
"""The turn that is being served in a lane, and the last one of a tenant; parameters `lane` and `tenant`."""


def assign(connection: sa.Connection, analysis_id: str) -> None:
    """Give an analysis that is becoming PENDING its turn; one that has had a turn before keeps it."""
    this = analyses.c.analysis_id == analysis_id
    row = connection.execute(sa.select(analyses.c.tenant, analyses.c.lane, analyses.c.turn).where(this)).one()
    if not row.turn:
        of = {"tenant": row.tenant, "lane": row.lane}
        turn = next_of(*connection.execute(TURNS, of).one())
        connection.execute(analyses.update().where(this).values(turn=turn))


def next_of(served: int | None, own: int | None) -> int:
    """The turn of a tenant's next analysis in a lane, from 1; `served` and `own` as `TURNS` tells them."""
    return max(served or 1, (own or 0) + 1)


def place(connection: sa.Connection, analysis_id: str) -> int:
    """Its place, 1..2^30: the lower the sooner. One that is gone has the first, as nothing will be done for it."""
    query = sa.select(analyses.c.lane, analyses.c.turn).where(analyses.c.analysis_id == analysis_id)
    row = connection.execute(query).one_or_none()
    return 1 if row is None else place_of(row.lane, row.turn)


def place_of(lane: int, turn: int) -> int:
    """The place that a lane and a turn in it make."""
    return lane * _TURNS + max(1, min(turn, _TURNS))
