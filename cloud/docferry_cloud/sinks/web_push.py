"""Web Push: RFC 8030 (protocol), 8291 (encryption, aes128gcm), 8292 (VAPID). Encrypted by pywebpush, posted by us."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from docferry.errors import InputError
from docferry_cloud.sinks.guard import Answer, Poster
from docferry_cloud.sinks.message import Message
from docferry_cloud.sinks.port import DELIVERED, Delivery, Outcome, Verdict
from docferry_cloud.sinks.vapid import Vapid, b64url

_P256DH_BYTES = 65
_AUTH_BYTES = 16


@dataclass(frozen=True, slots=True)
class PushKeys:
    """A browser's keys, from `PushSubscription.toJSON().keys`; base64url without padding."""

    p256dh: str
    auth: str

    @property
    def stored(self) -> str:
        """Both in one text."""
        return f"{self.p256dh}.{self.auth}"


def push_keys(p256dh: str, auth: str) -> PushKeys:
    """A browser's keys, checked.

    Raises:
        InputError: One of them is no such key.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    point, secret = _bytes(p256dh), _bytes(auth)
    malformed = InputError(
        "the browser's push keys are malformed",
        remedy="give `p256dh` (65 bytes) and `auth` (16 bytes) as PushSubscription.toJSON() has them",
        field="push_keys",
    )
    if len(point) != _P256DH_BYTES or len(secret) != _AUTH_BYTES:
        raise malformed
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        raise malformed from None
    return PushKeys(b64url(point), b64url(secret))


class WebPushSink:
    """Posts to push services.

    Args:
        ttl_s: How long a push service keeps a message for a phone that is off.
    """

    def __init__(self, poster: Poster, vapid: Vapid, *, ttl_s: int) -> None:
        self._poster = poster
        self._vapid = vapid
        self._ttl_s = ttl_s

    async def send(self, delivery: Delivery, message: Message) -> Outcome:
        """Post once, and a thinner message if the first is too large for the push service."""
        answer = await self._post(delivery, message, message.push())
        if answer.status == 413:
            answer = await self._post(delivery, message, message.thinner())
        return outcome(answer)

    async def _post(self, delivery: Delivery, message: Message, content: bytes) -> Answer:
        p256dh, _, auth = delivery.secret.partition(".")
        headers = {
            "content-type": "application/octet-stream",
            "content-encoding": "aes128gcm",
            "ttl": str(self._ttl_s),
            "topic": topic(message.document_id),
            "urgency": "high" if message.happened == "failed" else "normal",
            "authorization": self._vapid.authorization(delivery.url),
            "user-agent": "docferry",
        }
        return await self._poster.post(delivery.url, encrypted(content, PushKeys(p256dh, auth)), headers)


def encrypted(content: bytes, keys: PushKeys) -> bytes:
    """A message for one browser, by aes128gcm with a key of its own."""
    from pywebpush import WebPusher

    info = {"endpoint": "", "keys": {"p256dh": keys.p256dh, "auth": keys.auth}}
    return bytes(WebPusher(info).encode(content)["body"])


def topic(document_id: str) -> str:
    """A newer message of the same topic replaces one that still waits; 32 characters of base64url (RFC 8030, 5.4)."""
    return b64url(hashlib.sha256(document_id.encode()).digest()[:24])


def outcome(answer: Answer) -> Outcome:
    """What a push service's answer means."""
    if answer.received:
        return DELIVERED
    if answer.status in {404, 410}:
        return Outcome(Verdict.GONE, f"the push service answered {answer.status}: the subscription has ended")
    if answer.status in {400, 413}:
        return Outcome(Verdict.REFUSED, answer.failure)
    # 401 and 403 too: a wrong clock of ours makes them, and passes.
    return Outcome(Verdict.RETRY, answer.failure, answer.retry_after)


def _bytes(text: str) -> bytes:
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare.translate({45: 43, 95: 47}) + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
