"""The console of a service that is open to its own machine; apart, as one service runs in a process at a time."""

import re

from tests.cloud.console.conftest import Place
from tests.cloud.service.running import EchoEngine, running_server


async def test_an_open_service_needs_no_login_until_the_first_key_is_issued(tmp_path):
    serving = running_server(tmp_path, EchoEngine, http_port=0, tokens=())
    async with serving as service, Place(service, service.caller()).browser() as browser:
        assert (await browser.get("/login")).headers["location"] == "/console/inbox"
        assert "open to this machine" in (await browser.get("/inbox")).text
        made = await browser.post("/keys", scope=["admin"], name="first")
        secret = re.search(r'id="secret">(dfk_[^<]+)<', made.text)[1]
        service.server._gate._open = None
        assert (await browser.get("/inbox")).headers["location"] == "/console/login"
        assert (await browser.log_in(secret)).status_code == 303
        assert "first" in (await browser.get("/keys")).text
