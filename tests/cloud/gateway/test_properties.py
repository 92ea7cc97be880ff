"""No input makes the mirror answer 5xx, and none hangs it: requests drawn from the OpenAPI document, broken ones."""

import asyncio
import json
import threading
from urllib.parse import quote

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docferry_cloud.gateway.asking import MAX_DEPTH
from docferry_cloud.gateway.openapi import document
from tests.cloud.service.running import DEADLINE

pytestmark = pytest.mark.asyncio(loop_scope="module")

DESCRIBED = document()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, operations in DESCRIBED["paths"].items()
    for method, operation in operations.items()
    if path != "/openapi.json"
]
TEXT = st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
HOSTILE = st.sampled_from(
    [
        *("", "0", "-1", "1e999", "9" * 400, "\0", "\ud800", "../../etc/passwd", "%00", "'; drop table analyses; --"),
        *("STATE_FAILED", "FORMAT_PDF", "2024-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "true"),
        *("1s", "-315576000000s", "bytes 0-0/1", "AAAA", "data:image/png;base64,AAAA", "http://127.0.0.1:1/", 1e308),
        *(2**31 - 1, 2**32 - 1, 2**63 - 1, -(2**63), 2**64, None, [], {}, [None]),
    ]
)


def values(schema, depth=0):
    """Values of a schema, now and then one that breaks it."""
    if "$ref" in schema:
        schema = DESCRIBED["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return st.one_of(_values(schema, depth), _values(schema, depth), HOSTILE, JSON)


def _values(schema, depth):
    kind = schema.get("type")
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if kind == "object" and depth < 4:
        properties = schema.get("properties", {})
        return st.fixed_dictionaries(
            {}, optional={name: st.deferred(lambda s=s: values(s, depth + 1)) for name, s in properties.items()}
        )
    if kind == "array":
        return st.lists(values(schema["items"], depth + 1), max_size=3)
    if kind == "integer":
        return st.integers(schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1))
    if kind == "number":
        return st.floats(allow_nan=False)
    if kind == "boolean":
        return st.booleans()
    if schema.get("contentEncoding") == "base64":
        return st.sampled_from(["", "AAAA", "not base64", "KLUv/QBYAAA="])
    return TEXT


@st.composite
def requests(draw, operation, ids):
    method, path, described = operation
    query, headers = [], {}
    for parameter in described.get("parameters", []):
        name, place = parameter["name"], parameter["in"]
        if place == "path":
            value = draw(st.one_of(st.sampled_from(ids), st.sampled_from(ids), TEXT, HOSTILE.map(str)))
            path = path.replace(f"{{{name}}}", quote(str(value).encode("utf-8", "replace"), safe=""))
        elif draw(st.booleans()):
            text = str(draw(values(parameter["schema"]))).encode("utf-8", "replace")
            if place == "query":
                query.append((name, text.decode()))
            else:
                headers[name] = bytes(byte for byte in text if 32 <= byte < 127).strip()
    query += draw(st.lists(st.tuples(TEXT, TEXT), max_size=1)) if draw(st.integers(0, 5)) == 5 else []
    content = b""
    for kind, body in described.get("requestBody", {}).get("content", {}).items():
        headers["content-type"] = kind
        drawn = draw(values(body["schema"])) if "schema" in body else None
        content = draw(st.binary(max_size=64)) if drawn is None else json.dumps(drawn).encode()
        if kind == "multipart/form-data" or draw(st.integers(0, 9)) == 9:
            continue
        break
    headers["accept"] = draw(st.sampled_from(["*/*", "application/json", "text/event-stream", "application/x-ndjson"]))
    pairs = [(n.encode("utf-8", "replace"), v.encode("utf-8", "replace")) for n, v in query]
    target = path + ("?" + "&".join(f"{quote(n)}={quote(v)}" for n, v in pairs) if pairs else "")
    return method, target, headers, content


async def status_of(client, method, url, headers, content) -> int:
    """The code of the answer; of a stream without an end, only its beginning is read."""
    async with client.stream(method, url, headers=headers, content=content, timeout=DEADLINE) as answer:
        if "/v1/events" not in url:
            await answer.aread()
        return answer.status_code


@pytest_asyncio.fixture(loop_scope="module")
async def ids(http, make_envelope, make_part):
    done = await http.caller.submit(make_envelope())
    await http.caller.finished(done.analysis_id)
    waiting = await http.caller.submit(make_envelope(parts=[make_part(b"x" * 100, inline=False)]))
    return [done.analysis_id, done.document_id, waiting.analysis_id, "p1"]


# The service's own threads use `random` meanwhile, which Hypothesis takes for the strategies'.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation[0]} {operation[1]}")
async def test_no_input_makes_a_route_answer_5xx_or_hang(http, ids, operation):
    loop = asyncio.get_running_loop()
    failures: list[BaseException] = []

    def draw_in_thread() -> None:
        # Hypothesis draws in a thread of its own: the requests go over this test's loop.
        @settings(
            max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False
        )
        @given(request=requests(operation, ids))
        def check(request):
            method, url, headers, content = request
            call = asyncio.run_coroutine_threadsafe(status_of(http.client, method, url, headers, content), loop)
            code = call.result(DEADLINE)
            assert code < 500, (code, method, url, headers, content)

        try:
            check()
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    thread = threading.Thread(target=draw_in_thread)
    thread.start()
    await asyncio.to_thread(thread.join)
    if failures:
        raise failures[0]


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1),
        b'"' + b"\\" * 1_000_001,
        b"9" * 1_000_000,
        b'{"envelope":' + b"9" * 10_000 + b"}",
        b"\xff\xfe{}",
        b"NaN",
        b'{"envelope":NaN}',
        b'{"envelope":{"file_name":"\\ud800"}}',
        b'{"envelope":{"file_name":"\\u0000"}}',
        b'{"envelope":{},"envelope":{}}',
        b'{"subscription":"\\ud800","image":"\\uDFff","model":"\\ud83d"}',
        b'{"\\ud800":1}',
        b"null",
        b"[]",
        b"{",
    ],
    ids=lambda body: repr(body[:16]),
)
async def test_broken_json_is_refused_and_costs_little(http, body):
    for path in ("/v1/analyses", "/v1/read", "/v1/chat/completions", "/v1/subscriptions"):
        answer = await http.client.post(path, content=body, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500, (path, answer.text)
        assert answer.json()["error"]
