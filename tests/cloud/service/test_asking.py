"""An engine asks the device for more: the analysis waits in its row, goes on with what came, and never for ever."""

import grpc
import pytest

from docferry.v1 import analysis_pb2, envelope_pb2, event_pb2
from docferry_cloud.engine import Want as Asked
from docferry_cloud.want_list import WantList

Analysis, Want, Event = analysis_pb2.Analysis, analysis_pb2.Want, event_pb2.Event
PATIENT, HASTY = 30.0, 0.4
KEPT = {"original_percent": 100}
# The engine's double asks where a risk is stated.
ASKED = KEPT | {"route": envelope_pb2.Route(target_risk=0.02)}


def codes(version) -> list[str]:
    return [notice.code for notice in version.interpretation.notices]


async def test_an_engine_that_asks_gets_a_crop_and_reads_again(
    running, tmp_path, asking_engine, make_envelope, make_picture, small_png
):
    engine = asking_engine()
    async with running(tmp_path, lambda: engine, patience_s=PATIENT) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope(**ASKED))
        told = await caller.want()
        assert told.part.analysis_id == taken.analysis_id
        assert told.part.document_id == taken.document_id
        want = told.part.want
        assert (want.kind, want.page, want.scale, want.state) == (envelope_pb2.PART_KIND_CROP, 0, 1.0, Want.STATE_OPEN)
        assert want.why == "a line stays in doubt"
        waiting = await caller.get(taken.analysis_id)
        assert waiting.state == Analysis.STATE_AWAITING_PARTS
        assert [(w.part_id, w.why) for w in waiting.wants] == [(want.part_id, want.why)]
        assert [v.engine for v in waiting.versions] == ["edge", "asking"]
        assert codes(waiting.versions[1]) == ["PARTS_WANTED"]
        progress = await caller.supply(taken.analysis_id, make_picture(want.part_id, small_png), small_png)
        assert (progress.received, progress.state) == (len(small_png), Analysis.STATE_PENDING)
        done = await caller.finished(taken.analysis_id)
        assert [v.engine for v in done.versions] == ["edge", "asking", "asking"]
        assert codes(done.versions[2]) == []
        assert not done.wants
        assert [w.state for w in done.past_wants] == [Want.STATE_SUPPLIED]
        assert {part.kind: part.bytes for part in done.traffic.parts}["crop"] == len(small_png)
        assert [crop.data for page in engine.given for crop in page.crops] == [small_png]
        events = await caller.events(lambda event: event.type == Event.TYPE_SUCCEEDED)
        assert [event.type for event in events] == [
            Event.TYPE_ACCEPTED,
            Event.TYPE_VERSION_ADDED,
            Event.TYPE_SUCCEEDED,
        ]


async def test_without_the_device_it_settles_at_the_deadline_and_says_so(
    running, tmp_path, asking_engine, make_envelope, make_picture, small_png, reason_of
):
    engine = asking_engine()
    async with running(tmp_path, lambda: engine, patience_s=HASTY) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope(**ASKED))
        part_id = (await caller.want()).part.want.part_id
        done = await caller.finished(taken.analysis_id)
        assert done.state == Analysis.STATE_SUCCEEDED
        assert codes(done.versions[-1]) == ["PARTS_MISSING"]
        assert "1 of 1 pictures" in done.versions[-1].interpretation.notices[0].detail
        assert [w.state for w in done.past_wants] == [Want.STATE_LAPSED]
        # What the engine would say again is not asked of it again.
        assert len(engine.given) == 1
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller.supply(taken.analysis_id, make_picture(part_id, small_png), small_png)
        assert reason_of(failure.value) == (grpc.StatusCode.ALREADY_EXISTS, "CONFLICT")
        assert len((await caller.get(taken.analysis_id)).versions) == len(done.versions)


async def test_what_came_in_time_is_read_and_what_did_not_is_named(
    running, tmp_path, asking_engine, make_envelope, make_picture, small_png
):
    box = (0.1, 0.1, 0.5, 0.2)
    engine = asking_engine(wants=(Asked(box, 1.0, "one"), Asked(None, 1.0, "two"), Asked(box, 2.0, "three")))
    async with running(tmp_path, lambda: engine, patience_s=1.5) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope(**ASKED))
        await caller.want()
        wants = (await caller.get(taken.analysis_id)).wants
        await caller.supply(taken.analysis_id, make_picture(wants[0].part_id, small_png), small_png)
        refused = await caller.refuse(taken.analysis_id, wants[1].part_id, "NOT_KEPT", "it is gone")
        assert refused.state == Analysis.STATE_AWAITING_PARTS
        done = await caller.finished(taken.analysis_id)
        assert codes(done.versions[-1]) == ["PARTS_REFUSED", "PARTS_MISSING"]
        assert "NOT_KEPT: it is gone" in done.versions[-1].interpretation.notices[0].detail
        assert [crop.data for crop in engine.given[-1].crops] == [small_png]
        assert len(engine.given) == 2


async def test_no_one_is_asked_who_did_not_offer_or_whom_nobody_waits_for(
    running, tmp_path, asking_engine, make_envelope
):
    async with running(tmp_path / "offered", asking_engine, patience_s=PATIENT) as service:
        taken = await service.caller(0).submit(make_envelope())
        assert codes((await service.caller(0).finished(taken.analysis_id)).versions[-1]) == []
    async with running(tmp_path / "patient", asking_engine, patience_s=0) as service:
        taken = await service.caller(0).submit(make_envelope(**ASKED))
        assert not (await service.caller(0).finished(taken.analysis_id)).past_wants


async def test_a_wanted_part_goes_on_where_it_broke_off_and_other_bytes_begin_it_anew(
    running, tmp_path, asking_engine, make_envelope, make_picture, large_picture, reason_of
):
    engine = asking_engine()
    async with running(tmp_path, lambda: engine, patience_s=PATIENT) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope(**ASKED))
        part_id = (await caller.want()).part.want.part_id
        other = make_picture(part_id, large_picture[:-1] + b"!")
        assert (await caller.supply(taken.analysis_id, other, other.data[:9000])).received == 9000
        assert (await caller.want()).part.want.received == 9000
        picture = make_picture(part_id, large_picture)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller.supply(taken.analysis_id, picture, large_picture[9000:18000], offset=9000)
        assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ENVELOPE")
        assert (await caller.supply(taken.analysis_id, picture, large_picture[:8000])).received == 8000
        assert (await caller.supply(taken.analysis_id, picture, large_picture[:8000])).received == 8000
        last = await caller.supply(taken.analysis_id, picture, large_picture[8000:], offset=8000)
        assert last.received == len(large_picture)
        await caller.finished(taken.analysis_id)
        assert [crop.data for page in engine.given for crop in page.crops] == [large_picture]


async def test_waiting_outlives_a_restart(running, tmp_path, asking_engine, make_envelope, make_picture, small_png):
    async with running(tmp_path, asking_engine, patience_s=PATIENT) as service:
        taken = await service.caller(0).submit(make_envelope(**ASKED))
        told = await service.caller(0).want()
    async with running(tmp_path, asking_engine, patience_s=PATIENT) as service:
        caller = service.caller(0)
        again = await caller.want()
        assert again.part == told.part
        await caller.supply(taken.analysis_id, make_picture(again.part.want.part_id, small_png), small_png)
        done = await caller.finished(taken.analysis_id)
        assert [v.engine for v in done.versions] == ["edge", "asking", "asking"]


async def test_analyses_that_wait_hold_no_worker(running, tmp_path, asking_engine, make_envelope):
    async with running(tmp_path, asking_engine, patience_s=PATIENT, workers=1) as service:
        caller, other = service.caller(), service.caller()
        for _ in range(20):
            await caller.submit(make_envelope(**ASKED))
        taken = await other.submit(make_envelope())
        assert (await other.finished(taken.analysis_id)).state == Analysis.STATE_SUCCEEDED


async def test_a_want_raised_by_a_clock_that_was_wrong_does_not_hold_for_years(
    running, tmp_path, asking_engine, make_envelope, monkeypatch
):
    real = WantList.lapse
    async with running(tmp_path, asking_engine, patience_s=PATIENT) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope(**ASKED))
        await caller.want()

        def set_back(self, limit=200):
            clock, self._clock = self._clock, lambda: clock() - 86_400_000_000
            try:
                return real(self, limit)
            finally:
                self._clock = clock

        monkeypatch.setattr(WantList, "lapse", set_back)
        done = await caller.finished(taken.analysis_id)
        assert codes(done.versions[-1]) == ["PARTS_MISSING"]
