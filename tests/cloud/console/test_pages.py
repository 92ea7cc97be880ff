"""The console's pages over a real service: lists, documents, review, routing, devices, subscriptions, keys."""

import html
import io
import re

import pytest
import pytest_asyncio
from PIL import Image

from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.packing import pack_reading
from docferry.v1 import envelope_pb2
from docferry_cloud.access.rules import Scope

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _reading(total="9.00", confidence=0.5, pages=1, text="Invoice No: 4711"):
    texts = (f"Total: {total}", text, "Date: 2024-03-12")
    lines = tuple(
        Line(f"r1.l{n}", words, _place(n), 0.9, confidence=confidence if n == 1 else 0.99, provenance="edge:double@1")
        for n, words in enumerate(texts, 1)
    )
    region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.6, 0.5), 0, lines=lines)
    return Reading(Document((Page(100, 200, (region,)),) * pages), "double@1")


def _place(n):
    top = (n if n > 1 else 4) / 10
    return ((0.1, top), (0.6, top), (0.6, top + 0.05), (0.1, top + 0.05))


@pytest_asyncio.fixture(loop_scope="module")
async def submit(place, make_envelope):
    async def handed_in(name="a.jpg", parts=(), **changes):
        structure = pack_reading(_reading(**changes))
        envelope = make_envelope(file_name=name, structure=structure, parts=parts)
        return await place.caller.finished((await place.caller.submit(envelope)).analysis_id)

    return handed_in


async def test_the_inbox_filters_searches_and_goes_on_page_by_page(admin, submit):
    for number in range(27):
        await submit(f"paper-{number}.jpg")
    first = await admin.get("/inbox")
    assert first.text.count('scope="row"') == 25
    next_page = html.unescape(re.search(r'rel="next" href="([^"]+)"', first.text)[1])
    rest = await admin.get(f"/inbox{next_page}")
    assert rest.text.count('scope="row"') == 2
    assert "paper-0.jpg" in rest.text
    found = await admin.get("/inbox", params={"q": "PAPER-13"})
    assert found.text.count('scope="row"') == 1
    assert 'value="PAPER-13"' in found.text
    assert "Nothing is here" in (await admin.get("/inbox", params={"state": "STATE_FAILED"})).text
    assert (await admin.get("/inbox", params={"page_token": "x"})).status_code == 400
    assert (await admin.get("/inbox", params={"state": "STATE_WRONG"})).text.count('scope="row"') == 25


async def test_a_document_shows_its_page_with_what_was_read_and_how_sure_it_is(admin, submit, make_part, small_png):
    done = await submit("scan.png", [make_part(small_png)])
    page = (await admin.get(f"/analyses/{done.analysis_id}")).text
    assert 'points="10,80 60,80 60,90 10,90"' in page
    assert '<polygon class="c1 edge" data-line="r1.l1"' in page
    assert '<polygon class="c4 edge" data-line="r1.l2"' in page
    assert 'data-page="0" data-line="r1.l1"' in page
    picture = await admin.get(f"/analyses/{done.analysis_id}/pages/0/picture")
    assert picture.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(picture.content)).size
    text = (await admin.get(f"/analyses/{done.analysis_id}/text")).text
    assert "<pre>" in text
    assert "4711" in text
    for name in ("markdown", "json", "csv", "xlsx", "html", "pdf"):
        file = await admin.get(f"/analyses/{done.analysis_id}/export", params={"format": name})
        assert file.status_code == 200, name
        assert file.headers["content-disposition"].startswith("attachment")
    assert (await admin.get(f"/analyses/{done.analysis_id}/export", params={"format": "exe"})).status_code == 400


async def test_a_page_without_pixels_is_no_error_and_offers_to_fetch_it(place, admin, submit):
    done = await submit()
    assert (await admin.get(f"/analyses/{done.analysis_id}/pages/0/picture")).status_code == 204
    assert "Fetch page 1" in (await admin.get(f"/analyses/{done.analysis_id}")).text
    answer = await admin.post(f"/analyses/{done.analysis_id}/pages/0/fetch", f"/analyses/{done.analysis_id}")
    # This device keeps no original.
    assert answer.status_code == 400
    async with place.browser(place.key(Scope.READ)) as reader:
        assert "Fetch page" not in (await reader.get(f"/analyses/{done.analysis_id}")).text


async def test_of_fifty_pages_only_the_first_is_in_the_document_and_the_others_come_alone(admin, submit):
    done = await submit("long.pdf", pages=50)
    page = (await admin.get(f"/analyses/{done.analysis_id}")).text
    assert page.count("<figure") == 1
    assert page.count("data-piece=") == 49
    assert len(page) < 60_000
    piece = (await admin.get(f"/analyses/{done.analysis_id}/pages/49", params={"piece": ""})).text
    assert piece.count("<figure") == 1
    assert "<html" not in piece
    alone = (await admin.get(f"/analyses/{done.analysis_id}/pages/49")).text
    assert "Page 50 of 50" in alone
    assert (await admin.get(f"/analyses/{done.analysis_id}/pages/50")).status_code == 404
    assert (await admin.get(f"/analyses/{done.analysis_id}/pages/x")).status_code == 404


async def test_versions_stand_side_by_side(admin, place, submit):
    done = await submit()
    shown = (await admin.get(f"/analyses/{done.analysis_id}/compare", params={"left": 1, "right": 2})).text
    assert "Version 1 (edge)" in shown
    assert "Version 2 (reading)" in shown
    settled = {"version": "2", "settled": "line:0:r1.l1", "line:0:r1.l1": "Total: 10.00"}
    await admin.post(f"/review/{done.analysis_id}", **settled)
    shown = (await admin.get(f"/analyses/{done.analysis_id}/compare")).text
    assert '<tr class="changed"><td>Total: 9.00</td><td>Total: 10.00</td></tr>' in shown
    old = (await admin.get(f"/analyses/{done.analysis_id}", params={"version": 1})).text
    assert "Total: 10.00" not in old
    assert "3 (person)" in old


async def test_the_review_goes_from_doubt_to_doubt_and_stores_what_was_settled(admin, place, submit):
    small, large = await submit("small", total="9.00"), await submit("large", total="9000.00")
    queue = (await admin.get("/review")).text
    assert queue.index(large.analysis_id) < queue.index(small.analysis_id)
    form = (await admin.get(f"/review/{large.analysis_id}")).text
    assert form.count('<fieldset class="doubt"') == 2
    assert "viewBox=" in form
    fields = {"version": "2", "settled": "line:0:r1.l1", "line:0:r1.l1": "Total: 9000.00", "field:total:0": "9,500.00"}
    answer = await admin.post(f"/review/{large.analysis_id}", **fields)
    assert answer.headers["location"] == f"/console/review/{small.analysis_id}"
    newest = (await place.caller.get(large.analysis_id)).versions[-1]
    assert newest.engine == "person"
    line = newest.interpretation.document.pages[0].regions[0].lines[0]
    assert (line.text, line.confidence) == ("Total: 9000.00", 1.0)
    (total,) = [field for field in newest.interpretation.document.fields if field.name == "total"]
    assert (total.value, total.normalized, total.confidence) == ("9,500.00", "9500.00", 1.0)
    assert "Nothing is in doubt" in (await admin.get(f"/review/{large.analysis_id}")).text
    # What is neither checked nor changed stays in doubt, and makes no version.
    await admin.post(f"/review/{small.analysis_id}", version="2", **{"line:0:r1.l1": "Total: 9.00"})
    assert len((await place.caller.get(small.analysis_id)).versions) == 2
    # Somebody was quicker.
    late = {"version": "1", "settled": "line:0:r1.l1", "line:0:r1.l1": "x"}
    assert (await admin.post(f"/review/{small.analysis_id}", **late)).status_code == 409
    assert (await admin.post(f"/review/{small.analysis_id}", version="x")).status_code == 400


async def test_the_review_of_what_nobody_has_read_yet_asks_to_wait(admin, place, make_envelope, make_part):
    part = make_part(b"later", kind=envelope_pb2.PART_KIND_ORIGINAL, inline=False)
    taken = await place.caller.submit(make_envelope(structure=None, parts=[part]))
    answer = await admin.post(f"/review/{taken.analysis_id}", version="0")
    assert answer.status_code == 400
    assert "wait until it has been read" in answer.text


async def test_routing_adds_up_what_was_saved(admin, place, make_envelope):
    for decision in (envelope_pb2.ROUTE_DECISION_STRUCTURE, envelope_pb2.ROUTE_DECISION_PAGE):
        route = envelope_pb2.Route(decision=decision, risk=0.25)
        envelope = make_envelope(route=route, original_bytes=500_000)
        await place.caller.finished((await place.caller.submit(envelope)).analysis_id)
    page = (await admin.get("/routing")).text
    assert "Documents: 2" in page
    assert re.search(r"Bytes saved: 99\d\.\d kB of 1\.0 MB", page)
    assert "50 % of the documents" in page
    assert "not known" not in page
    for odd in ("nonsense", "0", "9" * 5000, "030999999999"):
        assert (await admin.get("/routing", params={"days": odd})).status_code == 200, odd[:20]


async def test_devices_are_shown_with_their_health(admin, place, submit):
    await submit()
    place.service.server._keys.create(place.caller.tenant, [Scope.DEVICE], device="till-2")
    page = (await admin.get("/devices")).text
    assert '<td class="c4">well</td>' in page
    assert '<td class="c0">never heard of</td>' in page


async def test_subscriptions_are_added_removed_and_replayed(admin, place, submit):
    made = await admin.post("/subscriptions", url="http://127.0.0.1:9/hook")
    assert "whsec_" in made.text
    assert "whsec_" not in (await admin.get("/subscriptions")).text
    await submit()
    deliveries = place.service.server._deliveries
    subscription_id = re.search(r"/console/subscriptions/([0-9a-f-]{36})/replay", made.text)[1]
    page = ""
    while 'name="event_id"' not in page:
        page = (await admin.get("/subscriptions")).text
    event_id = re.search(r'name="event_id" value="([^"]+)"', page)[1]
    answer = await admin.post(f"/subscriptions/{subscription_id}/replay", "/subscriptions", event_id=event_id)
    assert answer.headers["location"] == "/console/subscriptions"
    rows = await place.service.server._core.database.run(
        deliveries.page, place.caller.tenant, subscription_id, dead=False, limit=100, before=None
    )
    assert event_id in {row.event_id for row in rows}
    await admin.post(f"/subscriptions/{subscription_id}/remove", "/subscriptions")
    assert "Nobody is told" in (await admin.get("/subscriptions")).text
    assert (await admin.post("/subscriptions", url="javascript:alert(1)")).status_code == 400


async def test_a_keys_secret_is_shown_once_and_revoking_holds(admin, place):
    made = await admin.post("/keys", name="till", device="till-1", scope=["device"], days="30")
    secret = re.search(r'id="secret">(dfk_[^<]+)<', made.text)[1]
    listed = (await admin.get("/keys")).text
    assert secret not in listed
    assert "till-1" in listed
    key_id = secret.split("_")[1]
    await admin.post(f"/keys/{key_id}/revoke", "/keys")
    assert "revoked" in (await admin.get("/keys")).text
    assert place.service.server._keys.find(key_id).key.revoke_time
    for wrong in ({"days": "x"}, {"days": "0"}, {"days": "030999999999"}, {"scope": "root"}, {"scope": []}):
        assert (await admin.post("/keys", **({"scope": "read"} | wrong))).status_code == 400


async def test_nobody_sees_anothers_documents(admin, place, submit):
    done = await submit("secret.jpg")
    async with place.browser(place.key(Scope.ADMIN, tenant="elsewhere")) as other:
        for path in ("", "/text", "/compare", "/pages/0", "/pages/0/picture", "/export?format=json"):
            answer = await other.get(f"/analyses/{done.analysis_id}{path}")
            assert answer.status_code == 404, path
            assert "secret.jpg" not in answer.text
        assert "secret.jpg" not in (await other.get("/inbox")).text
        assert (await other.get(f"/review/{done.analysis_id}")).status_code == 404
