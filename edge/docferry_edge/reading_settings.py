"""What the reader's process is told: the part of the agent's settings that reading, routing and packing need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies, policies_of
from docferry_edge.settings import SETTINGS, pictures_of


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """Threads a page may use, what readings are judged by (None: what ships), what leaves the device, and how."""

    threads: int
    calibration: Path | None
    policies: Policies
    pictures: Pictures


def reading_settings(values: Mapping[str, Any]) -> ReadingSettings:
    """The checked settings from `docferry.settings.load`'s values; what is missing has its default."""
    known: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS} | dict(values)
    return ReadingSettings(
        threads=known["read.threads"],
        calibration=Path(known["read.calibration"]).expanduser() if known["read.calibration"] else None,
        policies=policies_of(known),
        pictures=pictures_of(known),
    )
