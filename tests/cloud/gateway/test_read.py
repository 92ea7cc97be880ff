"""POST /v1/read: a picture in, the finished analysis out."""

import asyncio
import base64
import threading
import uuid

import pytest

from docferry import report

pytestmark = pytest.mark.asyncio(loop_scope="module")


def b64(data):
    return base64.b64encode(data).decode()


async def test_a_picture_as_base64_is_answered_as_submit_prints_it(http, small_png):
    answer = await http.client.post("/v1/read", json={"image": b64(small_png), "file_name": "receipt.png"})
    assert answer.status_code == 200, answer.text
    tree = answer.json()
    assert (tree["file"], tree["status"], tree["engine"]) == ("receipt.png", "done", "reading")
    assert "Invoice No: 4711" in tree["markdown"]
    assert tree["traffic"]["sent_bytes"] > len(small_png)
    assert tree == report.analysis("receipt.png", await http.caller.get(tree["analysis_id"]))
    assert http.engine.given[-1].image == small_png


async def test_a_data_uri_with_a_prompt_is_answered_with_evidence(http, small_png):
    body = {"image": f"data:image/png;base64,{b64(small_png)}", "prompt": "What is the total?", "effort": "fast"}
    tree = (await http.client.post("/v1/read", json=body)).json()
    assert tree["file"] == "upload.png"
    given = tree["answers"][-1]
    assert (given["question"], given["answer"]) == ("What is the total?", "9.00")
    assert given["evidence"]


async def test_a_form_with_a_file_is_taken_too(http, small_png):
    form = {"prompt": "What is the total?", "wait_s": "20"}
    answer = await http.client.post("/v1/read", files={"file": ("r.png", small_png, "image/png")}, data=form)
    assert (answer.status_code, answer.json()["file"], answer.json()["answers"][-1]["answer"]) == (200, "r.png", "9.00")


async def test_a_large_file_goes_up_in_chunks(http):
    large = b"P6 1000 500 255\n" + bytes(range(250)) * 6000
    answer = await http.client.post("/v1/read", files={"file": ("page.ppm", large)})
    assert answer.json()["status"] == "done"
    assert http.engine.given[-1].image == large


async def test_what_takes_longer_than_the_caller_waits_goes_on_and_says_where(http, small_png):
    hold = threading.Event()
    http.engine.hook = lambda page, cancelled: hold.wait(20)
    try:
        answer = await http.client.post("/v1/read", json={"image": b64(small_png), "wait_s": 0.1})
    finally:
        hold.set()
        http.engine.hook = None
    tree = answer.json()
    assert answer.status_code == 202
    assert tree["status"] in {"pending", "running"}
    assert answer.headers["location"] == tree["next"]["analysis"] == f"/v1/analyses/{tree['analysis_id']}"
    await http.caller.finished(tree["analysis_id"])
    assert (await http.client.get(tree["next"]["page"])).status_code == 200


async def test_the_same_key_gives_the_same_analysis_and_another_body_under_it_is_refused(http, small_png):
    key = {"idempotency-key": str(uuid.uuid4())}
    first = await http.client.post("/v1/read", json={"image": b64(small_png)}, headers=key)
    again = await http.client.post("/v1/read", json={"image": b64(small_png)}, headers=key)
    assert first.json()["analysis_id"] == again.json()["analysis_id"]
    other = await http.client.post("/v1/read", json={"image": b64(small_png + b"x")}, headers=key)
    assert (other.status_code, other.json()["error"]["status"]) == (409, "ALREADY_EXISTS")


async def test_a_document_that_fails_says_why(http, small_png):
    def fail(page, cancelled):
        raise RuntimeError("boom")

    http.engine.hook = fail
    try:
        answer = await http.client.post("/v1/read", json={"image": b64(small_png)})
    finally:
        http.engine.hook = None
    assert (answer.status_code, answer.json()["status"]) == (422, "failed")
    assert answer.json()["error"]["code"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"image": 5},
        {"image": "!!!"},
        {"image": ""},
        {"image": "data:image/png,plain"},
        {"image": "http://169.254.169.254/latest/meta-data"},
        {"image": "file:///etc/passwd"},
        {"image": "AAAA", "prompt": "x" * 2001},
        {"image": "AAAA", "effort": "heroic"},
        {"image": "AAAA", "wait_s": 1e9},
        {"image": "AAAA", "wait_s": "NaN"},
        {"image": "AAAA", "wait_s": True},
        {"image": "AAAA", "picture": "AAAA"},
    ],
)
async def test_what_cannot_be_used_is_refused_with_a_remedy(http, body):
    answer = await http.client.post("/v1/read", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["remedy"]


async def test_forms_that_break_the_rules_are_refused(http, small_png):
    for files, data in (
        ({"picture": ("r.png", small_png)}, {}),
        ([("file", ("a.png", small_png)), ("file", ("b.png", small_png))], {}),
        ({"file": ("r.png", small_png)}, {"other": "1"}),
        ({"file": ("r.png", b"")}, {}),
        ({"file": ("r.png", small_png)}, {"prompt": "x" * 20_000}),
    ):
        answer = await http.client.post("/v1/read", files=files, data=data)
        assert answer.status_code == 400, answer.text
    headers = {"content-type": "multipart/form-data"}
    assert (await http.client.post("/v1/read", content=b"x", headers=headers)).status_code == 400
    assert (await http.client.post("/v1/read", content=b"x", headers={"content-type": "text/plain"})).status_code == 415


async def test_a_caller_who_leaves_waits_no_longer_and_the_document_goes_on(http, small_png, until):
    watchers = http.service.server._feed._watchers
    hold = threading.Event()
    http.engine.hook = lambda page, cancelled: hold.wait(20)
    try:
        call = asyncio.ensure_future(http.client.post("/v1/read", json={"image": b64(small_png)}))
        await until(lambda: len(watchers.get(http.caller.tenant, ())) == 1)
        call.cancel()
        await until(lambda: http.caller.tenant not in watchers)
    finally:
        hold.set()
        http.engine.hook = None
    [analysis] = (await http.client.get("/v1/analyses")).json()["analyses"]
    await http.caller.finished(analysis["analysis_id"])


async def test_nobody_reads_without_a_key(http, small_png):
    async with http.nobody() as nobody:
        assert (await nobody.post("/v1/read", json={"image": b64(small_png)})).status_code == 401
