"""Everything else (ntfy, Slack, Telegram, e-mail, MQTT, ...): Apprise speaks to it, at an address of the operator's.

Such an address is a secret as a whole. It is never shown, logged or part of a failure, only its scheme is; what Apprise
itself logs may quote it and goes nowhere. Callers cannot give one: Apprise looks names up by itself and follows
redirects, so it would carry them into the operator's own network.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

from docferry.errors import ConfigurationError
from docferry_cloud.sinks.message import Message
from docferry_cloud.sinks.port import ATTEMPT_S, DELIVERED, Delivery, Outcome, Verdict
from docferry_cloud.sinks.titles import details
from docferry_cloud.threads import Threads

if TYPE_CHECKING:
    import apprise

_THREADS = 8
_GRACE_S = 1.0
"""Apprise gives up this long before the attempt is over, so that its thread is free again."""
_STATUS = re.compile(r"\berror=([1-5][0-9]{2})\b", re.ASCII)
_TYPES = {"succeeded": "success", "failed": "failure"}


class AppriseSink:
    """Sends a title, a link and ids to one address.

    Args:
        threads: Apprise blocks. Abandon them at the end.
        timeout_s: The longest attempt.
    """

    def __init__(self, threads: Threads, timeout_s: float = ATTEMPT_S) -> None:
        self._threads = threads
        self._timeout_s = timeout_s

    async def send(self, delivery: Delivery, message: Message) -> Outcome:
        """Send once. What was not taken may be taken later: Apprise does not tell what can never work."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._threads.run(_send, delivery.url, message, max(_GRACE_S, self._timeout_s - _GRACE_S))
        except TimeoutError:
            return Outcome(Verdict.RETRY, f"{shown(delivery.url)}: no answer within {self._timeout_s:g} s")


def apprise_threads() -> Threads:
    """Threads for Apprise."""
    return Threads(_THREADS, "docferry-apprise")


def shown(url: str) -> str:
    """All that may be said of an address: its scheme."""
    return f"{url.partition('://')[0]}://"


def check_address(place: str, url: str) -> None:
    """Check that Apprise is installed and takes an address; nothing is connected to.

    Args:
        place: Names the setting.

    Raises:
        ConfigurationError: It is not, or does not.
    """
    try:
        _notifier(url)
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error.reason}", remedy=error.remedy, setting=place) from None


def _send(url: str, message: Message, timeout_s: float) -> Outcome:
    try:
        result = _notifier(url).notify(
            title=message.title,
            body=details(message.analysis_id, message.version, message.link, message.language),
            body_format="text",
            notify_type=_TYPES.get(message.happened, "info"),
            timeout=timeout_s,
        )
    except ConfigurationError as error:
        return Outcome(Verdict.RETRY, error.reason)
    # Whatever a plugin stumbles over: the error's text may quote the address, so only its kind is told.
    except Exception as error:  # noqa: BLE001
        return Outcome(Verdict.RETRY, f"{shown(url)}: failed inside: {type(error).__name__}")
    if result:
        return DELIVERED
    told = (_STATUS.search(entry.message) for entry in result.logs())
    status = next((found[1] for found in told if found), "")
    return Outcome(Verdict.RETRY, f"{shown(url)}: " + (f"HTTP {status}" if status else "not taken"))


def _notifier(url: str) -> apprise.Apprise:
    """Speaks to one address; made anew every time, because one that is kept sleeps between its messages."""
    try:
        import apprise
    except ImportError:
        raise ConfigurationError(
            "Apprise is not installed", remedy="pip install 'docferry[apprise]'", setting="apprise"
        ) from None
    # Every way to Apprise leads through here. Its own handler takes what it says, and drops it.
    logging.getLogger("apprise").propagate = False
    # Nothing is kept on the disk, and no icons are fetched from elsewhere.
    asset = apprise.AppriseAsset(
        app_id="Docferry", app_desc="Docferry", app_url="", image_url_mask="", async_mode=False, storage_mode="memory"
    )
    # One address, one service: `add` would take a list apart, and one that fails would repeat the others.
    service = apprise.Apprise.instantiate(url, asset=asset)
    if service is None:
        raise ConfigurationError(
            f"Apprise does not take the {shown(url)} address",
            remedy="write it as https://appriseit.com/services/ has it",
            setting="apprise",
        )
    notifier = apprise.Apprise(asset=asset)
    notifier.add(service)
    return notifier
