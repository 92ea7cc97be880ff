"""What a tenant handed in today, counted in the same transaction as the document, so that all front ends share it."""

from __future__ import annotations

import sqlalchemy as sa

from docferry.errors import Overloaded
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.schema import usage

_DAY = 86400 * MICROSECONDS
_KEPT_DAYS = 400
_OF = (usage.c.tenant == sa.bindparam("of"), usage.c.day == sa.bindparam("on"))
_SO_FAR = sa.select(usage.c.documents, usage.c.bytes).where(*_OF)
_MORE = usage.update().where(*_OF).values(documents=usage.c.documents + 1, bytes=usage.c.bytes + sa.bindparam("size"))


def count(connection: sa.Connection, tenant: str, size: int, now: int, *, documents: int, megabytes: int) -> None:
    """Count one document of `size` bytes; days are those of UTC.

    Args:
        documents, megabytes: What a tenant may hand in on one day; 0 sets no limit.

    Raises:
        Overloaded: The day's limit is reached; says how long the day still lasts.
    """
    if not documents and not megabytes:
        return
    day = now // _DAY
    row = {"of": tenant, "on": day}
    so_far = connection.execute(_SO_FAR, row).one_or_none()
    had, had_bytes = so_far or (0, 0)
    over = f"{documents} documents" if documents and had >= documents else ""
    if megabytes and had_bytes + size > megabytes << 20:
        over = f"{megabytes} MB"
    if over:
        wait = (_DAY - now % _DAY) / MICROSECONDS
        raise Overloaded(
            f"this tenant may hand in {over} a day",
            retry_after=wait,
            remedy="go on tomorrow (UTC), or ask the operator for more",
        )
    if so_far is None:
        connection.execute(usage.insert().values(tenant=tenant, day=day, documents=1, bytes=size))
        connection.execute(usage.delete().where(usage.c.day < day - _KEPT_DAYS))
    else:
        connection.execute(_MORE, row | {"size": size})
