"""The REST mirror: every rpc by HTTP, with the same answers and the same refusals."""

import base64
import hashlib
import json
import re
import uuid

import httpx
import pytest
from google.protobuf import json_format

from docferry.v1 import analysis_service_pb2, claim_service_pb2, operator_service_pb2, subscription_service_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.access.keys import Keys
from docferry_cloud.access.rules import Scope
from docferry_cloud.gateway.routes import MIRROR

pytestmark = pytest.mark.asyncio(loop_scope="module")


def as_json(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


async def submitted(http, make_envelope, **changes):
    answer = await http.client.post("/v1/analyses", json={"envelope": as_json(make_envelope(**changes))})
    assert answer.status_code == 200, answer.text
    return answer.json()["analysis"]


async def finished(http, make_envelope):
    analysis = await submitted(http, make_envelope)
    await http.caller.finished(analysis["analysis_id"])
    return analysis["analysis_id"]


async def test_every_rpc_has_a_route():
    services = [
        analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"],
        operator_service_pb2.DESCRIPTOR.services_by_name["OperatorService"],
        claim_service_pb2.DESCRIPTOR.services_by_name["ClaimService"],
        subscription_service_pb2.DESCRIPTOR.services_by_name["SubscriptionService"],
    ]
    there = {f"{service.name}.{method.name}" for service in services for method in service.methods}
    assert {route.rpc for route in MIRROR} == there


async def test_every_field_of_a_request_is_reachable():
    for route in MIRROR:
        named = {*route.path_fields, *route.query}
        fields = {field.name for field in route.descriptor.input_type.fields}
        assert named <= fields, route
        # Supply's bytes are the body itself; Get by one id leaves out the other.
        left = fields - named - {"data"} - ({"analysis_id", "document_id"} if route.rpc.endswith(".Get") else set())
        assert route.body or not left, (route, left)


async def test_what_http_submits_grpc_gives_and_the_other_way_round(http, make_envelope):
    by_http = await submitted(http, make_envelope)
    assert (await http.caller.get(by_http["analysis_id"])).request_id == by_http["request_id"]
    by_grpc = await http.caller.submit(make_envelope())
    answer = await http.client.get(f"/v1/analyses/{by_grpc.analysis_id}")
    assert answer.json()["analysis"]["document_id"] == by_grpc.document_id
    found = await http.client.get(f"/v1/documents/{by_grpc.document_id}")
    assert found.json()["analysis"]["analysis_id"] == by_grpc.analysis_id


async def test_a_list_goes_on_by_its_token_and_takes_conditions(http, make_envelope):
    ids = [(await submitted(http, make_envelope))["analysis_id"] for _ in range(3)]
    first = (await http.client.get("/v1/analyses", params={"page_size": 2, "order": "oldest_first"})).json()
    assert [a["analysis_id"] for a in first["analyses"]] == ids[:2]
    token = first["next_page_token"]
    second = await http.client.get(
        "/v1/analyses", params={"page_size": "2", "order": "ORDER_OLDEST_FIRST", "page_token": token}
    )
    assert [a["analysis_id"] for a in second.json()["analyses"]] == ids[2:]
    none = await http.client.get("/v1/analyses", params={"states": ["failed", "STATE_CANCELLED"]})
    assert none.json() == {}


async def test_cancel_and_delete(http, make_envelope, make_part):
    waiting = await submitted(http, make_envelope, parts=[make_part(b"x" * 10, inline=False)])
    place = f"/v1/analyses/{waiting['analysis_id']}"
    assert (await http.client.post(f"{place}:cancel")).json()["analysis"]["state"] == "STATE_CANCELLED"
    assert (await http.client.delete(place)).json() == {}
    assert (await http.client.get(place)).status_code == 404


async def test_a_part_goes_up_whole_or_piece_by_piece_and_comes_down_again(http, make_envelope, make_part):
    data = b"P6 700 500 255\n" + bytes(range(250)) * 4200  # more than one chunk of the service
    waiting = await submitted(http, make_envelope, parts=[make_part(data, inline=False)])
    place = f"/v1/analyses/{waiting['analysis_id']}/parts/p1"
    head = {"content-range": f"bytes 0-99999/{len(data)}"}
    digest = hashlib.sha256(data).hexdigest()
    first = await http.client.put(place, params={"sha256": digest}, headers=head, content=data[:100_000])
    assert first.json() == {"received": "100000", "state": "STATE_AWAITING_PARTS"}
    rest = {"sha256": digest, "offset": 100_000, "total_size": len(data)}
    answer = await http.client.put(place, params=rest, content=data[100_000:])
    assert answer.json().get("received") == str(len(data)), answer.text
    down = await http.client.get(place)
    assert down.content == data
    assert down.headers["content-type"] == "image/png"
    assert down.headers["content-disposition"].startswith("attachment")
    other = await submitted(http, make_envelope, parts=[make_part(data, inline=False)])
    whole = await http.client.put(f"/v1/analyses/{other['analysis_id']}/parts/p1", content=data)
    assert whole.json()["received"] == str(len(data))


@pytest.mark.parametrize(
    ("params", "head"),
    [
        ({"sha256": "00"}, ""),
        ({}, "bytes 0-5/100"),
        ({"offset": "7", "total_size": "100"}, "bytes 0-9/100"),
        ({"total_size": "100"}, ""),
        ({"offset": "-1"}, ""),
    ],
)
async def test_a_piece_that_does_not_say_where_it_belongs_is_refused(http, params, head):
    headers = {"content-range": head} if head else {}
    answer = await http.client.put(
        f"/v1/analyses/{uuid.uuid4()}/parts/p1", params=params, headers=headers, content=b"0123456789"
    )
    assert (answer.status_code, answer.json()["error"]["reason"]) == (400, "INVALID_INPUT")


async def test_an_answer_comes_whole_or_in_pieces_as_the_caller_accepts(http, make_envelope):
    analysis_id = await finished(http, make_envelope)
    place, ask = f"/v1/analyses/{analysis_id}:ask", {"question": "Who signed the lease?"}
    whole = (await http.client.post(place, json=ask)).json()
    assert whole["answer"]["question"] == ask["question"]
    lines = await http.client.post(place, json=ask, headers={"accept": "application/x-ndjson"})
    assert json.loads(lines.text.splitlines()[-1])["answer"]["question"] == ask["question"]
    events = await http.client.post(place, json=ask, headers={"accept": "text/event-stream"})
    assert events.headers["content-type"].startswith("text/event-stream")
    assert "event: piece\ndata: {" in events.text


async def test_a_correction_becomes_a_version(http, make_envelope):
    analysis_id = await finished(http, make_envelope)
    version = (await http.caller.get(analysis_id)).versions[-1].version
    body = {"version": version, "fields": [{"name": "total", "value": "9.00", "normalized": "9.00"}]}
    answer = await http.client.post(f"/v1/analyses/{analysis_id}:correct", json=body)
    assert answer.json()["analysis"]["versions"][-1]["engine"] == "person"
    again = await http.client.post(f"/v1/analyses/{analysis_id}:correct", json=body)
    assert (again.status_code, again.json()["error"]["status"]) == (409, "ABORTED")


@pytest.mark.parametrize(("name", "kind"), [("md", "text/markdown"), ("FORMAT_JSON", "application/json")])
async def test_an_export_is_a_file_to_keep(http, make_envelope, name, kind):
    analysis_id = await finished(http, make_envelope)
    answer = await http.client.get(f"/v1/analyses/{analysis_id}:export", params={"format": name})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert answer.headers["content-disposition"].startswith(f'attachment; filename="{analysis_id}.')
    assert answer.content


async def test_a_picture_that_nobody_keeps_cannot_be_asked_for(http, make_envelope):
    analysis_id = await finished(http, make_envelope)
    answer = await http.client.post(f"/v1/analyses/{analysis_id}/parts", json={"page": 0, "scale": 1})
    assert (answer.status_code, answer.json()["error"]["reason"]) == (400, "PIXELS_UNAVAILABLE")


async def test_webhooks_are_added_listed_and_removed(http):
    made = await http.client.post("/v1/subscriptions", json={"subscription": {"url": "https://example.com/hook"}})
    assert made.json()["secret"].startswith("whsec_")
    subscription_id = made.json()["subscription"]["subscription_id"]
    listed = (await http.client.get("/v1/subscriptions")).json()
    assert [s["subscription_id"] for s in listed["subscriptions"]] == [subscription_id]
    assert (await http.client.delete(f"/v1/subscriptions/{subscription_id}")).json() == {}
    assert (await http.client.get("/v1/subscriptions")).json() == {}


async def test_an_error_names_status_reason_and_remedy(http):
    answer = await http.client.get(f"/v1/analyses/{uuid.uuid4()}")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"], error["reason"]) == (404, 404, "NOT_FOUND", "NOT_FOUND")
    assert error["details"][0]["@type"].endswith("google.rpc.ErrorInfo")
    unknown = (await http.client.get("/v1/analyses", params={"page_sise": 2})).json()["error"]
    assert unknown["remedy"] == "did you mean 'page_size'?"


async def test_the_same_id_with_another_body_is_a_conflict(http, make_envelope):
    envelope = as_json(make_envelope())
    assert (await http.client.post("/v1/analyses", json={"envelope": envelope})).status_code == 200
    changed = {**envelope, "file_name": "other.jpg"}
    answer = await http.client.post("/v1/analyses", json={"envelope": changed})
    assert (answer.status_code, answer.json()["error"]["status"]) == (409, "ALREADY_EXISTS")


async def test_a_schema_goes_in_and_comes_back_as_plain_json(http, make_envelope):
    place = f"/v1/analyses/{await finished(http, make_envelope)}"
    schema = {"properties": {"lease": {"properties": {"signed": {"type": "string", "format": "date"}}}}}
    filled = (await http.client.post(f"{place}:fill", json={"schema": schema})).json()
    assert filled["filled"] == {"lease": {"signed": None}}
    assert filled["fields"] == [{"path": ["lease", "signed"], "value": None, "answer": {"question": "lease signed"}}]
    refused = await http.client.post(f"{place}:fill", json={"schema": {"properties": {"a": {"$ref": "#"}}}})
    assert (refused.status_code, refused.json()["error"]["reason"]) == (400, "INVALID_INPUT")


def requests_of(route, analysis_id):
    """A well-formed request of every route, about somebody's analysis."""
    path = route.path.replace("{analysis_id}", analysis_id).replace("{page}", "0")
    path = re.sub(r"{(\w+)}", lambda _: str(uuid.uuid4()), path)
    body = {
        "AnalysisService.Ask": {"question": "What is the total?"},
        "AnalysisService.Fill": {"schema": ["What is the total?"]},
        "AnalysisService.Correct": {"version": 1, "fields": [{"name": "total", "value": "1"}]},
        "AnalysisService.RequestPart": {"page": 0},
    }.get(route.rpc, {})
    params = {"format": "json"} if route.rpc == "AnalysisService.Export" else {}
    more = {"json": body} if route.body else {"content": b"x"} if route.rpc == "AnalysisService.Supply" else {}
    return {"method": route.method, "url": path, "params": params, **more}


@pytest.mark.parametrize("route", MIRROR, ids=lambda route: f"{route.method} {route.path}")
async def test_nobody_gets_in_without_a_key_and_nobody_sees_anothers(http, make_envelope, route):
    analysis_id = await finished(http, make_envelope)
    request = requests_of(route, analysis_id)
    async with http.nobody() as nobody, http.other() as other:
        refused = await nobody.request(**request)
        assert (refused.status_code, refused.json()["error"]["reason"]) == (401, "UNAUTHENTICATED")
        assert refused.headers["www-authenticate"] == "Bearer"
        for given in ("Bearer nobody-issued-this", "Basic eDp5", "Bearer " + "x" * 9000):
            refused = await nobody.request(**request, headers={"authorization": given})
            assert refused.status_code == 401
        if "{analysis_id}" in route.path:
            unseen = await other.request(**request)
            assert (unseen.status_code, unseen.json()["error"]["reason"]) == (404, "NOT_FOUND")


async def test_bytes_are_base64_and_large_numbers_are_texts(http, make_envelope):
    envelope = make_envelope()
    tree = as_json(envelope)
    assert base64.b64decode(tree["structure"]["data"]) == envelope.structure.data
    analysis = await submitted(http, make_envelope)
    read = pb.AnalysisServiceGetResponse()
    json_format.ParseDict((await http.client.get(f"/v1/analyses/{analysis['analysis_id']}")).json(), read)
    assert read.analysis.analysis_id == analysis["analysis_id"]
    assert isinstance(analysis["traffic"]["original_bytes"], str)


async def test_a_body_that_contradicts_the_address_is_refused(http):
    body = {"analysis_id": str(uuid.uuid4()), "question": "?"}
    answer = await http.client.post(f"/v1/analyses/{uuid.uuid4()}:ask", json=body)
    assert answer.status_code == 400
    assert "give it once" in answer.json()["error"]["remedy"]


async def test_a_method_or_a_place_that_is_not_there_is_told_as_any_error(http):
    for method, path, code in (
        ("PATCH", "/v1/analyses", 405),
        ("GET", "/v2/nothing", 404),
        ("HEAD", "/v1/events", 405),
    ):
        answer = await http.client.request(method, path)
        assert answer.status_code == code
        if method != "HEAD":
            assert answer.json()["error"]["remedy"] == "see /openapi.json"


async def test_answers_carry_strict_headers(http):
    for path in ("/v1/analyses", "/openapi.json", "/nothing", f"/r/{uuid.uuid4()}"):
        answer: httpx.Response = await http.client.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


async def test_keys_hold_over_http_with_their_scopes(http):
    keys = Keys(http.service.server._core.database)
    head = {"authorization": f"Bearer {keys.create('by-http', [Scope.READ])[1]}"}
    assert (await http.client.get("/v1/analyses", headers=head)).status_code == 200
    answer = await http.client.delete(f"/v1/analyses/{uuid.uuid4()}", headers=head)
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert "submit" in answer.json()["error"]["remedy"]
    forged = {"authorization": f"Bearer dfk_{0:012x}_{'x' * 43}"}
    assert (await http.client.get("/v1/analyses", headers=forged)).status_code == 401
