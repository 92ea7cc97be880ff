"""The Standard Webhooks scheme: body, signature, retry schedule.

Source: standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from docferry_cloud.settings import secret_key

RETRY_SECONDS: tuple[float, ...] = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
"""Waits after the first, second, ... failed attempt: ten attempts over about 75 hours."""

_MAX_WAIT_S = 86400.0


def payload(
    *, kind: str, create_time: int, analysis_id: str, document_id: str, state: str, version: int, sequence: int
) -> bytes:
    """The thin body of one event: ids and states that lead to the stored truth, never content."""
    body = {
        "type": f"analysis.{kind.lower()}",
        "timestamp": timestamp(create_time),
        "data": {
            "analysis_id": analysis_id,
            "document_id": document_id,
            "state": state,
            "version": version,
            "sequence": sequence,
        },
    }
    return json.dumps(body, separators=(",", ":")).encode()


def headers(secret: str, message_id: str, attempt_time: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt: id (stable over retries), time of the attempt in seconds, signature.

    The signature is HMAC-SHA256 over `id.timestamp.body`.

    Raises:
        ConfigurationError: The secret is malformed.
    """
    signed = b".".join((message_id.encode(), str(attempt_time).encode(), body))
    digest = hmac.new(secret_key(secret), signed, hashlib.sha256).digest()
    return {
        "content-type": "application/json",
        "user-agent": "docferry",
        "webhook-id": message_id,
        "webhook-timestamp": str(attempt_time),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def next_wait(attempts: int, schedule: tuple[float, ...], asked: float, luck: float) -> float | None:
    """Seconds until the next attempt, or None when the schedule is used up.

    Args:
        attempts: Attempts made, at least 1.
        asked: What the receiver's Retry-After asks for, in seconds; 0 if it asks for nothing.
        luck: 0..1, spreads the wait by up to a tenth so that receivers are not met by a herd.
    """
    if attempts > len(schedule):
        return None
    wait = schedule[attempts - 1] * (1.0 + 0.1 * luck)
    return min(_MAX_WAIT_S * 1.1, max(wait, asked))


def retry_after(header: str | None, now: datetime) -> float:
    """Seconds in a Retry-After header (RFC 9110, 10.2.3: seconds or a date), at most a day; 0 for none or nonsense."""
    if not header:
        return 0.0
    if header.strip().isdecimal():
        seconds = float(header)
    else:
        try:
            seconds = (parsedate_to_datetime(header) - now).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return min(_MAX_WAIT_S, max(0.0, seconds))


def timestamp(microseconds: int) -> str:
    """RFC 3339 in UTC."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
