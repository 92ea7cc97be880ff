"""What the reader leaves out when the device is hot or short of memory: each step on top of those before it.

    SMALLER_DETECTION   lines are looked for on half the pixels; small print may be missed
    FEWER_THREADS       half the threads: less heat, fewer buffers, slower
    STRUCTURE_ONLY      blocks and lines are found and nothing is read: the page goes up to be read there

Every step taken stands in the reading and, with its cause, among the route's reasons.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from docferry.document import Degradation
from docferry.route import Reason

_log = logging.getLogger(__name__)

_WORDS = {
    Degradation.SMALLER_DETECTION: "lines were looked for on fewer pixels",
    Degradation.FEWER_THREADS: "fewer pixels and fewer threads",
    Degradation.STRUCTURE_ONLY: "nothing was read here",
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the device is doing; None where it does not say.

    Attributes:
        temperature: Of the processor, degrees Celsius.
        throttled: The firmware is slowing the processor down, for heat or for want of power.
        available_mb: Memory that could be had without swapping, MiB.
        memory_stall: Share of the last ten seconds that something waited for memory (PSI "some avg10"), 0..1.
    """

    temperature: float | None = None
    throttled: bool = False
    available_mb: float | None = None
    memory_stall: float | None = None


@dataclass(frozen=True, slots=True)
class FrugalSettings:
    """From where on the reader is cut back: one bound for each step.

    Attributes:
        hot: Degrees Celsius at or above which a step is taken. A Pi 4 or 5 slows itself down from 80 on.
        low: MiB of available memory below which it is.
        stalled: Memory stall at or above which it is.
        cooler, more, calmer: A step taken is given up only this far on the good side of its bound: degrees, and
            factors on memory and stall. Without them a device at a bound would change its mind at every page.
    """

    hot: tuple[float, float, float] = (76.0, 80.0, 84.0)
    low: tuple[float, float, float] = (200.0, 120.0, 60.0)
    stalled: tuple[float, float, float] = (0.10, 0.25, 0.50)
    cooler: float = 3.0
    more: float = 1.25
    calmer: float = 0.5

    @classmethod
    def of(cls, hot_c: float, low_mb: float) -> FrugalSettings:
        """The bounds of the first step; the others follow four degrees apart, and at 0.6 and 0.3 of the memory."""
        return cls(hot=(hot_c, hot_c + 4, hot_c + 8), low=(low_mb, 0.6 * low_mb, 0.3 * low_mb))


@dataclass(frozen=True, slots=True)
class Strain:
    """A step that is in force and why: plain words and, where there is one, the number behind them."""

    degradation: Degradation = Degradation.NONE
    cause: str = ""
    value: float | None = None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """For the route: none, or one with a code of its own for each step."""
        if self.degradation is Degradation.NONE:
            return ()
        detail = f"{_WORDS[self.degradation]}: {self.cause}"
        return (Reason(f"DEGRADED_{self.degradation.name}", detail, self.value),)


def step(conditions: Conditions, settings: FrugalSettings, current: Degradation) -> Degradation:
    """The step that is right now, given the one that was in force: up at once, down only with room to spare."""
    wanted = max(level for level, _, _ in _levels(conditions, settings))
    if wanted >= current:
        return wanted
    eased = FrugalSettings(
        hot=_scaled(settings.hot, lambda bound: bound - settings.cooler),
        low=_scaled(settings.low, lambda bound: bound * settings.more),
        stalled=_scaled(settings.stalled, lambda bound: bound * settings.calmer),
    )
    return min(current, max(level for level, _, _ in _levels(conditions, eased)))


def strain(conditions: Conditions, settings: FrugalSettings, current: Degradation) -> Strain:
    """The step that is right now, with its cause: the worst of what was measured."""
    degradation = step(conditions, settings, current)
    if degradation is Degradation.NONE:
        return Strain()
    level, cause, value = max(_levels(conditions, settings), key=lambda found: found[0])
    if level is Degradation.NONE:
        return Strain(degradation, "the device is recovering")
    return Strain(degradation, cause, value)


@dataclass(slots=True)
class Gauge:
    """Remembers which step is in force. `measure` looks at the device; see `docferry_edge.sensors`."""

    measure: Callable[[], Conditions]
    settings: FrugalSettings = field(default_factory=FrugalSettings)
    _current: Degradation = Degradation.NONE

    def look(self) -> Strain:
        """Measure, and say what is to be left out; a change is logged."""
        found = strain(self.measure(), self.settings, self._current)
        if found.degradation is not self._current:
            _log.warning("reading: %s", found.reasons[0].detail if found.reasons else "with everything again")
        self._current = found.degradation
        return found


def _levels(conditions: Conditions, settings: FrugalSettings) -> list[tuple[Degradation, str, float | None]]:
    """What each measure asks for by itself, with words and number; at least one."""
    found: list[tuple[Degradation, str, float | None]] = [(Degradation.NONE, "", None)]
    if (celsius := conditions.temperature) is not None:
        found.append((_passed(celsius, settings.hot), f"the device has {celsius:.0f} °C", celsius))
    if conditions.throttled:
        found.append((Degradation.FEWER_THREADS, "the device slows itself down", None))
    if (free := conditions.available_mb) is not None:
        lacking = _passed(-free, _scaled(settings.low, lambda bound: -bound), beyond=True)
        found.append((lacking, f"{free:.0f} MB of memory are left", free))
    if (stall := conditions.memory_stall) is not None:
        found.append((_passed(stall, settings.stalled), f"memory is waited for {stall:.0%} of the time", stall))
    return found


def _passed(value: float, bounds: tuple[float, float, float], *, beyond: bool = False) -> Degradation:
    """How many of the rising bounds are reached, or with `beyond` passed."""
    return Degradation(sum(value > bound if beyond else value >= bound for bound in bounds))


def _scaled(bounds: tuple[float, float, float], change: Callable[[float], float]) -> tuple[float, float, float]:
    first, second, third = map(change, bounds)
    return first, second, third
