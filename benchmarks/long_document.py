"""A long scanned PDF through the whole service: is memory flat, is progress told, does a cancel stop the work?

    python -m benchmarks.long_document [--pages 200] [--cancel-after 3] [--json FILE]

The pages are generated journal pages, drawn, made grey and noisy, compressed as JPEG and put into one PDF without any
text. The file goes in chunks to a `docferry cloud serve` of its own, as anybody's would. Keys: pages, pages_per_s,
rss_start_mb, rss_first_half_mb, rss_second_half_mb and rss_peak_mb (service and the processes under it, added up),
events (of progress), steps (pages between two of them, at most), page_s (mean), cancel_s (until all work ends).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from reportlab.lib import pagesizes
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from benchmarks.generator.make import draw
from benchmarks.generator.truth import Kind, Split
from docferry.async_client import AsyncClient
from docferry.v1 import analysis_pb2, event_pb2

_SAMPLE_S = 1.0
_PAGE_S = 120.0
"""A page may take this long on a busy machine before the benchmark gives up."""
_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE_S = 1.0
_IDLE_SHARE = 0.1


@dataclass(slots=True)
class Watched:
    """What was seen while a document was worked on: `memory` as (seconds, MiB), `told` as (seconds, pages)."""

    memory: list[tuple[float, float]] = field(default_factory=list)
    told: list[tuple[float, int]] = field(default_factory=list)
    ended: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--cancel-after", type=int, default=3, help="pages read before the second run's cancel")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="docferry-bench-") as folder:
        file = Path(folder) / "scan.pdf"
        file.write_bytes(scanned_pdf(options.pages))
        print(f"{options.pages} pages, {file.stat().st_size >> 20} MiB")
        report = asyncio.run(measure(Path(folder), file, options.pages, options.cancel_after))
    show(report)
    line = json.dumps(report)
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def scanned_pdf(pages: int) -> bytes:
    """A PDF of pictures of pages, no two alike."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=pagesizes.A4)
    for number in range(pages):
        grey = cv2.cvtColor(draw(Kind.PAGE, 7000 + number, Split.JUDGE).pixels, cv2.COLOR_BGR2GRAY)
        noise = np.random.default_rng(number).normal(0, 2, grey.shape)
        dull = np.clip(grey * 0.9 + 12 + noise, 0, 255).astype(np.uint8)
        # Pressed hard enough for 200 pages to stay below the 64 MiB that a file may have.
        _, encoded = cv2.imencode(".jpg", dull, [cv2.IMWRITE_JPEG_QUALITY, 45])
        canvas.drawImage(ImageReader(io.BytesIO(encoded.tobytes())), 0, 0, *pagesizes.A4)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


async def measure(folder: Path, file: Path, pages: int, cancel_after: int) -> dict[str, Any]:
    """Have it read to its end, then again up to a cancel."""
    async with _service(folder) as (process, target), AsyncClient.connect(target) as client:
        start = _memory(process)
        began = time.monotonic()
        seen = await _read(client, process, file, pages)
        seconds = seen.ended - began
        half = seen.ended - seconds / 2
        page_s = seconds / pages
        steps = [after - before for (_, before), (_, after) in zip(seen.told, seen.told[1:], strict=False)]
        # Other content, or it would be answered from what was read before.
        await asyncio.to_thread(_append, file, b"\n% again\n")
        cancel_s = await _cancel(client, process, file, cancel_after)
        return {
            "pages": pages,
            "pages_per_s": round(pages / seconds, 3),
            "rss_start_mb": round(start),
            "rss_first_half_mb": round(max(mb for at, mb in seen.memory if at <= half)),
            "rss_second_half_mb": round(max(mb for at, mb in seen.memory if at > half)),
            "rss_peak_mb": round(max(mb for _, mb in seen.memory)),
            "events": len(seen.told),
            "steps": max(steps, default=0),
            "page_s": round(page_s, 2),
            "cancel_s": round(cancel_s, 2),
        }


def show(report: dict[str, Any]) -> None:
    """The same for people."""
    print(f"  {report['pages_per_s']} pages a second, {report['page_s']} s a page")
    print(
        f"  memory {report['rss_start_mb']} MiB before, {report['rss_first_half_mb']} MiB at most in the first half, "
        f"{report['rss_second_half_mb']} in the second, peak {report['rss_peak_mb']}"
    )
    print(f"  {report['events']} events of progress, {report['steps']} pages apart at most")
    print(f"  a cancel stopped all work after {report['cancel_s']} s")


async def _read(client: AsyncClient, process: int, file: Path, pages: int) -> Watched:
    seen = Watched()
    sampling = asyncio.create_task(_sample(process, seen))
    try:
        analysis = await client.submit_file(file)
        async with asyncio.timeout(_PAGE_S * pages):
            async for event in client.watch(analysis_id=analysis.analysis_id, progress=True):
                if event.type == event_pb2.Event.TYPE_PROGRESS:
                    seen.told.append((time.monotonic(), event.progress.pages_done))
                    print(f"    {event.progress.pages_done:>4} pages, {_memory(process):.0f} MiB", flush=True)
                elif event.state == analysis_pb2.Analysis.STATE_SUCCEEDED:
                    break
                elif event.state == analysis_pb2.Analysis.STATE_FAILED:
                    found = await client.get(analysis.analysis_id)
                    raise SystemExit(f"the document failed: {found.error.message}")
    finally:
        sampling.cancel()
    seen.ended = time.monotonic()
    read = await client.get(analysis.analysis_id)
    assert len(read.versions[-1].interpretation.document.pages) == pages
    return seen


async def _cancel(client: AsyncClient, process: int, file: Path, after: int) -> float:
    """Seconds from a cancel, once some pages are read, until the service works no more."""
    analysis = await client.submit_file(file)
    events = client.watch(analysis_id=analysis.analysis_id, progress=True)
    async for event in events:
        if event.type == event_pb2.Event.TYPE_PROGRESS and event.progress.pages_done >= after:
            break
    began = time.monotonic()
    await client.cancel(analysis.analysis_id)
    last_busy, cpu, looked = began, _cpu_s(process), time.monotonic()
    while time.monotonic() - last_busy < 2 * _IDLE_S:
        await asyncio.sleep(_IDLE_S / 4)
        now, used = time.monotonic(), _cpu_s(process)
        if used - cpu > _IDLE_SHARE * (now - looked):
            last_busy = now
        cpu, looked = used, now
    return last_busy - began


def _append(file: Path, more: bytes) -> None:
    file.write_bytes(file.read_bytes() + more)


async def _sample(process: int, seen: Watched) -> None:
    while True:
        seen.memory.append((time.monotonic(), _memory(process)))
        await asyncio.sleep(_SAMPLE_S)


@contextlib.asynccontextmanager
async def _service(folder: Path) -> AsyncIterator[tuple[int, str]]:
    """A service of its own; gives its process id and address."""
    config = folder / "cloud.toml"
    config.write_text(f'[listen]\nport = 0\n[data]\ndirectory = "{folder / "cloud"}"\n', encoding="utf-8")
    command = ("-m", "docferry.cli", "cloud", "serve", "--config", str(config), "--json")
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        target = json.loads(await process.stdout.readline())["address"]
        assert json.loads(await process.stdout.readline())["status"] == "ready"
        yield process.pid, target
    finally:
        process.terminate()
        await process.wait()


def _family(process: int) -> list[int]:
    """A process and those under it."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _memory(process: int) -> float:
    """MiB that a process and those under it have in memory."""
    kilobytes = 0
    for one in _family(process):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{one}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    kilobytes += int(line.split()[1])
    return kilobytes / 1024


def _cpu_s(process: int) -> float:
    """Processor time of a process and those under it, in seconds."""
    ticks = 0
    for one in _family(process):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS


if __name__ == "__main__":
    main()
