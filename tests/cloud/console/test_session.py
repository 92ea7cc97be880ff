"""In and out of the console: keys, cookies, tokens of forms, and what each key may see."""

import re

import pytest

from docferry_cloud.access.rules import Scope
from docferry_cloud.console.session import COOKIE
from tests.cloud.console.conftest import token_in

pytestmark = pytest.mark.asyncio(loop_scope="module")
PAGES = ("/inbox", "/review", "/routing", "/devices", "/subscriptions", "/keys")


async def test_a_stranger_is_sent_to_the_login_from_everywhere(place):
    async with place.browser() as browser:
        for page in (*PAGES, "/analyses/x", "/analyses/x/pages/0/picture", "/review/x"):
            answer = await browser.get(page)
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/login"), page
        for path in ("/keys", "/subscriptions", "/logout", "/review/x"):
            answer = await browser.send(path, token="0" * 64)
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/login"), path
        form = await browser.get("/login")
        assert 'autocomplete="off"' in form.text
        assert form.status_code == 200
        assert (await browser.client.get("/console")).headers["location"] == "/console/inbox"


async def test_a_key_is_traded_for_a_session_that_only_the_cookie_knows(place):
    key = place.key(Scope.ADMIN)
    async with place.browser() as browser:
        answer = await browser.log_in(f" {key} ")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/inbox")
        cookie = answer.headers["set-cookie"]
        for word in ("HttpOnly", "SameSite=strict", "Path=/console", "Max-Age=43200"):
            assert word.lower() in cookie.lower()
        assert "secure" not in cookie.lower()
        assert key not in cookie
        for page in PAGES:
            shown = await browser.get(page)
            assert shown.status_code == 200, page
            assert key not in shown.text
            assert browser.client.cookies[COOKIE] not in shown.text
        # The cookie opens the console's pages and nothing else.
        value = browser.client.cookies[COOKIE]
        assert (await browser.client.get("/v1/analyses", headers={"cookie": f"{COOKIE}={value}"})).status_code == 401
        left = await browser.post("/logout", "/inbox")
        assert left.headers["location"] == "/console/login"
        browser.client.cookies.set(COOKIE, value, path="/console")
        assert (await browser.get("/inbox")).status_code == 303


@pytest.mark.parametrize("key", ["", "wrong", "dfk_000000000000_" + "x" * 43, "schlüssel", "x" * 5000])
async def test_what_is_no_key_is_told_so(place, key):
    async with place.browser() as browser:
        answer = await browser.log_in(key)
        assert answer.status_code in {400, 401}
        assert 'role="alert"' in answer.text
        assert not browser.client.cookies[COOKIE].startswith("dfo_")


async def test_a_key_that_sees_no_results_does_not_get_in(place):
    async with place.browser() as browser:
        assert (await browser.log_in(place.key(Scope.SUBMIT))).status_code == 403


async def test_a_strangers_body_is_small_or_not_taken(place):
    async with place.browser() as browser:
        assert (await browser.log_in("x" * 20_000)).status_code == 413


async def test_a_form_that_was_made_for_another_browser_is_refused(place, admin):
    async with place.browser(place.key(Scope.ADMIN)) as other:
        theirs = token_in((await other.get("/keys")).text)
    for token in ("", theirs, "ü"):
        answer = await admin.send("/keys", token=token, scope="read", name="forged")
        assert answer.status_code == 403
    assert "forged" not in (await admin.get("/keys")).text
    async with place.browser() as browser:
        await browser.get("/login")
        answer = await browser.send("/login", token=theirs, key=place.key(Scope.ADMIN))
        assert answer.status_code == 403


async def test_pages_of_other_sites_may_not_post(admin):
    token = token_in((await admin.get("/keys")).text)
    headers = {"origin": "https://evil.example"}
    answer = await admin.client.post("/console/keys", data={"token": token, "scope": "read"}, headers=headers)
    assert answer.status_code == 403


async def test_a_key_that_reads_sees_documents_and_changes_nothing(place, make_envelope):
    done = await place.caller.finished((await place.caller.submit(make_envelope())).analysis_id)
    async with place.browser(place.key(Scope.READ)) as browser:
        inbox = await browser.get("/inbox")
        assert done.analysis_id in inbox.text
        assert "/console/keys" not in inbox.text
        for page in ("/keys", "/subscriptions"):
            assert (await browser.get(page)).status_code == 403
        review = await browser.get(f"/review/{done.analysis_id}")
        assert review.status_code == 200
        answer = await browser.post("/keys", "/inbox", scope="read", name="more")
        assert answer.status_code == 403
        answer = await browser.post(f"/review/{done.analysis_id}", "/inbox", version="2", settled="line:0:r1.l1")
        assert answer.status_code in {303, 403}
    assert len((await place.caller.get(done.analysis_id)).versions) == len(done.versions)


async def test_a_revoked_key_takes_its_sessions_along(place, monkeypatch):
    monkeypatch.setattr("docferry_cloud.access.gate.REMEMBERED_S", -1.0)
    key = place.key(Scope.ADMIN)
    async with place.browser(key) as browser:
        place.service.server._keys.revoke(key.split("_")[1])
        assert (await browser.get("/inbox")).headers["location"] == "/console/login"


async def test_policies_allow_nothing_that_is_not_our_own_file(place, admin):
    for page in (*PAGES, "/login", "/analyses/none"):
        async with place.browser() as stranger:
            answer = await (stranger if page == "/login" else admin).get(page)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
        # Nothing inline: what is not in a file of ours does not run and does not paint.
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.text)
        for name in re.findall(r'(?:href|src)="(/console/static/[^"]+)"', answer.text):
            assert re.fullmatch(r"/console/static/[a-z]+\.[0-9a-f]{12}\.(css|js|svg)", name)
            file = await admin.client.get(name)
            assert file.status_code == 200
            assert "immutable" in file.headers["cache-control"]
    assert (await admin.get("/static/console.css")).status_code == 404
    assert (await admin.get("/static/..%2frender.py")).status_code == 404
