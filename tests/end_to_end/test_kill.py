"""kill -9 of either side at any moment, then a restart: every document arrives once, and once only."""

import pytest

# The moment is when a row says so; the kill follows within milliseconds of it.
MOMENTS = {
    "edge, while reading": ("edge", lambda s: s.outbox("SELECT 1 FROM documents WHERE read_attempts = 1")),
    "edge, packed and sending": ("edge", lambda s: s.outbox("SELECT 1 FROM documents WHERE state <> 'captured'")),
    "cloud, just accepted": ("cloud", lambda s: s.store("SELECT 1 FROM analyses")),
    "cloud, interpreting": ("cloud", lambda s: s.store("SELECT 1 FROM analyses WHERE attempts > 0")),
    "edge, answer on its way": ("edge", lambda s: s.store("SELECT 1 FROM versions WHERE engine = 'pipeline'")),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_loses_and_doubles_nothing(system, photos, moment: str) -> None:
    victim, reached = MOMENTS[moment]
    system.start("cloud")
    system.start("edge")
    names = ["thermal_receipt", "chinese_receipt"]
    for name in names:
        system.put(photos[name])
    system.until(lambda: reached(system))
    system.kill(victim)
    system.start(victim)
    finals = "SELECT count(*) FROM documents WHERE state IN ('settled', 'failed', 'quarantined')"
    system.until(lambda: system.outbox(finals) == [(2,)])
    assert system.outbox("SELECT state, count(*) FROM documents GROUP BY state") == [("settled", 2)]
    assert system.store("SELECT count(*), count(DISTINCT document_id) FROM analyses") == [(2, 2)]
    versions = system.store("SELECT engine, count(*) FROM versions GROUP BY engine ORDER BY engine")
    assert versions == [("edge", 2), ("pipeline", 2)]
    ended = "SELECT count(*), count(DISTINCT analysis_id) FROM events WHERE type = 'SUCCEEDED'"
    assert system.store(ended) == [(2, 2)]
    system.until(lambda: len({tree["file"] for tree in system.said("edge", "done")}) == 2)
    told = system.said("edge", "done")
    assert len({(tree["file"], tree["document_id"], tree["analysis_id"]) for tree in told}) == 2
