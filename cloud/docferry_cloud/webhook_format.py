"""The Standard Webhooks scheme: body, signature, retry schedule.

Source: standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from docferry_cloud.sinks import keys

RETRY_SECONDS: tuple[float, ...] = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
"""Waits after the first, second, ... failed attempt: ten attempts over about 75 hours."""

_MAX_WAIT_S = 86400.0


def payload(
    *, kind: str, create_time: int, analysis_id: str, document_id: str, state: str, version: int, sequence: int
) -> bytes:
    """What a delivery row keeps of its event: ids and states, never content. `sinks.message` reads it back."""
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


def headers(secrets: tuple[str, ...], message_id: str, attempt_time: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt: id (stable over retries), time of the attempt in seconds, signatures.

    Every key signs `id.timestamp.body`: while keys are exchanged, the old one signs beside the new.

    Raises:
        ConfigurationError: A key is malformed.
    """
    signed = b".".join((message_id.encode(), str(attempt_time).encode(), body))
    return {
        "content-type": "application/json",
        "user-agent": "docferry",
        "webhook-id": message_id,
        "webhook-timestamp": str(attempt_time),
        "webhook-signature": " ".join(keys.signature(secret, signed) for secret in secrets),
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
