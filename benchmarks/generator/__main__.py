"""`python -m benchmarks.generator --kind receipt --split judge --count 200 --seed 0 --out DIR`."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import cv2

from benchmarks.generator.fonts import fingerprints
from benchmarks.generator.make import generate
from benchmarks.generator.truth import Kind, Language, Split


def write(kind: Kind, split: Split, language: Language, seeds: range, out: Path, *, quality: int = 95) -> None:
    """Write `images/<id>.jpg`, `gt/<id>.json` and `manifest.json` below `out`, in the evaluation sets' shape."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    (out / "gt").mkdir(exist_ok=True)
    items: list[dict[str, str]] = []
    for seed in seeds:
        sample = generate(kind, seed, split, language=language)
        name = sample.truth.id
        image = f"images/{name}.jpg"
        cv2.imwrite(str(out / image), sample.image, [cv2.IMWRITE_JPEG_QUALITY, quality])
        truth = json.dumps(sample.truth.as_dict(image), ensure_ascii=False)
        (out / "gt" / f"{name}.json").write_text(truth, encoding="utf-8")
        digest = hashlib.sha256((out / image).read_bytes()).hexdigest()
        items.append({"id": name, "file": image, "gt": f"gt/{name}.json", "sha256": digest})
    manifest = {
        "dataset": f"generated_{kind.value}_{language.value}_{split.value}",
        "kind": kind.value,
        "split": split.value,
        "language": language.value,
        "fonts": fingerprints(split),
        "count": len(items),
        "items": items,
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def main() -> None:
    """Write a data set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generator", description=__doc__)
    parser.add_argument("--kind", type=Kind, choices=list(Kind), default=Kind.RECEIPT)
    parser.add_argument("--split", type=Split, choices=list(Split), default=Split.TRAIN)
    parser.add_argument("--language", type=Language, choices=list(Language), default=Language.EN)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path, required=True)
    wanted = parser.parse_args()
    write(wanted.kind, wanted.split, wanted.language, range(wanted.seed, wanted.seed + wanted.count), wanted.out)
    print(f"{wanted.count} documents in {wanted.out}")


if __name__ == "__main__":
    main()
