"""Webhooks: the whole message, signed by the Standard Webhooks scheme."""

from __future__ import annotations

import time

from docferry.errors import ConfigurationError
from docferry_cloud import webhook_format
from docferry_cloud.sinks.guard import Answer, Poster
from docferry_cloud.sinks.message import Message
from docferry_cloud.sinks.port import DELIVERED, Delivery, Outcome, Verdict


class WebhookSink:
    """Posts to receivers."""

    def __init__(self, poster: Poster) -> None:
        self._poster = poster

    async def send(self, delivery: Delivery, message: Message) -> Outcome:
        """Post once. 2xx is received, 410 is gone, everything else may be better later."""
        body = message.webhook()
        secrets = tuple(key for key in (delivery.secret, delivery.old_secret) if key)
        try:
            headers = webhook_format.headers(secrets, delivery.event_id, int(time.time()), body)
        except ConfigurationError as error:
            return Outcome(Verdict.REFUSED, error.reason)
        if message.traceparent:
            headers = {**headers, "traceparent": message.traceparent}
        return outcome(await self._poster.post(delivery.url, body, headers))


def outcome(answer: Answer) -> Outcome:
    """What a receiver's answer means."""
    if answer.received:
        return DELIVERED
    if answer.status == 410:
        return Outcome(Verdict.GONE, "the receiver answered 410 Gone")
    return Outcome(Verdict.RETRY, answer.failure, answer.retry_after)
