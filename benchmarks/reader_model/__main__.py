"""Train the small model that reads, or find it: `python -m benchmarks.reader_model [--test] [--cache DIR]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.reader_model.build import BENCHMARK, TEST, reader_model
from benchmarks.reader_model.training import Progress


def main() -> None:
    """Print how training goes and, last, the model's directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test", action="store_true", help="the one of four minutes")
    parser.add_argument("--cache", type=Path, help="where models are kept")
    arguments = parser.parse_args()
    print(reader_model(TEST if arguments.test else BENCHMARK, arguments.cache, _print))


def _print(progress: Progress) -> None:
    print(
        f"step {progress.step:5}   next token {progress.next_token:.3f}   masked {progress.masked:.3f}   "
        f"seen {progress.seen:.3f}   {progress.cpu_s:.0f} s of processor time",
        flush=True,
    )


if __name__ == "__main__":
    main()
