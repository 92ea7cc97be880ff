"""Large documents in the console: what takes long is bounded, and holds up nobody else."""

import random
import threading

import pytest

from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.packing import pack_reading
from docferry_cloud.console import document, review

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_versions_too_long_to_be_aligned_are_compared_line_by_line():
    luck = random.Random(3)
    left, right = ([luck.choice("abc") for _ in range(count)] for count in (1200, 1800))
    rows = document._beside([left, right])
    assert len(rows) == 1800
    assert [row[0] for row in rows] == left + [""] * 600
    assert [row[1] for row in rows] == right
    assert all(same == (one == other) for one, other, same in rows)
    # Up to the bound a line that came in between moves those after it.
    few = [f"line {number}" for number in range(499)]
    rows = document._beside([few, ["new", *few]])
    assert rows[0] == ("", "new", False)
    assert all(same for _, _, same in rows[1:])


async def test_pages_are_compared_drawn_and_searched_for_doubts_beside_the_loop(
    admin, place, make_envelope, monkeypatch
):
    ran = {}

    def noting(module, name):
        real = getattr(module, name)

        def noted(*args):
            ran.setdefault(name, set()).add(threading.current_thread())
            return real(*args)

        monkeypatch.setattr(module, name, noted)

    noting(document, "_beside")
    noting(document, "overlay")
    noting(review, "items")
    line = Line("r1.l1", "Total", ((0.1, 0.1), (0.6, 0.1), (0.6, 0.2), (0.1, 0.2)), 0.9, confidence=0.5)
    region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.6, 0.2), 0, lines=(line,))
    structure = pack_reading(Reading(Document((Page(100, 200, (region,)),)), "double@1"))
    taken = await place.caller.submit(make_envelope(structure=structure))
    done = await place.caller.finished(taken.analysis_id)
    for path in ("", "/pages/0", "/compare"):
        assert (await admin.get(f"/analyses/{done.analysis_id}{path}")).status_code == 200, path
    assert (await admin.get(f"/review/{done.analysis_id}")).status_code == 200
    await admin.post(f"/review/{done.analysis_id}", version="2")
    assert set(ran) == {"_beside", "overlay", "items"}
    for name, threads in ran.items():
        assert threading.current_thread() not in threads, name
