"""How many arrows of generated diagrams are told right: both boxes by their names, and which way it points.

    python -m benchmarks.diagrams [--count 40] [--known-texts] [--worst N] [--json FILE]

Diagrams are drawn in styles that nothing was adjusted to (the generator's judging split), and read from their pixels
alone. Keys: diagrams, found (share that gave any edges), precision, recall, f1 (of edges), ms (median a diagram, with
reading its texts).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median

from benchmarks.generator.diagrams import DrawnDiagram, draw_diagram
from benchmarks.generator.truth import Split
from docferry.model_store import default_store
from docferry_cloud.charts.chart import Label
from docferry_cloud.charts.reader import read_labels
from docferry_cloud.deep.reader import DeepReader
from docferry_cloud.diagrams import find_diagram


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--split", default=Split.JUDGE.value, choices=[split.value for split in Split])
    parser.add_argument("--known-texts", action="store_true", help="take the texts as drawn: judges geometry alone")
    parser.add_argument("--worst", type=int, default=10, help="how many diagrams to list, the worst first")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    reader = None if options.known_texts else DeepReader.load(default_store(), threads=2)
    right = found = drawn = seen = 0
    ms, notes = [], []
    for seed in range(options.count):
        made = draw_diagram(seed, Split(options.split))
        began = time.perf_counter()
        diagram = find_diagram(made.pixels, _labels(made, reader), whole=True)
        ms.append((time.perf_counter() - began) * 1000)
        edges = {(edge.start, edge.end) for edge in diagram.edges if edge.directed} if diagram else set()
        truth = {(link.start, link.end) for link in made.links}
        right, found, drawn = right + len(edges & truth), found + len(edges), drawn + len(truth)
        seen += bool(edges)
        share = 2 * len(edges & truth) / (len(edges) + len(truth))
        notes.append((share, f"{seed}: missing {sorted(truth - edges)}, wrong {sorted(edges - truth)}"))
    report = {
        "diagrams": options.count,
        "found": round(seen / options.count, 4),
        "precision": round(right / max(1, found), 4),
        "recall": round(right / drawn, 4),
        "f1": round(2 * right / (found + drawn), 4),
        "ms": round(median(ms)),
    }
    for _, note in sorted(notes)[: options.worst]:
        print(f"  {note}")
    line = json.dumps(report)
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def _labels(made: DrawnDiagram, reader: DeepReader | None) -> list[Label]:
    if reader is not None:
        return read_labels(made.pixels, reader, lambda: False)
    return [Label(text, box, box[3] - box[1]) for text, box in made.texts]


if __name__ == "__main__":
    main()
