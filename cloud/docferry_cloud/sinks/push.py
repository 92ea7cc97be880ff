"""Puts the adapters and the loop together."""

from __future__ import annotations

from collections.abc import Mapping

from docferry.errors import ConfigurationError
from docferry_cloud.database import Database
from docferry_cloud.deliveries import Deliveries
from docferry_cloud.schema import SinkKind
from docferry_cloud.settings import CloudSettings
from docferry_cloud.sinks import guard
from docferry_cloud.sinks.apprise import AppriseSink, apprise_threads, check_address
from docferry_cloud.sinks.loop import DeliveryLoop
from docferry_cloud.sinks.observed import Observed
from docferry_cloud.sinks.port import Sink
from docferry_cloud.sinks.vapid import Vapid, open_vapid
from docferry_cloud.sinks.web_push import WebPushSink
from docferry_cloud.sinks.webhook import WebhookSink
from docferry_cloud.watch import EventFeed


class Push:
    """Everything of one front end that delivers."""

    def __init__(
        self,
        database: Database,
        deliveries: Deliveries,
        feed: EventFeed,
        settings: CloudSettings,
        schedule: tuple[float, ...],
        observed: Observed,
    ) -> None:
        self._database = database
        self._deliveries = deliveries
        self._feed = feed
        self._settings = settings
        self._schedule = schedule
        self._observed = observed
        self._vapid: Vapid | None = None
        self._names = guard.name_threads()
        self._apprise = apprise_threads()

    async def open(self) -> None:
        """Have the key of Web Push at hand, and Apprise if it is asked for.

        Raises:
            ConfigurationError: The key's file cannot be used, or Apprise does not take an address or is not installed.
        """
        for index, address in enumerate(self._settings.apprise):
            await self._apprise.run(check_address, f"apprise[{index}]", address.url)
        self._vapid = await self._database.run(
            open_vapid, self._database, self._settings.vapid_key, self._settings.push_contact
        )

    def vapid(self) -> Vapid:
        """The key of Web Push.

        Raises:
            ConfigurationError: Web Push is not set up.
        """
        if self._vapid is None or not self._vapid.contact:
            raise ConfigurationError(
                "Web Push is not set up: push services want an address to write to",
                remedy="set web_push.contact",
                setting="web_push.contact",
            )
        return self._vapid

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with guard.client() as client:
            poster = guard.Poster(client, allow_private=self._settings.allow_private, names=self._names)
            await DeliveryLoop(
                database=self._database,
                deliveries=self._deliveries,
                feed=self._feed,
                sinks=self._sinks(poster),
                observed=self._observed,
                public_url=self._settings.public_url,
                schedule=self._schedule,
            ).run()

    def close(self) -> None:
        """End the threads that look names up and those of Apprise; one that hangs ends with what it waits for."""
        self._apprise.abandon()
        self._names.abandon()

    def _sinks(self, poster: guard.Poster) -> Mapping[SinkKind, Sink]:
        sinks: dict[SinkKind, Sink] = {
            SinkKind.WEBHOOK: WebhookSink(poster),
            SinkKind.APPRISE: AppriseSink(self._apprise),
        }
        if self._vapid is not None:
            sinks[SinkKind.WEB_PUSH] = WebPushSink(poster, self._vapid, ttl_s=self._settings.push_ttl_s)
        return sinks
