"""Nothing captured is lost, nothing is taken twice, and a full disk refuses what is new."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from docferry.errors import ConfigurationError, Conflict, NotFound, StorageFull, UnreadableImage
from docferry_edge.entry import Entry, OutboxPart, State
from docferry_edge.outbox import KEEP_ANSWERS, Outbox


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(tmp_path / "state")
    yield box
    box.close()


def capture(outbox: Outbox, source: str = "a.jpg|1|5|1", data: bytes = b"pixel") -> Entry:
    entry = outbox.capture(source=source, file_name="a.jpg", data=data, captured_at=100.0)
    assert entry is not None
    return entry


def pack(outbox: Outbox, entry: Entry, parts: tuple[OutboxPart, ...] = ()) -> None:
    outbox.packed(entry.document_id, request=b"request", parts=parts, edge_answer=b"answer", timings={"read": 12.5})


def test_a_captured_file_is_there_after_a_restart(tmp_path: Path) -> None:
    first = Outbox(tmp_path)
    entry = capture(first)
    first.close()
    second = Outbox(tmp_path)
    assert second.get(entry.document_id) == entry
    assert second.image(entry.document_id) == b"pixel"
    second.close()


def test_the_same_file_is_taken_once(outbox: Outbox) -> None:
    capture(outbox)
    assert outbox.capture(source="a.jpg|1|5|1", file_name="a.jpg", data=b"pixel", captured_at=101.0) is None
    assert len(outbox.in_state(State.CAPTURED)) == 1


def test_a_document_walks_forward_only(outbox: Outbox) -> None:
    entry = capture(outbox)
    pack(outbox, entry, (OutboxPart("crop-1", b"crop"),))
    outbox.submitted(entry.document_id, "analysis-1", {"ack": 20.0})
    assert outbox.part(entry.document_id, "crop-1") == b"crop"
    outbox.delivered(entry.document_id, {})
    assert outbox.part(entry.document_id, "crop-1") is None
    outbox.settled(entry.document_id, b"analysis", {"event": 30.0})
    outbox.submitted(entry.document_id, "analysis-2", {})
    pack(outbox, entry)
    outbox.failed(entry.document_id, Conflict("late", remedy="none"))
    done = outbox.get(entry.document_id)
    assert (done.state, done.analysis_id) == (State.SETTLED, "analysis-1")
    assert outbox.analysis(entry.document_id) == b"analysis"
    assert done.timings == {"read": 12.5, "ack": 20.0, "event": 30.0}
    assert done.error == {}


def test_the_answer_may_overtake_the_acknowledgement(outbox: Outbox) -> None:
    entry = capture(outbox)
    pack(outbox, entry)
    outbox.settled(entry.document_id, b"analysis", {})
    assert outbox.get(entry.document_id).state is State.SETTLED


def test_a_settled_document_frees_its_space(outbox: Outbox, tmp_path: Path) -> None:
    entry = capture(outbox)
    pack(outbox, entry, (OutboxPart("page", b"x" * 1000),))
    outbox.settled(entry.document_id, b"analysis", {})
    assert not list((tmp_path / "state" / "spool").iterdir())
    assert outbox.request(entry.document_id) is None
    assert outbox.edge_answer(entry.document_id) == b"answer"


def test_at_the_ceiling_new_files_are_refused_and_old_ones_kept(tmp_path: Path) -> None:
    box = Outbox(tmp_path, max_bytes=400_000)
    entry = capture(box, data=b"x" * 100_000)
    with pytest.raises(StorageFull, match="ceiling") as refused:
        capture(box, source="b", data=b"x" * 400_000)
    assert refused.value.remedy
    assert box.image(entry.document_id) == b"x" * 100_000
    assert [e.document_id for e in box.in_state(State.CAPTURED)] == [entry.document_id]
    box.close()


def test_a_disk_that_is_nearly_full_refuses(tmp_path: Path) -> None:
    box = Outbox(tmp_path, min_free_bytes=1 << 60)
    with pytest.raises(StorageFull, match="disk"):
        capture(box)
    box.close()


def test_two_agents_cannot_share_a_folder(outbox: Outbox, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="another agent"):
        Outbox(tmp_path / "state")


def test_an_outbox_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    import sqlite3

    Outbox(tmp_path).close()
    with sqlite3.connect(tmp_path / "outbox.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(ConfigurationError, match="newer release"):
        Outbox(tmp_path)


def test_a_file_that_cannot_be_taken_is_told_once_with_its_reason(outbox: Outbox) -> None:
    error = UnreadableImage("big.png: too large", remedy="make it smaller")
    for _ in range(2):
        outbox.refuse(source="s", file_name="big.png", original_bytes=1, captured_at=1.0, error=error)
    (entry,) = outbox.untold()
    assert (entry.state, entry.error["reason"]) == (State.FAILED, "big.png: too large")
    outbox.told(entry.document_id, entry.state)
    assert outbox.untold() == []


def test_spool_files_without_a_row_go_at_the_next_start(tmp_path: Path) -> None:
    box = Outbox(tmp_path)
    kept = capture(box)
    (tmp_path / "spool" / "stray").write_bytes(b"left by a power cut")
    box.close()
    again = Outbox(tmp_path)
    assert [file.name for file in (tmp_path / "spool").iterdir()] == [kept.document_id]
    again.close()


def test_marks_survive_and_unknown_documents_are_named(outbox: Outbox) -> None:
    assert outbox.mark("cursor") == ""
    outbox.set_mark("cursor", "abc")
    outbox.set_mark("cursor", "def")
    assert outbox.mark("cursor") == "def"
    with pytest.raises(NotFound, match="nobody"):
        outbox.get("nobody")


@pytest.mark.parametrize("point", ["spooled", "inserted", "reading", "packed"])
def test_a_kill_at_any_point_of_capturing_loses_and_doubles_nothing(tmp_path: Path, point: str) -> None:
    program = textwrap.dedent("""
        import os, signal, sys
        from pathlib import Path
        import docferry_edge.outbox as module

        folder, point = Path(sys.argv[1]), sys.argv[2]
        die = lambda: os.kill(os.getpid(), signal.SIGKILL)
        if point == "spooled":
            write = module.write_durably
            module.write_durably = lambda path, data: (write(path, data), die())
        box = module.Outbox(folder)
        entry = box.capture(source="s", file_name="a.jpg", data=b"pixel", captured_at=1.0)
        if point == "inserted": die()
        box.begin_reading(entry.document_id)
        if point == "reading": die()
        box.packed(entry.document_id, request=b"r", parts=[], edge_answer=b"a", timings={})
        die()
    """)
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path), point], check=False)
    assert killed.returncode == -signal.SIGKILL
    box = Outbox(tmp_path)
    again = box.capture(source="s", file_name="a.jpg", data=b"pixel", captured_at=2.0)
    rows = box.in_state(*State)
    assert len(rows) == 1
    assert (again is None) == (point != "spooled")
    assert box.image(rows[0].document_id) == b"pixel"
    assert rows[0].state is (State.PACKED if point == "packed" else State.CAPTURED)
    assert set(os.listdir(tmp_path / "spool")) == {rows[0].document_id}
    box.close()


@pytest.mark.parametrize("final", [State.FAILED, State.QUARANTINED])
def test_what_failed_or_was_refused_is_kept_and_can_go_again(tmp_path: Path, final: State) -> None:
    box = Outbox(tmp_path)
    entry = capture(box)
    if final is State.QUARANTINED:
        pack(box, entry, (OutboxPart("page", b"pixels"),))
    box.failed(entry.document_id, Conflict("refused", remedy="none"), state=final)
    box.close()
    again = Outbox(tmp_path)
    assert again.image(entry.document_id) == b"pixel"
    assert again.retry(entry.document_id)
    wanted = State.PACKED if final is State.QUARANTINED else State.CAPTURED
    assert (again.get(entry.document_id).state, again.get(entry.document_id).error) == (wanted, {})
    if final is State.QUARANTINED:
        assert again.part(entry.document_id, "page") == b"pixels"
        assert again.request(entry.document_id) == b"request"
    again.close()


def test_a_document_deleted_in_the_cloud_leaves_nothing_here(outbox: Outbox, tmp_path: Path) -> None:
    entry = capture(outbox)
    pack(outbox, entry)
    outbox.discarded(entry.document_id, NotFound("deleted", remedy="none"))
    assert outbox.edge_answer(entry.document_id) is None
    assert not list((tmp_path / "state" / "spool").iterdir())
    assert not outbox.retry(entry.document_id)


def test_at_the_ceiling_room_comes_back_with_delivery(tmp_path: Path) -> None:
    box = Outbox(tmp_path, max_bytes=4 << 20)
    parts = (OutboxPart("page", bytes(1 << 20)),)
    entries = []
    try:
        for number in range(10):
            entries.append(capture(box, f"s{number}", bytes(200_000)))
            pack(box, entries[-1], parts)
    except StorageFull:
        assert 3 <= len(entries) < 10
    for entry in entries:
        box.settled(entry.document_id, b"analysis", {})
    capture(box, "after", bytes(200_000))
    box.close()


def test_a_disk_that_fills_inside_the_database_is_named_and_nothing_is_half_done(outbox: Outbox) -> None:
    entry = capture(outbox)
    pages = outbox._database.execute("PRAGMA page_count").fetchone()[0]
    outbox._database.execute(f"PRAGMA max_page_count={pages + 2}")
    big = (OutboxPart("page", bytes(1 << 20)),)
    with pytest.raises(StorageFull, match="disk is full"):
        pack(outbox, entry, big)
    assert outbox.get(entry.document_id).state is State.CAPTURED
    outbox._database.execute("PRAGMA max_page_count=100000")
    pack(outbox, entry, big)
    assert outbox.part(entry.document_id, "page") == big[0].data


def test_only_the_newest_answers_are_kept(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docferry_edge.outbox.KEEP_ANSWERS", 2)
    assert KEEP_ANSWERS > 100
    entries = []
    for number in range(4):
        entries.append(capture(outbox, f"s{number}"))
        pack(outbox, entries[-1])
        outbox.settled(entries[-1].document_id, b"analysis", {})
    assert [outbox.analysis(entry.document_id) is not None for entry in entries] == [False, False, True, True]


def test_time_since_capture_follows_no_wall_clock(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from docferry_edge.entry import elapsed_ms

    entry = capture(outbox)
    monkeypatch.setattr("time.time", lambda: 0.0)
    elapsed = elapsed_ms(entry)
    assert elapsed is not None
    assert 0 <= elapsed < 60_000
    assert elapsed_ms(replace(entry, captured_clock="another-boot|1.0")) is None
