"""Links over HTTP: who gets a session, what it opens, and what it does not."""

import base64
import uuid

import httpx
import pytest
import pytest_asyncio

from docferry_cloud.access.claims import Claims
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.gateway.guard import Guard, Limits
from docferry_cloud.gateway.link import SESSION_COOKIE
from docferry_cloud.phone.words import WORDS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def analysis_id(http, small_png):
    body = {"image": base64.b64encode(small_png).decode()}
    return (await http.client.post("/v1/read", json=body)).json()["analysis_id"]


async def new_link(http, analysis_id, **body) -> str:
    answer = await http.client.post(f"/v1/analyses/{analysis_id}/claims", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["link"] or f"/c/{answer.json()['token']}"


def path_of(link: str) -> str:
    return f"/c/{link.rpartition('/')[2]}"


async def opened(http, client, analysis_id) -> httpx.Response:
    return await client.post(path_of(await new_link(http, analysis_id)), headers={"origin": http.url})


async def test_a_link_gives_a_cookie_for_its_document_alone(http, analysis_id):
    async with http.nobody() as phone:
        answer = await opened(http, phone, analysis_id)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/r/{analysis_id}")
        (session,) = [c for c in answer.headers.get_list("set-cookie") if c.startswith(SESSION_COOKIE)]
        for part in (f"Path=/r/{analysis_id}", "HttpOnly", "SameSite=lax"):
            assert part in session
        assert "Secure" not in session
        assert (await phone.get(f"/r/{analysis_id}")).status_code == 200
        assert (await phone.get(f"/r/{analysis_id}/pages/0")).headers["content-type"] == "image/jpeg"
        asked = await phone.post(
            f"/r/{analysis_id}/ask", json={"question": "What is the total?"}, headers={"origin": http.url}
        )
        assert "9.00" in asked.json()["text"]
        # The browser does not even send it elsewhere.
        for path in ("/v1/analyses", f"/v1/analyses/{analysis_id}", f"/r/{uuid.uuid4()}"):
            assert (await phone.get(path)).status_code == 401


@pytest.mark.parametrize("case", ["expired", "revoked", "second phone", "never made", "no link", "other document"])
async def test_what_leads_nowhere_is_not_found_in_the_same_words(http, analysis_id, small_png, case):
    link = path_of(await new_link(http, analysis_id, open_within="3600s"))
    async with http.nobody() as phone:
        if case == "expired":
            database = http.service.server._core.database
            with database.write() as connection:
                from docferry_cloud.schema import claims

                change = claims.update().where(claims.c.claim_id == link.split("_")[1])
                connection.execute(change.values(expire_time=Claims(database)._clock() - MICROSECONDS))
        elif case == "revoked":
            revoked = await http.client.delete(f"/v1/analyses/{analysis_id}/claims")
            assert revoked.json() == {"revoked": 1}
        elif case == "second phone":
            async with http.nobody() as first:
                assert (await first.post(link, headers={"origin": http.url})).status_code == 303
        elif case == "never made":
            link = f"/c/dfl_0123456789ab_{'x' * 43}"
        elif case == "no link":
            link = "/c/hello"
        else:
            await opened(http, phone, analysis_id)
            session = phone.cookies.get(SESSION_COOKIE)
            other = (await http.client.post("/v1/read", json={"image": base64.b64encode(small_png).decode()})).json()
            answer = await phone.get(f"/r/{other['analysis_id']}", headers={"cookie": f"{SESSION_COOKIE}={session}"})
        if case != "other document":
            answer = await phone.post(link, headers={"origin": http.url})
        assert answer.status_code == 404
        assert WORDS["en"]["gone"] in answer.text.replace("&#39;", "'")
        assert "set-cookie" not in answer.headers
        assert "4711" not in answer.text


@pytest.mark.parametrize("cookie", ["dfs_", "x", "dfs_0123456789ab_" + "x" * 43, "x" * 5000, '"; drop'])
async def test_a_cookie_that_is_no_session_opens_nothing(http, analysis_id, cookie):
    async with http.nobody() as phone:
        answer = await phone.get(f"/r/{analysis_id}", headers={"cookie": f"{SESSION_COOKIE}={cookie}"})
        assert answer.status_code == 404
        assert "4711" not in answer.text


async def test_a_key_in_the_header_goes_before_the_cookie(http, analysis_id):
    headers = {"cookie": f"{SESSION_COOKIE}=dfs_"}
    assert (await http.client.get(f"/r/{analysis_id}", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"origin": "https://docferry.example", "sec-fetch-site": "same-origin"}, 200),
    ],
)
async def test_what_a_cookie_changes_comes_from_a_page_of_our_own_behind_a_proxy_too(headers, code):
    async def inner(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def known(_):
        return None

    guard = Guard(inner, limits=Limits(), knock=known, origins=(), own_machine=False, behind_proxy=True)
    transport = httpx.ASGITransport(app=guard)
    async with httpx.AsyncClient(transport=transport, base_url="http://docferry.example") as client:
        answer = await client.post("/r/x/ask", headers={**headers, "cookie": f"{SESSION_COOKIE}=dfs_"})
    assert answer.status_code == code


async def test_the_start_page_lists_nothing_for_who_may_not_list(http, analysis_id):
    async with http.nobody() as nobody:
        answer = await nobody.get("/r/")
        assert answer.status_code == 200
        assert analysis_id not in answer.text
        assert 'id="drop"' not in answer.text
    shown = await http.client.get("/r/")
    assert analysis_id in shown.text
    assert 'id="drop"' in shown.text


async def test_a_browser_may_be_told_of_this_document_only(http, analysis_id):
    async with http.nobody() as phone:
        await opened(http, phone, analysis_id)
        wish = {"endpoint": "https://push.example/x", "keys": {"p256dh": "x", "auth": "y"}}
        for body, code in (({}, 400), ({"keys": []}, 400), (wish, 400)):
            answer = await phone.post(f"/r/{analysis_id}/subscriptions", json=body, headers={"origin": http.url})
            assert answer.status_code == code, body
