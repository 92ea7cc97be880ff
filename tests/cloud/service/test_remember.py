"""Exactly the same content once more, in one tenant: answered from what was read before, and the answer says so."""

import pytest
import pytest_asyncio

from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import envelope_pb2
from docferry_cloud.content_key import content_key

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def pages():
    return []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(running, tmp_path_factory, database_url, echo_engine, pages):
    def count(page, _cancelled):
        pages.append(page)

    folder = tmp_path_factory.mktemp("cloud")
    async with running(folder, lambda: echo_engine(count), database=database_url(), remember=True) as server:
        yield server


async def _read(caller, envelope):
    taken = await caller.submit(envelope)
    newest = (await caller.finished(taken.analysis_id)).versions[-1]
    return taken.analysis_id, newest.interpretation, [notice.code for notice in newest.interpretation.notices]


async def test_the_same_page_again_is_read_once_and_the_answer_says_so(service, make_envelope, pages):
    caller = service.caller()
    first, answer, notices = await _read(caller, make_envelope())
    read = len(pages)
    again = await _read(caller, make_envelope(file_name="another-name.jpg"))
    assert len(pages) == read
    assert (notices, again[2]) == ([], ["READ_BEFORE"])
    assert first in again[1].notices[0].detail
    assert again[1].document == answer.document
    assert again[1].markdown == answer.markdown


async def test_other_effort_and_another_tenant_are_read_for_themselves(service, make_envelope, pages):
    caller = service.caller()
    await _read(caller, make_envelope())
    read = len(pages)
    assert (await _read(caller, make_envelope(effort=envelope_pb2.EFFORT_DEEP)))[2] == []
    assert (await _read(service.caller(), make_envelope()))[2] == []
    assert len(pages) == read + 2


async def test_what_was_deleted_is_not_remembered(service, make_envelope, pages):
    caller = service.caller()
    first, _, _ = await _read(caller, make_envelope())
    read = len(pages)
    await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=first))
    assert (await _read(caller, make_envelope()))[2] == []
    assert len(pages) == read + 1


async def test_the_key_is_of_the_content_and_not_of_the_submission(make_envelope, make_part):
    one = content_key(make_envelope(), "echo")
    assert content_key(make_envelope(file_name="b.jpg"), "echo") == one
    assert content_key(make_envelope(), "other") != one
    assert content_key(make_envelope(parts=[make_part(b"a")]), "echo") != one
    announced = [make_envelope(parts=[make_part(data, inline=False)]) for data in (b"a", b"b")]
    assert len({content_key(envelope, "echo") for envelope in announced}) == 2
