"""Processes killed, connections cut, while documents come in; the long form is `benchmarks.service --chaos`."""

from benchmarks.service import chaos


async def test_nothing_is_lost_or_doubled_when_processes_are_killed_at_random(tmp_path, database_url):
    """Two front ends and two workers on PostgreSQL, two whole processes on SQLite."""
    found = await chaos(tmp_path, database_url(), documents=60, engine_ms=20, seed=3, quick=True, seconds=8)
    assert found["kills"] >= 1
    assert found["all_told"]
    assert [found[name] for name in ("lost", "duplicates", "failed", "out_of_order")] == [0, 0, 0, 0]
