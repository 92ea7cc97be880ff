"""Web Push in a browser that cannot reach its push service: the page gets a subscription whose keys the test holds."""

import asyncio
import json

from tests.cloud.service.browser import Browser
from tests.cloud.service.running import DEADLINE

_SUBSCRIBED = """
const made = (options) => ({
  endpoint: %(url)s, toJSON: () => ({endpoint: %(url)s, keys: {p256dh: %(p256dh)s, auth: %(auth)s}}),
  options,
});
PushManager.prototype.subscribe = async function (options) { window.asked = options; return made(options); };
PushManager.prototype.getSubscription = async () => null;
"""


async def subscribing(page, url: str) -> Browser:
    """Let the page subscribe with an endpoint of the test's; gives the keys to read what is pushed there."""
    keys = Browser()
    named = {"url": url, "p256dh": keys.p256dh, "auth": keys.auth}
    await page.add_init_script(_SUBSCRIBED % {name: json.dumps(value) for name, value in named.items()})
    return keys


async def deliver(page, origin: str, text: str) -> None:
    """Give a push message to the page's service worker, as the browser would."""
    session = await page.context.new_cdp_session(page)
    registered = asyncio.get_running_loop().create_future()

    def updated(event):
        for one in event["registrations"]:
            if one["scopeURL"].startswith(origin) and not registered.done():
                registered.set_result(one["registrationId"])

    session.on("ServiceWorker.workerRegistrationUpdated", updated)
    await session.send("ServiceWorker.enable")
    async with asyncio.timeout(DEADLINE):
        number = await registered
    await session.send("ServiceWorker.deliverPushMessage", {"origin": origin, "registrationId": number, "data": text})


async def shown(page) -> list[list[str]]:
    """Title and tag of the notifications on the screen, once there is one."""
    ask = "navigator.serviceWorker.ready.then(w => w.getNotifications()).then(all => all.map(n => [n.title, n.tag]))"
    async with asyncio.timeout(DEADLINE):
        while not (found := await page.evaluate(ask)):
            await asyncio.sleep(0.02)
    return found
