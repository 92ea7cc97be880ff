"""Diffusion decoding beside greedy autoregression, by one small model that reads lines with either.

`python -m benchmarks.diffusion [--model DIR] [--test] [--limit N] [--json FILE]`; `--data` is accepted and not needed:
crops are drawn, with texts that the model was not trained on. Prints the accuracy (share of crops read exactly) and the
tokens per forward against the threshold, then the Semantic Shuffle test: sentences as they are, and with their words
in another order. Last, one JSON line: `{curve[] {tau, accuracy, tokens_per_forward, ms}, autoregressive {accuracy,
tokens_per_forward, ms}, shuffle {ordered, shuffled, drop}, other_fonts, best}`. Tokens count up to the end mark
and with it; every run of the model counts, whether it reads the prompt, fixes tokens or remembers a block.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.generator.truth import Split
from benchmarks.reader_model.build import BENCHMARK, TEST, reader_model
from benchmarks.reader_model.crops import Text, draw_text
from benchmarks.reader_model.reading import LONGEST_ANSWER, Read, Unseen, drawn, one_by_one, unseen_crops
from benchmarks.reader_model.training import BLOCK
from docferry_cloud.diffusion.qwen2vl import Qwen2VLReader
from docferry_cloud.diffusion.reader import options_for, read

THRESHOLDS = (1.0, 0.99, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.0)
"""From one token a forward to a whole block."""

LOSS = 0.01
"""The accuracy that speed may cost, against autoregression."""

_BATCH = 50


@dataclass(frozen=True, slots=True)
class Point:
    """One way of decoding: share of crops read exactly, tokens per run of the model, milliseconds a crop."""

    accuracy: float
    tokens_per_forward: float
    ms: float


def measured(crops: Sequence[Unseen], decode: Callable[[Sequence[Unseen]], list[Read]]) -> Point:
    """Read all crops and compare."""
    start = time.perf_counter()
    answers = decode(crops)
    ms = (time.perf_counter() - start) * 1000 / len(crops)
    right = sum(answer.text == crop.text for answer, crop in zip(answers, crops, strict=True))
    tokens, forwards = sum(answer.tokens for answer in answers), sum(answer.forwards for answer in answers)
    return Point(round(right / len(crops), 4), round(tokens / forwards, 3), round(ms, 2))


def by_diffusion(reader: Qwen2VLReader, threshold: float) -> Callable[[Sequence[Unseen]], list[Read]]:
    """Block-wise, at one threshold."""
    options = options_for(reader, threshold=threshold, longest=LONGEST_ANSWER)

    def decode(crops: Sequence[Unseen]) -> list[Read]:
        found: list[Read] = []
        for start in range(0, len(crops), _BATCH):
            for answer in read(reader, [crop.image for crop in crops[start : start + _BATCH]], options):
                taken = len(answer.decoded.tokens) + (answer.decoded.stop_step is not None)
                found.append(Read(answer.text, taken, answer.decoded.forwards))
        return found

    return decode


def by_autoregression(reader: Qwen2VLReader) -> Callable[[Sequence[Unseen]], list[Read]]:
    """One token after another."""
    return lambda crops: one_by_one(reader, [crop.image for crop in crops], _BATCH)


def shuffled(text: str, rng: random.Random) -> str:
    """The words in another order."""
    words = text.split(" ")
    while True:
        other = rng.sample(words, len(words))
        if other != words:
            return " ".join(other)


def shuffle_test(reader: Qwen2VLReader, count: int, threshold: float) -> dict[str, dict[str, float]]:
    """Accuracy of both decoders on sentences, and on the same words shuffled."""
    rng = random.Random("shuffle")
    ordered = [draw_text(rng, unseen=True, kinds=(Text.SENTENCE,)) for _ in range(count)]
    # One seed: fonts, sizes and wear are the same for a sentence and for its shuffled twin.
    pictures = {
        "ordered": drawn(ordered, 5),
        "shuffled": drawn([shuffled(text, rng) for text in ordered], 5),
    }
    decoders = {"autoregressive": by_autoregression(reader), "diffusion": by_diffusion(reader, threshold)}
    table = {
        order: {name: measured(crops, decode).accuracy for name, decode in decoders.items()}
        for order, crops in pictures.items()
    }
    table["drop"] = {name: round(table["ordered"][name] - table["shuffled"][name], 4) for name in decoders}
    return table | {"threshold": {"diffusion": threshold}}


def main() -> None:
    """Print the tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="not needed: crops are drawn")
    parser.add_argument("--model", type=Path, help="a directory, instead of training one or finding it in the cache")
    parser.add_argument("--cache", type=Path, help="where models are kept")
    parser.add_argument("--test", action="store_true", help="the model of four minutes: amounts, short dates and times")
    parser.add_argument("--limit", type=int, default=500, help="crops")
    parser.add_argument("--json", type=Path, help="also write the JSON line here")
    arguments = parser.parse_args()
    plan = TEST if arguments.test else BENCHMARK
    reader = Qwen2VLReader.load(arguments.model or reader_model(plan, arguments.cache), block_length=BLOCK)
    torch.set_num_threads(1)
    crops = unseen_crops(plan, arguments.limit)
    one = measured(crops, by_autoregression(reader))
    print(f"{len(crops)} unseen crops, blocks of {BLOCK}\n")
    print(f"{'':14} {'accuracy':>9} {'tokens/forward':>15} {'ms':>7}")
    print(f"{'one by one':14} {one.accuracy:9.3f} {one.tokens_per_forward:15.2f} {one.ms:7.1f}")
    curve = {}
    for tau in THRESHOLDS:
        curve[tau] = point = measured(crops, by_diffusion(reader, tau))
        print(f"{f'tau {tau:g}':14} {point.accuracy:9.3f} {point.tokens_per_forward:15.2f} {point.ms:7.1f}")
    good = [tau for tau in THRESHOLDS if curve[tau].accuracy >= one.accuracy - LOSS]
    best = max(good, key=lambda tau: curve[tau].tokens_per_forward) if good else THRESHOLDS[0]
    result = {
        "curve": [{"tau": tau, **asdict(point)} for tau, point in curve.items()],
        "autoregressive": asdict(one),
        "best": {"tau": best, **asdict(curve[best])} if good else None,
        "crops": len(crops),
    }
    others = unseen_crops(plan, arguments.limit, split=Split.JUDGE)
    result["other_fonts"] = {
        "autoregressive": measured(others, by_autoregression(reader)).accuracy,
        "diffusion": measured(others, by_diffusion(reader, best)).accuracy,
    }
    print(f"\nfonts it has never seen: {result['other_fonts']}")
    if Text.SENTENCE in plan.kinds:
        result["shuffle"] = table = shuffle_test(reader, arguments.limit, best)
        print(f"\nsentences, tau {best:g}  {'one by one':>12} {'diffusion':>12}")
        for row in ("ordered", "shuffled", "drop"):
            print(f"{row:18} {table[row]['autoregressive']:12.3f} {table[row]['diffusion']:12.3f}")
    line = json.dumps(result)
    print(line)
    if arguments.json:
        arguments.json.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
