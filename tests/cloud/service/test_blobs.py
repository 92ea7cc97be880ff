"""Large parts in an object store: moved, shared within a tenant, given out again, and gone with their last holder."""

import grpc
import pytest
import pytest_asyncio

from docferry.errors import ConfigurationError, Unavailable
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.blob_list import BlobList
from docferry_cloud.blobs import open_blobs
from docferry_cloud.database import Database
from docferry_cloud.schema import blobs, chunks, spare_blobs

PICTURE = b"P6 300 300 255\n" + b"a-text-that-stands-nowhere-else." * 8437 + b"......"


@pytest.fixture(scope="module", params=["folder", "s3"])
def where(request):
    """The settings of an object store of either kind."""
    return request.getfixturevalue("s3") if request.param == "s3" else {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cloud")


@pytest.fixture(scope="module")
def place(folder, database_url):
    return database_url()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(running, folder, place, where):
    async with running(folder, database=place, **where) as server:
        yield server


@pytest.fixture
def stored(folder, place):
    """What the tables say of objects: (holders of each, spare ones, chunks)."""

    def look():
        database = Database(place or folder / "store.sqlite")
        try:
            with database.read() as connection:
                holders = sorted(connection.execute(blobs.select()).mappings(), key=lambda row: row["name"])
                spare = connection.execute(spare_blobs.select()).all()
                return [row["holders"] for row in holders], len(spare), len(connection.execute(chunks.select()).all())
        finally:
            database.close()

    return look


@pytest.fixture
def objects(folder, where):
    """The objects that are really there."""

    def look():
        store = open_blobs(where.get("blobs", ""), folder / "blobs", where.get("blobs_endpoint", ""))
        return [item["path"] for page in store._store.list() for item in page]

    return look


async def _supplied(caller, make_envelope, make_part):
    part = make_part(PICTURE, inline=False, media_type="image/x-portable-pixmap")
    taken = await caller.submit(make_envelope(parts=[part]))
    for start in range(0, len(PICTURE), 512 << 10):
        await caller.supply(taken.analysis_id, part, PICTURE[start : start + (512 << 10)], start)
    await caller.finished(taken.analysis_id)
    return taken.analysis_id


async def _part(caller, analysis_id):
    from docferry.channel import call_metadata

    request = pb.GetPartRequest(analysis_id=analysis_id, part_id="p1")
    call = caller._analysis.GetPart(request, timeout=20, metadata=call_metadata(caller.token))
    return b"".join([answer.data async for answer in call])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_large_part_moves_out_is_shared_by_its_tenant_and_goes_with_its_last_holder(
    service, make_envelope, make_part, stored, objects, until
):
    caller, other = service.caller(), service.caller()
    one = await _supplied(caller, make_envelope, make_part)
    two = await _supplied(caller, make_envelope, make_part)
    foreign = await _supplied(other, make_envelope, make_part)
    await until(lambda: stored()[2] == 0)
    assert (sorted(stored()[0]), len(objects())) == ([1, 2], 2)
    assert await _part(caller, two) == PICTURE
    await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=one))
    assert await _part(caller, two) == PICTURE
    await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=two))
    assert (stored()[0], len(objects())) == ([1], 1)
    assert await _part(other, foreign) == PICTURE
    await other("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=foreign))
    assert (stored(), objects()) == (([], 0, 0), [])
    with pytest.raises(grpc.aio.AioRpcError):
        await _part(other, foreign)


class Broken:
    """A store that is away, as often as it is told."""

    def __init__(self, store, times):
        self.store, self.times = store, times

    def __getattr__(self, name):
        if self.times:
            self.times -= 1
            raise Unavailable("the object store is away", remedy="wait")
        return getattr(self.store, name)


def test_a_part_that_is_written_in_vain_leaves_a_spare_object_and_keeps_its_rows(tmp_path, database_url, supplied):
    world, analysis_id, data = supplied
    away = BlobList(world.database, Broken(world.blobs, 1), world.clock)
    with pytest.raises(Unavailable):
        away.move()
    assert world.store.envelope(analysis_id)[1] == {"p1": data}
    # Nobody else begins while that one may still be writing.
    assert BlobList(world.database, world.blobs, world.clock).move() == 0
    world.now += 3_601_000_000
    later = BlobList(world.database, world.blobs, world.clock)
    assert later.move() == 1
    assert world.store.envelope(analysis_id)[1] == {"p1": data}
    assert later.clear() == 1
    assert world.store.envelope(analysis_id)[1] == {"p1": data}


def test_one_that_fails_leaves_those_behind_it_to_the_next_round(world, supply_whole):
    held = [supply_whole(bytes([number]) * 70_000) for number in range(3)]
    away = BlobList(world.database, Broken(world.blobs, 1), world.clock)
    with pytest.raises(Unavailable):
        away.move()
    # The one that failed may still be on its way; the other two wait for nothing.
    assert BlobList(world.database, world.blobs, world.clock).move() == 2
    assert [world.store.envelope(name)[1]["p1"][:1] for name in held] == [b"\0", b"\1", b"\2"]


class Slow:
    """A store in which writing takes so long that something else happens meanwhile."""

    def __init__(self, store, meanwhile):
        self.store, self.meanwhile = store, meanwhile

    def put(self, name, data):
        self.store.put(name, data)
        self.meanwhile()

    def __getattr__(self, name):
        return getattr(self.store, name)


def test_a_write_that_outlasts_its_reservation_leaves_the_rows_the_truth(supplied):
    world, analysis_id, data = supplied

    def too_long():
        world.now += 3_601_000_000
        assert BlobList(world.database, world.blobs, world.clock).clear() == 1

    assert BlobList(world.database, Slow(world.blobs, too_long), world.clock).move() == 1
    assert world.store.envelope(analysis_id)[1] == {"p1": data}
    assert BlobList(world.database, world.blobs, world.clock).move() == 1
    assert world.store.envelope(analysis_id)[1] == {"p1": data}


def test_deleting_deletes_its_own_objects_however_many_others_are_due(world, supply_whole):
    others = [supply_whole(bytes([number]) * 70_000) for number in range(3)]
    mine = supply_whole(b"m" * 70_000)
    while BlobList(world.database, world.blobs, world.clock).move():
        pass
    for name in others:
        world.store.delete("tenant", name)
    world.now += 1
    released = world.store.delete("tenant", mine)
    assert len(released) == 1
    assert BlobList(world.database, world.blobs, world.clock).clear(released, limit=1) == 1
    assert world.blobs.get(released[0]) is None


def test_an_object_that_is_not_there_though_its_analysis_is_gets_named(supplied):
    world, analysis_id, _ = supplied
    assert BlobList(world.database, world.blobs, world.clock).move() == 1
    for page in world.blobs._store.list():
        for item in page:
            world.blobs.delete(item["path"])
    with pytest.raises(Unavailable, match="p1"):
        world.store.envelope(analysis_id)
    world.store.delete("tenant", analysis_id)
    assert world.store.envelope(analysis_id) is None


def test_an_object_that_cannot_be_deleted_now_is_deleted_later(supplied):
    world, analysis_id, _ = supplied
    assert BlobList(world.database, world.blobs, world.clock).move() == 1
    world.store.delete("tenant", analysis_id)
    away = BlobList(world.database, Broken(world.blobs, 1), world.clock)
    assert away.clear() == 0
    world.now += 61_000_000
    assert away.clear() == 1
    assert [item for page in world.blobs._store.list() for item in page] == []


def test_a_url_that_no_store_has_is_a_clear_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"data\.blobs"):
        open_blobs("nowhere://x", tmp_path)
