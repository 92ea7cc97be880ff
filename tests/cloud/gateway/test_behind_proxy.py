"""Behind a proxy that speaks TLS, browsers see https where the gateway sees http."""

import httpx
import pytest
import pytest_asyncio

from docferry_cloud.gateway.link import SESSION_COOKIE
from tests.cloud.gateway.conftest import client_of
from tests.cloud.service.running import running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")
OWN = "https://docferry.example"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory):
    settings = {"http_port": 0, "http_behind_proxy": True, "public_url": OWN}
    async with running_server(tmp_path_factory.mktemp("proxy"), **settings) as server:
        yield server


async def test_the_pages_own_origin_is_the_proxys_and_the_cookie_is_for_encrypted_ways_only(service, make_envelope):
    caller = service.caller()
    analysis_id = (await caller.submit(make_envelope())).analysis_id
    url = service.server.http_address
    async with client_of(url, caller.token) as owner:
        link = (await owner.post(f"/v1/analyses/{analysis_id}/claims", json={})).json()["link"]
    assert link.startswith(f"{OWN}/c/dfl_")
    async with httpx.AsyncClient(base_url=url, headers={"host": "docferry.example"}, trust_env=False) as phone:
        path = link.removeprefix(OWN)
        plain = await phone.post(path, headers={"origin": "http://docferry.example"})
        assert plain.status_code == 403
        answer = await phone.post(path, headers={"origin": OWN, "sec-fetch-site": "same-origin"})
    assert answer.status_code == 303
    (session,) = [c for c in answer.headers.get_list("set-cookie") if c.startswith(SESSION_COOKIE)]
    assert "Secure" in session
