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


def assign(connection: sa.Connection, analysis_id: str) -> None:
    """Give an analysis that is becoming PENDING its turn; one that has had a turn before keeps it."""
    this = analyses.c.analysis_id == analysis_id
    row = connection.execute(sa.select(analyses.c.tenant, analyses.c.lane, analyses.c.turn).where(this)).one()
    if row.turn:
        return
    unfinished = (analyses.c.state.in_(WORK_STATES), analyses.c.lane == row.lane, analyses.c.turn > 0)
    served = connection.execute(sa.select(sa.func.min(analyses.c.turn)).where(*unfinished)).scalar_one()
    own = sa.select(sa.func.max(analyses.c.turn)).where(*unfinished, analyses.c.tenant == row.tenant)
    turn = max(served or 1, (connection.execute(own).scalar_one() or 0) + 1)
    connection.execute(analyses.update().where(this).values(turn=turn))


def place(connection: sa.Connection, analysis_id: str) -> int:
    """Its place, 1..2^30: the lower the sooner. One that is gone has the first, as nothing will be done for it."""
    query = sa.select(analyses.c.lane, analyses.c.turn).where(analyses.c.analysis_id == analysis_id)
    row = connection.execute(query).one_or_none()
    return 1 if row is None else row.lane * _TURNS + max(1, min(row.turn, _TURNS))
