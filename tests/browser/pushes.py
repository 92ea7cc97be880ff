"""Web Push in a browser that cannot reach its push service: the page gets a subscription whose keys the test holds."""

import asyncio
import json

from tests.cloud.service.browser import Browser
from tests.cloud.service.running import DEADLINE

# A push to a worker that is not active yet goes nowhere.
_ACTIVE = """
navigator.serviceWorker.ready.then(({active}) => active.state === "activated" || new Promise((done) =>
  active.addEventListener("statechange", () => done(true), {once: true})))
"""

# Asked what is on the screen while one is being put up, Chromium forgets the new one: so the worker says when it is up.
_LISTEN = """
() => {
  const registration = self.registration;
  const put = registration.showNotification.bind(registration);
  self.up = new Promise((done) => {
    registration.showNotification = (...what) => put(...what).then(done);
  });
}
"""
_SHOWN = (
    "() => self.up.then(() => self.registration.getNotifications()).then((all) => all.map((n) => [n.title, n.tag]))"
)

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
    async with asyncio.timeout(DEADLINE):
        await page.evaluate(_ACTIVE)
        (worker,) = page.context.service_workers
        await worker.evaluate(_LISTEN)
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
    """Title and tag of the notifications on the screen, once the one that was delivered is up."""
    (worker,) = page.context.service_workers
    async with asyncio.timeout(DEADLINE):
        return await worker.evaluate(_SHOWN)
