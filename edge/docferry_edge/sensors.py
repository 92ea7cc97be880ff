"""How the device is doing, as Linux and the Raspberry Pi's firmware tell it. What is not there is not measured."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from pathlib import Path

from docferry_edge.frugality import Conditions

_FIRMWARE_S = 10.0
"""The firmware is asked by a program that takes some milliseconds, so not for every document."""

# `vcgencmd get_throttled`, bits 0..3, all of them now: under-voltage, frequency capped, throttled, soft heat limit.
_NOW = 0xF


class LinuxSensors:
    """The kernel's files, and `vcgencmd` where it is installed.

    Only zones that a device tree names (`cpu-thermal`, `soc-thermal`, ...) are looked at: boards such as the Pi have
    them. A PC's processor runs near its own bound for hours, and guards itself.

    Args:
        root: Where the file system begins.
        vcgencmd: The firmware's program; None looks for it on the path.
    """

    def __init__(self, root: Path = Path("/"), vcgencmd: str | None = None) -> None:
        self._root = root
        self._vcgencmd = vcgencmd
        self._asked = float("-inf")
        self._throttled = False

    def __call__(self) -> Conditions:
        """Measure now."""
        return Conditions(self._temperature(), self._slowed(), self._available_mb(), self._stall())

    def _temperature(self) -> float | None:
        found: list[float] = []
        for zone in sorted((self._root / "sys/class/thermal").glob("thermal_zone*")):
            # A zone may vanish, or answer that it has no data now.
            with contextlib.suppress(OSError, ValueError):
                if (zone / "type").read_text(encoding="utf-8").strip().endswith("thermal"):
                    found.append(int((zone / "temp").read_text(encoding="ascii")) / 1000)
        return max(found, default=None)

    def _available_mb(self) -> float | None:
        for row in self._rows("proc/meminfo"):
            if row.startswith("MemAvailable:"):
                return int(row.split()[1]) / 1024
        return None

    def _stall(self) -> float | None:
        for row in self._rows("proc/pressure/memory"):
            if row.startswith("some "):
                return float(row.split()[1].removeprefix("avg10=")) / 100
        return None

    def _rows(self, name: str) -> list[str]:
        try:
            return (self._root / name).read_text(encoding="ascii").splitlines()
        except OSError:
            return []

    def _slowed(self) -> bool:
        now = time.monotonic()
        if now < self._asked + _FIRMWARE_S:
            return self._throttled
        self._asked = now
        program = self._vcgencmd or shutil.which("vcgencmd")
        if program is not None:
            self._throttled = _throttled(program)
        return self._throttled


def _throttled(program: str) -> bool:
    try:
        done = subprocess.run([program, "get_throttled"], capture_output=True, text=True, timeout=2.0, check=True)
        return bool(int(done.stdout.strip().removeprefix("throttled="), 16) & _NOW)
    except (OSError, subprocess.SubprocessError, ValueError):
        # Without access to the firmware there is still the temperature.
        return False
