"""What the outbox knows of one document."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass
from pathlib import Path


class State(enum.StrEnum):
    """Where a document stands on this device."""

    CAPTURED = "captured"
    PACKED = "packed"
    SUBMITTED = "submitted"
    DELIVERED = "delivered"
    SETTLED = "settled"
    FAILED = "failed"
    QUARANTINED = "quarantined"


FINAL = frozenset({State.SETTLED, State.FAILED, State.QUARANTINED})
"""States that nothing but a person's retry leaves."""
UNSENT = (State.PACKED, State.SUBMITTED)
_HANDED_IN = ("kiosk|", "camera|")


@dataclass(frozen=True, slots=True)
class Entry:
    """One document's row.

    Attributes:
        source: Identity of the captured file, so that it is not captured twice.
        captured_at: Unix time by the device's own clock, which may be wrong.
        captured_clock: The same by the clock that counts since boot, with the boot's id; see `elapsed_ms`.
        read_attempts: How often its reading has begun.
        refusals: How often the cloud has failed on it, while taking others.
        timings: Milliseconds since capture by step.
        error: `{code, reason, remedy}`, or empty.
        told: The last state that was reported to whoever listens.
    """

    document_id: str
    request_id: str
    source: str
    file_name: str
    original_bytes: int
    captured_at: float
    captured_clock: str
    state: State
    read_attempts: int
    refusals: int
    analysis_id: str
    timings: dict[str, float]
    error: dict[str, str]
    told: str

    @property
    def handed_in(self) -> bool:
        """Whether it was handed in at the kiosk itself: only that is whoever's stands there."""
        return self.source.startswith(_HANDED_IN)


@dataclass(frozen=True, slots=True)
class OutboxPart:
    """A part announced in the request, to be sent by Supply."""

    part_id: str
    data: bytes


def elapsed_ms(entry: Entry) -> float | None:
    """Milliseconds since capture by the clock since boot, whatever the wall clock did; None after a reboot."""
    boot, _, seconds = entry.captured_clock.partition("|")
    now_boot, _, now = clock().partition("|")
    return (float(now) - float(seconds)) * 1000 if boot == now_boot else None


def clock() -> str:
    """The clock that counts since boot, with the boot's id: `elapsed_ms` compares two of them."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}|{time.clock_gettime(time.CLOCK_BOOTTIME):.6f}"
