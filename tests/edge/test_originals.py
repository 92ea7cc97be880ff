"""Originals are kept for a stated time after settling, go first when room is needed, and survive power cuts."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from docferry.errors import StorageFull
from docferry_edge.entry import Entry, State
from docferry_edge.outbox import Outbox

KILOBYTE = b"x" * 1024


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(tmp_path / "state")
    yield box
    box.close()


def settled(outbox: Outbox, name: str = "a.jpg", data: bytes = b"pixel", *, keep: bool = True) -> Entry:
    entry = outbox.capture(source=name, file_name=name, data=data, captured_at=1.0)
    assert entry is not None
    outbox.packed(entry.document_id, request=b"request", parts=(), edge_answer=b"", timings={}, pages="[1]")
    outbox.settled(entry.document_id, b"analysis", {}, keep_original=keep)
    return entry


def test_a_kept_original_outlives_settling_and_a_restart_and_another_does_not(tmp_path: Path) -> None:
    first = Outbox(tmp_path)
    kept, dropped = settled(first), settled(first, "b.jpg", keep=False)
    assert first.originals.image(dropped.document_id) is None
    first.originals.store_supply(kept.document_id, "w1", b"crop")
    first.close()
    second = Outbox(tmp_path)
    assert second.originals.image(kept.document_id) == b"pixel"
    assert second.originals.kept() == [kept.document_id]
    assert second.originals.pages(kept.document_id) == "[1]"
    assert second.originals.supply(kept.document_id, "w1") == b"crop"
    assert os.listdir(tmp_path / "spool") == [kept.document_id]
    second.close()


def test_it_goes_when_its_time_is_over_and_whenever_the_clock_was_wrong(outbox: Outbox) -> None:
    entry = settled(outbox)
    with sqlite3.connect(outbox._folder / "outbox.sqlite") as database:
        (since,) = database.execute("SELECT kept_since FROM documents").fetchone()
    database.close()
    assert outbox.originals.expire(3600.0, now=since + 3599) == 0
    assert outbox.originals.image(entry.document_id) == b"pixel"
    assert outbox.originals.expire(3600.0, now=since + 3600) == 1
    assert outbox.originals.image(entry.document_id) is None
    assert outbox.originals.expire(3600.0, now=since + 3600) == 0
    settled(outbox, "b.jpg")
    assert outbox.originals.expire(3600.0, now=since - 86_400) == 1


def test_at_the_ceiling_kept_originals_go_first_the_oldest_leading(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, max_bytes=400 * 1024, min_free_bytes=0)
    kept = [settled(outbox, f"{number}.jpg", KILOBYTE * 50) for number in range(3)]
    waiting = outbox.capture(source="w", file_name="w.jpg", data=KILOBYTE * 100, captured_at=1.0)
    assert waiting is not None
    assert outbox.capture(source="n", file_name="n.jpg", data=KILOBYTE * 100, captured_at=1.0) is not None
    left = outbox.originals.kept()
    assert left == [entry.document_id for entry in kept][-len(left) :]
    assert len(left) < 3
    with pytest.raises(StorageFull):
        outbox.capture(source="m", file_name="m.jpg", data=KILOBYTE * 400, captured_at=1.0)
    assert outbox.originals.kept() == []
    assert len(outbox.in_state(State.CAPTURED)) == 2
    outbox.close()


def test_settling_and_discarding_take_what_was_cut_along(outbox: Outbox) -> None:
    entry = outbox.capture(source="a", file_name="a.jpg", data=b"pixel", captured_at=1.0)
    assert entry is not None
    outbox.originals.store_supply(entry.document_id, "w1", b"crop")
    outbox.originals.store_supply(entry.document_id, "w1", b"crop again")
    assert outbox.originals.supply(entry.document_id, "w1") == b"crop again"
    outbox.settled(entry.document_id, b"analysis", {}, keep_original=True)
    assert outbox.originals.supply(entry.document_id, "w1") is None
    outbox.originals.forget(entry.document_id)
    assert outbox.originals.image(entry.document_id) is None
    assert not outbox.originals.give_back()


def test_an_outbox_of_the_first_release_is_brought_up_to_date(tmp_path: Path) -> None:
    from docferry_edge import outbox_schema

    with sqlite3.connect(tmp_path / "outbox.sqlite") as database:
        database.executescript(f"BEGIN; {outbox_schema._ADDITIONS[0]} PRAGMA user_version = 1; COMMIT;")
        database.execute(
            "INSERT INTO documents (document_id, request_id, source, file_name, original_bytes, captured_at,"
            " captured_clock, state) VALUES ('d', 'r', 's', 'a.jpg', 5, 1.0, 'boot|1', 'captured')"
        )
    database.close()
    outbox = Outbox(tmp_path)
    assert outbox.get("d").file_name == "a.jpg"
    assert outbox.originals.pages("d") == "[]"
    outbox.close()
    Outbox(tmp_path).close()
