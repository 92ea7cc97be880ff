"""Does the agent stay as it was, page after page? Memory, handles and threads of the agent and of its reader.

`python -m benchmarks.soak [--pages 5000] [--data DIR] [--plot FILE.png] [--json FILE]` runs the real agent on
generated pages, and on those below DIR, against a cloud that answers at once. Between batches, with nothing in work,
it looks at both processes. Prints a table and, last, one JSON line: `{pages, failed, minutes, exchanged, ceiling_mb,
agent | reader: {rss_mb, peak_mb, growth_fit, growth_quarters, handles, handles_growth, threads, threads_growth}}`.
Growth counts after the warm-up: of a straight line through the samples over their span, and of the mean of the last
quarter over the first.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, linear_regression, median
from typing import Any

from benchmarks.soak_cloud import serving
from benchmarks.soak_pages import generated, given, varied
from docferry.errors import DocferryError, Unavailable
from docferry.settings import load
from docferry_edge.settings import SETTINGS, edge_settings

_BATCH = 20
_DOCUMENT_S = 120.0
"""A page that takes longer than this has hung the agent."""
_REST_S = 1.0


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a process: resident and peak memory in MiB, open handles, threads."""

    pages: int
    pid: int
    rss_mb: float
    peak_mb: float
    handles: int
    threads: int

    @classmethod
    def at(cls, pid: int, pages: int) -> Look:
        """The process as it is now."""
        rows = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        values = {name: value.split() for name, _, value in (row.partition(":") for row in rows)}
        return cls(
            pages,
            pid,
            int(values["VmRSS"][0]) / 1024,
            int(values["VmHWM"][0]) / 1024,
            sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
            int(values["Threads"][0]),
        )


def fitted_growth(places: Sequence[float], values: Sequence[float]) -> float:
    """Growth of a straight line through the values from the first place to the last, as a share of its beginning."""
    slope, start = linear_regression(places, values)
    return slope * (places[-1] - places[0]) / (start + slope * places[0])


def quarters_growth(values: Sequence[float]) -> float:
    """The mean of the last quarter against the first, as a share of the first."""
    quarter = max(1, len(values) // 4)
    return fmean(values[-quarter:]) / fmean(values[:quarter]) - 1


def summary(looks: Sequence[Look]) -> dict[str, float]:
    """What became of one process after the warm-up; growth as shares, handles and threads as numbers."""
    pages = [look.pages for look in looks]
    memory = [look.rss_mb for look in looks]
    return {
        "rss_mb": round(median(memory), 1),
        "peak_mb": round(max(look.peak_mb for look in looks), 1),
        "growth_fit": round(fitted_growth(pages, memory), 4),
        "growth_quarters": round(quarters_growth(memory), 4),
        "handles": looks[-1].handles,
        "handles_growth": looks[-1].handles - looks[0].handles,
        "threads": looks[-1].threads,
        "threads_growth": looks[-1].threads - looks[0].threads,
    }


class Agent:
    """The real agent in a process of its own, fed through its inbox."""

    def __init__(self, process: asyncio.subprocess.Process, inbox: Path, log: Path) -> None:
        self._process = process
        self._inbox = inbox
        self._log = log
        self.failed = 0

    @property
    def pid(self) -> int:
        """The agent's process."""
        return self._process.pid

    def reader(self) -> int:
        """The process of its reader.

        Raises:
            Unavailable: It has none.
        """
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]) == self.pid:
                    return int(stat.parent.name)
        raise Unavailable("the agent has no reader", remedy=f"look into {self._log}")

    def put(self, name: str, data: bytes) -> None:
        """Hand in a file."""
        partial = self._inbox / f".{name}"
        partial.write_bytes(data)
        partial.rename(self._inbox / name)

    async def ended(self, count: int) -> None:
        """Wait until so many documents have their last answer.

        Raises:
            Unavailable: The agent ended, or a document took too long.
        """
        while count:
            tree = await self.said()
            count -= tree["status"] in {"done", "failed"}
            self.failed += tree["status"] == "failed"

    async def said(self) -> dict[str, Any]:
        """The agent's next line."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(_DOCUMENT_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise Unavailable(f"the agent said nothing for {_DOCUMENT_S:g} s", remedy=f"see {self._log}") from None
        if not line:
            end = self._log.read_text(encoding="utf-8", errors="replace")[-600:]
            raise Unavailable(f"the agent ended: {end}", remedy="see above")
        tree: dict[str, Any] = json.loads(line)
        return tree


@contextlib.asynccontextmanager
async def agent(folder: Path, target: str) -> AsyncIterator[Agent]:
    """Start the agent in a folder, with the settings it ships with."""
    inbox, log = folder / "inbox", folder / "edge.log"
    inbox.mkdir()
    config = folder / "edge.toml"
    config.write_text(
        f'[inbox]\ndirectory = "{inbox}"\nsettle_ms = 0\nafter = "remove"\n[state]\ndirectory = "{folder / "edge"}"\n'
        f'[cloud]\ntarget = "{target}"\n',
        encoding="utf-8",
    )
    command = (sys.executable, "-m", "docferry.cli", "edge", "run", "--config", str(config), "--json")
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=errors, limit=64 << 20
        )
    try:
        started = Agent(process, inbox, log)
        await started.said()
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def soak(pages: int, pool: Sequence[bytes | Path], folder: Path) -> tuple[list[Look], list[Look], int]:
    """All looks at the agent and at its reader, and how many documents failed."""
    agents: list[Look] = []
    readers: list[Look] = []
    files = varied(pool, pages)
    async with serving() as (_, target), agent(folder, target) as running:
        done = 0
        while done < pages:
            batch = [next(files) for _ in range(min(_BATCH, pages - done))]
            for name, data in batch:
                running.put(name, data)
            await running.ended(len(batch))
            done += len(batch)
            # The last answer is out, but its pixels may still be on their way back to the kernel.
            await asyncio.sleep(_REST_S)
            agents.append(Look.at(running.pid, done))
            readers.append(Look.at(running.reader(), done))
            print(
                f"\r{done:6} pages  agent {agents[-1].rss_mb:.0f} MB  reader {readers[-1].rss_mb:.0f} MB",
                end="",
                file=sys.stderr,
            )
        return agents, readers, running.failed


def draw(agents: Sequence[Look], readers: Sequence[Look], warm_up: int, file: Path) -> None:
    """Memory over pages."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    for name, looks in (("reader", readers), ("agent", agents)):
        axes.plot([look.pages for look in looks], [look.rss_mb for look in looks], label=f"{name}, at rest")
    axes.plot(
        [look.pages for look in readers], [look.peak_mb for look in readers], ":", label="reader, its peak so far"
    )
    axes.axvspan(0, warm_up, alpha=0.1, label="warm-up")
    axes.set(xlabel="pages", ylabel="resident memory, MiB", ylim=(0, None))
    axes.legend()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--distinct", type=int, default=120, help="generated pages in the pool")
    parser.add_argument("--warm-up", type=int, help="pages that do not count; a fifth, at most 500, if not given")
    parser.add_argument("--data", type=Path, help="also take every picture below this folder")
    parser.add_argument("--plot", type=Path, help="write the curve here, as PNG")
    parser.add_argument("--json", type=Path, help="also write the JSON line here")
    arguments = parser.parse_args()
    warm_up = arguments.warm_up if arguments.warm_up is not None else min(500, arguments.pages // 5)
    if arguments.pages < warm_up + 2 * _BATCH:
        raise SystemExit(f"--pages {arguments.pages}: give at least {warm_up + 2 * _BATCH}, or a shorter --warm-up")
    pool: list[bytes | Path] = [*generated(arguments.distinct), *(given(arguments.data) if arguments.data else ())]
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="docferry-soak-") as folder:
            agents, readers, failed = asyncio.run(soak(arguments.pages, pool, Path(folder)))
    except DocferryError as error:
        raise SystemExit(str(error)) from error
    if arguments.plot:
        draw(agents, readers, warm_up, arguments.plot)
    result: dict[str, Any] = {
        "pages": arguments.pages,
        "failed": failed,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "warm_up": warm_up,
        "exchanged": sum(one.pid != other.pid for one, other in itertools.pairwise(readers)),
        "ceiling_mb": edge_settings(load(SETTINGS, None, {})).limits.memory_mb,
        "agent": summary([look for look in agents if look.pages > warm_up]),
        "reader": summary([look for look in readers if look.pages > warm_up]),
    }
    show(result)
    line = json.dumps(result)
    if arguments.json:
        arguments.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def show(result: dict[str, Any]) -> None:
    """The table."""
    print(f"\n{result['pages']} pages in {result['minutes']} min, {result['failed']} failed")
    print(f"after {result['warm_up']} pages of warm-up; reader exchanged {result['exchanged']} times")
    print(f"{'':8}{'RSS MB':>8}{'peak MB':>9}{'growth':>9}{'last/first':>12}{'handles':>9}{'threads':>9}")
    for name in ("agent", "reader"):
        row = result[name]
        print(
            f"{name:8}{row['rss_mb']:8.1f}{row['peak_mb']:9.1f}{row['growth_fit']:9.2%}{row['growth_quarters']:12.2%}"
            f"{row['handles']:5}{row['handles_growth']:+4}{row['threads']:5}{row['threads_growth']:+4}"
        )


if __name__ == "__main__":
    main()
