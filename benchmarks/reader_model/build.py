"""Builds the model once and finds it again: its folder is named by the hash of everything that made it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.generator.fonts import fingerprints
from benchmarks.generator.truth import Split
from benchmarks.reader_model.crops import Text
from benchmarks.reader_model.model import Shape, save
from benchmarks.reader_model.training import Plan, Progress, Training
from docferry.settings import user_cache

BENCHMARK = Plan(steps=2000)
"""Reads amounts, dates, words and small sentences; meant for 30 minutes, 1.4 s a batch seen on a crowded machine."""

TEST = Plan(
    steps=600, kinds=(Text.AMOUNT, Text.DATE), longest=8, batch=96, shape=Shape(hidden=128, layers=3, feed=256, seen=96)
)
"""Reads amounts, short dates and times; meant for 4 minutes of a quiet core, 0.56 s a batch seen on a crowded one."""

_HERE = Path(__file__).parent
_GENERATOR = _HERE.parent / "generator"
_MAKERS = (
    *(_HERE / name for name in ("crops.py", "model.py", "muon.py", "training.py")),
    *(_GENERATOR / name for name in ("fonts.py", "ink.py", "light.py", "words.py", "wordlists/train.toml")),
)


def digest(plan: Plan) -> str:
    """What the weights depend on: the plan, the code that draws and trains, the words and the fonts."""
    found = hashlib.sha256(repr(plan).encode())
    for path in _MAKERS:
        found.update(path.read_bytes())
    found.update(repr(sorted(fingerprints(Split.TRAIN).items())).encode())
    return found.hexdigest()[:16]


def default_cache() -> Path:
    """Where models are kept from run to run; `DOCFERRY_CACHE` moves it."""
    return user_cache() / "reader-model"


def reader_model(plan: Plan, cache: Path | None = None, report: Callable[[Progress], None] | None = None) -> Path:
    """The directory of the trained model; trains it if it is not there yet, from where it was left off.

    Args:
        plan: What to train.
        cache: Where models are kept; `default_cache()` if None.
        report: Called now and then.
    """
    cache = default_cache() if cache is None else cache
    folder = cache / digest(plan)
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    training, checkpoint = Training(plan), folder.with_suffix(".pt")
    if checkpoint.exists():
        training.resume(checkpoint)

    def told(progress: Progress) -> None:
        training.save(checkpoint)
        if report is not None:
            report(progress)

    training.run(report=told)
    # A name of its own until it is whole: two processes may build the same one.
    new = folder.with_suffix(f".{os.getpid()}")
    save(training.model, training.tokenizer, new)
    try:
        new.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    checkpoint.unlink(missing_ok=True)
    return folder
