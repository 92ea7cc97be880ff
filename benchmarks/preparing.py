"""What preparing a page gains and costs: skew and rotation found, words read, milliseconds a step.

    python -m benchmarks.preparing --data DIR [--limit N] [--json FILE] [--jitter N]

`DIR` is a folder of datasets. `orientation_skew` is judged by angle; `camera_photos` by word recall, the raw photo
against the prepared one in the same run; others by word F1, the same way. `--jitter` also reads each photo with a few
rows and columns less, N times: single readings of a photo differ by some words between such copies, the mean hardly.
Most bounds in `docferry_edge.preparation` were set on rendered pages and every other photo (`TUNED`). Two were chosen
with all photos in view: the mix of the corrections of light, and the spread of slopes up to which a page is turned.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from benchmarks.metrics import WordCounts, folded, word_counts, words
from benchmarks.reading_data import datasets
from docferry.model_store import default_store
from docferry.vision.images import Pixels, decode
from docferry_edge.prepare import Frame, PageImage, PrepareSettings, Shot, bounded, deskew, prepare, steps
from docferry_edge.read import Reader

TUNED = {"boston_cooking_a", "course_table", "doctr_51_1", "docunet_4_2", "paperless_page"}
"""Photos whose readings were looked at while the bounds were chosen."""


def main() -> None:
    """Measure, print, and end with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--jitter", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    reader = Reader.load(default_store(), 2)
    folders = [options.data] if (options.data / "gt").is_dir() else sorted(options.data.iterdir())
    result: dict[str, Any] = {"generated": {"skew": generated_skew(), "steps_ms": steps_ms(reader)}}
    print("generated", json.dumps(result["generated"]))
    for folder in folders:
        if folder.name == "orientation_skew":
            result[folder.name] = angles(folder, reader)
        elif folder.name == "camera_photos":
            result[folder.name] = photos(folder, reader, options.jitter, options.limit)
        elif (folder / "gt").is_dir():
            result[folder.name] = flat(folder, reader, options.limit)
    line = json.dumps(result)
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def generated_skew() -> dict[str, float]:
    """Rendered pages turned by known angles: how far off straight they are once prepared, in degrees."""
    random = np.random.default_rng(7)
    left: list[float] = []
    for number in range(40):
        page = _letter(random, size=int(random.choice([14, 18, 24, 32])), columns=1 + number % 2)
        degrees = float(random.uniform(-10, 10))
        height, width = page.shape[:2]
        turn = cv2.getRotationMatrix2D((width / 2, height / 2), -degrees, 1.0)
        leaning = cv2.warpAffine(page, turn, (width, height), flags=cv2.INTER_CUBIC, borderValue=(255, 255, 255))
        found = deskew(Shot(np.asarray(leaning, dtype=np.uint8))).quality.skew
        left.append(abs(degrees - found))
    return {"pages": len(left), "median": round(statistics.median(left), 3), "worst": round(max(left), 3)}


def steps_ms(reader: Reader) -> dict[str, float]:
    """The median milliseconds that each step takes on a flat, rendered page of 1654 x 2339 pixels."""
    page = _letter(np.random.default_rng(1), size=24, columns=1, width=1654, height=2339)
    names = ("sheet", "orientation", "edges", "deskew", "measure", "light")
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(9):
        shot = Shot(page)
        for name, step in zip(names, steps(reader.orientation), strict=True):
            began = time.perf_counter()
            shot = step(shot)
            taken[name].append((time.perf_counter() - began) * 1000)
    medians = {name: round(statistics.median(values), 1) for name, values in taken.items()}
    besides = round(sum(value for name, value in medians.items() if name != "orientation"), 1)
    return medians | {"all_but_orientation": besides}


def angles(folder: Path, reader: Reader) -> dict[str, Any]:
    """Rotation and skew against each file's own truth and tolerance; PDFs are not the edge's business."""
    rows: list[dict[str, Any]] = []
    for truth in _truths(folder):
        if truth["image"].endswith(".pdf"):
            continue
        quality = prepare(Frame((folder / truth["image"]).read_bytes()), reader.orientation).quality
        row: dict[str, Any] = {"id": truth["id"], "orientation": quality.orientation, "skew": quality.skew}
        row["rotation_right"] = quality.orientation == truth.get("rotated_cw_degrees", 0)
        wanted = truth.get("correction_ccw_degrees", 0)
        row["skew_right"] = abs(quality.skew - wanted) <= truth.get("tolerance", 0.5)
        rows.append(row)
        print(f"{row['id']:24} turned {quality.orientation:3}  skew {quality.skew:6.2f} (wanted {wanted})", flush=True)
    return {
        "documents": len(rows),
        "rotations_right": sum(row["rotation_right"] for row in rows),
        "skews_right": sum(row["skew_right"] for row in rows),
        "rows": rows,
    }


def photos(folder: Path, reader: Reader, jitter: int, limit: int | None) -> dict[str, Any]:
    """Word recall of each photo, raw and prepared."""
    rows: list[dict[str, Any]] = []
    for truth in _truths(folder)[:limit]:
        pixels = bounded(decode((folder / truth["image"]).read_bytes()), PrepareSettings().longest)
        recalls: dict[str, list[float]] = {"raw": [], "prepared": []}
        for cut in (0, 7, 13, 19, 29)[:jitter]:
            copy = np.ascontiguousarray(pixels[cut:, cut:])
            recalls["raw"].append(recall(truth, _read(reader, copy)))
            recalls["prepared"].append(recall(truth, _read(reader, _prepared(reader, copy).pixels)))
        row = {"id": truth["id"], "tuned": truth["id"] in TUNED}
        row |= {f"{name}": round(values[0], 4) for name, values in recalls.items()}
        row |= {f"{name}_mean": round(statistics.mean(values), 4) for name, values in recalls.items()}
        rows.append(row)
        print(
            f"{row['id']:24} raw {row['raw']:.3f} -> {row['prepared']:.3f}"
            f"   over {jitter} copies {row['raw_mean']:.3f} -> {row['prepared_mean']:.3f}",
            flush=True,
        )
    summary: dict[str, Any] = {"rows": rows}
    for part, chosen in (
        ("all", rows),
        ("tuned", [r for r in rows if r["tuned"]]),
        ("judged", [r for r in rows if not r["tuned"]]),
    ):
        if chosen:
            keys = ("raw", "prepared", "raw_mean", "prepared_mean")
            summary[part] = {key: round(statistics.mean(row[key] for row in chosen), 4) for key in keys}
            print(part, summary[part])
    return summary


def flat(folder: Path, reader: Reader, limit: int | None) -> dict[str, Any]:
    """Word F1 over a dataset of transcribed pages: turned upright only, and fully prepared."""
    raw, prepared, changed = WordCounts(), WordCounts(), 0
    if folder.name not in (found := datasets(folder)):
        return {}
    samples = found[folder.name][:limit]
    for sample in samples:
        pixels = bounded(decode(sample.image.read_bytes(), enough=PrepareSettings().longest), PrepareSettings().longest)
        after = _prepared(reader, pixels)
        before = PageImage(steps(reader.orientation)[1](Shot(pixels)).pixels)
        first = word_counts(sample.texts, _read(reader, before.pixels))
        same = before.pixels.shape == after.pixels.shape and bool((before.pixels == after.pixels).all())
        changed += not same
        raw += first
        prepared += first if same else word_counts(sample.texts, _read(reader, after.pixels))
    row = {
        "documents": len(samples),
        "changed": changed,
        "raw_f1": round(raw.f1, 4),
        "prepared_f1": round(prepared.f1, 4),
    }
    print(folder.name, row, flush=True)
    return row


def recall(truth: dict[str, Any], lines: Sequence[str]) -> float:
    """Share of the truth's words that were read; where the truth has no spaces, of its strings."""
    if truth.get("annotations"):
        page = folded("".join(lines))
        strings = [folded(item["text"]) for item in truth["annotations"]]
        return statistics.mean(text in page for text in strings if text)
    found = Counter(word for line in lines for word in words(line))
    if isinstance(truth.get("text"), str):
        wanted = Counter(words(truth["text"]))
    else:
        # Strings of several kinds name some words twice over.
        wanted = Counter(set(words(" ".join(_strings(truth)))))
    return (wanted & found).total() / wanted.total()


def _strings(truth: dict[str, Any]) -> list[str]:
    table = re.sub("<[^>]+>", " ", truth.get("table_html") or "")
    cells = [cell for row in truth.get("table_rows", []) for cell in row if cell]
    fields = [value for value in (truth.get("fields") or {}).values() if isinstance(value, str)]
    return [*truth["present"], *fields, *cells, table]


def _prepared(reader: Reader, pixels: Pixels) -> Shot:
    shot = Shot(pixels)
    for step in steps(reader.orientation):
        shot = step(shot)
    return shot


def _read(reader: Reader, pixels: Pixels) -> list[str]:
    return [line.text for line in reader.read_all(PageImage(pixels)).document.lines]


def _truths(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "gt").glob("*.json"))]


def _letter(random: np.random.Generator, size: int, columns: int, width: int = 1240, height: int = 1754) -> Pixels:
    page = Image.new("RGB", (width, height), "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(size)
    across = (width - 160) // columns
    for column in range(columns):
        y = 100.0
        while y < height - 100:
            text = ""
            end = across * random.uniform(0.5, 0.9)
            while pen.textlength(text, font) < end:
                text += "".join(random.choice(list("abcdefghijklmnopqrstuvwxyzABCDEF0123456789.,"), 5)) + " "
            pen.text((80 + column * across, y), text, "black", font)
            y += size * float(random.choice([1.3, 1.3, 2.4]))
    return np.ascontiguousarray(np.asarray(page)[:, :, ::-1])


if __name__ == "__main__":
    main()
