"""The full model's economics on the small model that reads: answering together, and weights of eight bits.

`python -m benchmarks.full_model [--model DIR] [--cache DIR] [--limit N] [--rounds N] [--json FILE]`; `--data` is
accepted and not needed: crops are drawn, with texts that the model was not trained on. Without `--model` it takes the
model of four minutes.

Batching: 16 crops asked for one after another, and by 16 threads at once, as 16 requests would; the model's own runs
are counted, and the time is the median of some rounds in turn. Eight bits: the same crops with weights as they are
stored and as 8-bit integers, each in a process of its own so that its peak memory can be told.

Prints, last, one JSON line: `{batching {crops, forwards {sequential, concurrent, ratio}, ms {...}, same}, int8 {crops,
accuracy {none, int8, drop}, linear_bytes {..., ratio}, peak_mb {...}, ms {...}}}`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.reader_model.build import TEST, reader_model
from benchmarks.reader_model.reading import LONGEST_ANSWER, Unseen, unseen_crops
from docferry_cloud.vlm.local import LocalModel, Options, linear_bytes
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.prompts import Ask

TOGETHER = 16
"""Crops at once."""


def never() -> bool:
    """Everybody waits for his answer."""
    return False


def question(crop: Unseen) -> Question:
    """A crop as the engine asks about it."""
    pixels = np.ascontiguousarray(np.asarray(crop.image.convert("RGB"))[..., ::-1])
    return Question(Ask.TEXT, pixels, tokens=LONGEST_ANSWER)


def one_after_another(model: LocalModel, crops: Sequence[Unseen]) -> list[str]:
    """Ask about each crop once the one before is answered."""
    return [model.ask([question(crop)], never)[0].text for crop in crops]


def at_once(model: LocalModel, crops: Sequence[Unseen]) -> list[str]:
    """Ask about every crop from a thread of its own."""
    with ThreadPoolExecutor(len(crops)) as pool:
        return list(pool.map(lambda crop: model.ask([question(crop)], never)[0].text, crops))


def batching(model: LocalModel, crops: Sequence[Unseen], rounds: int) -> dict[str, Any]:
    """Runs of the model and milliseconds of both ways."""
    ways: dict[str, Callable[[LocalModel, Sequence[Unseen]], list[str]]] = {
        "sequential": one_after_another,
        "concurrent": at_once,
    }
    forwards: dict[str, list[int]] = {way: [] for way in ways}
    ms: dict[str, list[float]] = {way: [] for way in ways}
    texts: dict[str, list[str]] = {}
    for _ in range(rounds):
        for way, ask in ways.items():
            before, start = model.forwards, time.perf_counter()
            texts[way] = ask(model, crops)
            ms[way].append((time.perf_counter() - start) * 1000)
            forwards[way].append(model.forwards - before)
    return {
        "crops": len(crops),
        "rounds": rounds,
        "forwards": _compared({way: float(max(counts)) for way, counts in forwards.items()}),
        "ms": _compared({way: median(times) for way, times in ms.items()}),
        "same": texts["sequential"] == texts["concurrent"],
    }


def _compared(values: dict[str, float]) -> dict[str, float]:
    one, other = values.values()
    return {name: round(value, 1) for name, value in values.items()} | {"ratio": round(other / one, 4)}


def weights(directory: Path, quantize: str, count: int) -> dict[str, float]:
    """Accuracy, size of the linear layers' weights, peak memory of this process and time, with one kind of weights."""
    model = LocalModel.load(directory, Options(quantize=quantize, batch=TOGETHER, threads=1))
    crops = unseen_crops(TEST, count)
    start = time.perf_counter()
    replies = model.ask([question(crop) for crop in crops], never)
    ms = (time.perf_counter() - start) * 1000 / count
    right = sum(reply.text == crop.text for reply, crop in zip(replies, crops, strict=True))
    return {
        "accuracy": right / count,
        "linear_bytes": linear_bytes(model.network),
        "peak_mb": _peak_mb(),
        "ms": ms,
    }


def _peak_mb() -> float:
    """Of this program alone: `getrusage` hands on what the process had that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def int8(directory: Path, count: int) -> dict[str, Any]:
    """Both kinds of weights, compared."""
    found = {}
    for quantize in ("none", "int8"):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            found[quantize] = pool.submit(weights, directory, quantize, count).result()
    table: dict[str, Any] = {
        name: _compared({quantize: values[name] for quantize, values in found.items()})
        for name in ("linear_bytes", "peak_mb", "ms")
    }
    accuracy = {quantize: round(values["accuracy"], 4) for quantize, values in found.items()}
    table["accuracy"] = accuracy | {"drop": round(accuracy["none"] - accuracy["int8"], 4)}
    return {"crops": count} | table


def main() -> None:
    """Print both tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="not needed: crops are drawn")
    parser.add_argument("--model", type=Path, help="a directory, instead of training one or finding it in the cache")
    parser.add_argument("--cache", type=Path, help="where models are kept")
    parser.add_argument("--limit", type=int, default=500, help="crops for the comparison of weights")
    parser.add_argument("--rounds", type=int, default=5, help="of 16 crops, for the time")
    parser.add_argument("--json", type=Path, help="also write the JSON line here")
    arguments = parser.parse_args()
    directory = arguments.model or reader_model(TEST, arguments.cache)
    model = LocalModel.load(directory, Options(batch=TOGETHER, threads=1))
    result = {"batching": batching(model, unseen_crops(TEST, TOGETHER, seed=2), arguments.rounds)}
    for name in ("forwards", "ms"):
        values = result["batching"][name]
        print(f"{name:12} {values['sequential']:10.1f} {values['concurrent']:10.1f}   x {values['ratio']:.3f}")
    result["int8"] = table = int8(directory, arguments.limit)
    for name in ("accuracy", "linear_bytes", "peak_mb", "ms"):
        print(f"{name:12} {table[name]['none']:12.4g} {table[name]['int8']:12.4g}")
    line = json.dumps(result)
    print(line)
    if arguments.json:
        arguments.json.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
