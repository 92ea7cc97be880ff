"""How far a document of many pages has come: told to those who ask, bounded, and stopped at a page."""

import json
import threading
from itertools import pairwise

import pytest
import pytest_asyncio

from docferry.document import Page
from docferry.errors import Unavailable
from docferry.v1 import analysis_pb2, envelope_pb2, event_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import subscription_service_pb2 as subscription_pb
from docferry_cloud.page_progress import STEPS, PageProgress
from tests.cloud.documents import files
from tests.cloud.service.running import EchoEngine, running_server

PROGRESS = event_pb2.Event.TYPE_PROGRESS


@pytest.mark.parametrize("pages", [1, 2, 7, 20, 21, 200, 2000])
def test_the_number_of_events_is_bounded_whatever_the_number_of_pages(pages):
    told = []
    progress = PageProgress(pages, lambda done, of: told.append((done, of)), every_s=0.0)
    for number in range(pages):
        progress.page_done(number)
    assert len(told) <= STEPS + 1
    assert told == sorted(told)
    assert all(0 < done < of == pages for done, of in told)
    assert bool(told) is (pages > 1)


def test_pages_that_come_quickly_are_told_no_oftener_than_the_clock_allows():
    now = 0.0
    told = []
    progress = PageProgress(200, lambda done, of: told.append((now, done)), every_s=1.0, clock=lambda: now)
    for number in range(200):
        now += 0.03
        progress.page_done(number)
    times = [at for at, _ in told]
    assert 4 <= len(times) <= 6
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(times))


@pytest.mark.parametrize("error", [Unavailable("the database is away"), TimeoutError("of a pool")])
def test_progress_that_cannot_be_told_costs_nothing(error):
    told = []

    def tell(done, of):
        told.append(done)
        raise error

    progress = PageProgress(40, tell, every_s=0.0)
    for number in range(40):
        progress.page_done(number)
    assert len(told) > 10


class Gate(EchoEngine):
    """Reads a page for every `go`, and says which pages it was given."""

    def __init__(self):
        super().__init__()
        self.go, self.given = threading.Semaphore(0), []

    def read(self, page, effort, cancelled):
        while not self.go.acquire(timeout=0.01):
            if cancelled():
                break
        self.given.append(page.image_page)
        return Page(width=10, height=10)


@pytest.fixture(scope="module")
def gate():
    return Gate()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gated(tmp_path_factory, database_url, gate):
    async with running_server(tmp_path_factory.mktemp("gated"), lambda: gate, database=database_url()) as server:
        yield server


@pytest.fixture
def submit_pdf(make_envelope, make_part):
    async def submit(caller, pages):
        data = files.pdf(pages, table=False)
        part = make_part(data, kind=envelope_pb2.PART_KIND_ORIGINAL, inline=False, media_type="application/pdf")
        envelope = make_envelope(parts=[part])
        envelope.ClearField("structure")
        analysis_id = (await caller.submit(envelope)).analysis_id
        await caller.supply(analysis_id, part, data)
        return analysis_id

    return submit


@pytest.mark.asyncio(loop_scope="module")
async def test_pages_are_told_as_they_are_done_to_those_who_ask_and_to_no_others(gated, gate, submit_pdf):
    caller = gated.caller()
    analysis_id = await submit_pdf(caller, 4)
    gate.go.release()
    seen = await caller.events(lambda event: event.type == PROGRESS, analysis_id=analysis_id, progress=True)
    assert (seen[-1].progress.pages_done, seen[-1].progress.pages) == (1, 4)
    assert seen[-1].state == analysis_pb2.Analysis.STATE_RUNNING
    known = await caller.get(analysis_id)
    assert (known.progress.pages_done, known.progress.pages) == (1, 4)
    gate.go.release(3)
    await caller.finished(analysis_id)
    done = lambda event: event.type == event_pb2.Event.TYPE_SUCCEEDED  # noqa: E731
    every = await caller.events(done, analysis_id=analysis_id, progress=True)
    assert [event.progress.pages_done for event in every if event.type == PROGRESS] == [1, 2, 3]
    assert [event.sequence for event in every] == sorted({event.sequence for event in every})
    plain = await caller.events(done, analysis_id=analysis_id)
    assert PROGRESS not in {event.type for event in plain}


@pytest.mark.asyncio(loop_scope="module")
async def test_no_webhook_is_sent_progress(gated, gate, submit_pdf, receiver):
    caller = gated.caller()
    hook = subscription_pb.Subscription(url=receiver.url)
    await caller("Create", subscription_pb.SubscriptionServiceCreateRequest(subscription=hook))
    gate.go.release(3)
    analysis_id = await submit_pdf(caller, 3)
    await caller.finished(analysis_id)
    sent = [json.loads((await receiver.next()).body)["type"] for _ in range(2)]
    assert sent == ["analysis.accepted", "analysis.succeeded"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_cancel_is_honoured_at_the_page_it_meets(gated, gate, submit_pdf, until):
    caller = gated.caller()
    gate.given.clear()
    analysis_id = await submit_pdf(caller, 50)
    gate.go.release(2)
    await caller.events(lambda event: event.progress.pages_done == 1, analysis_id=analysis_id, progress=True)
    await caller("Cancel", pb.CancelRequest(analysis_id=analysis_id))
    await until(lambda: len(gate.given) >= 3)
    # The engine may look up in the middle of a page, and is given no other one after it.
    following = await submit_pdf(caller, 1)
    gate.go.release()
    await caller.finished(following)
    assert gate.given == [0, 1, 2, 0]
    assert (await caller.get(analysis_id)).state == analysis_pb2.Analysis.STATE_CANCELLED
