"""How well the embedded engine understands documents: tables, fields, order, whole PDFs.

    python -m benchmarks.understanding --data DIR [--limit N] [--worst N] [--json FILE]

Every document goes as it is through the pipeline engine and what follows it, in this process, as one that an edge has
not read. Each dataset is judged by what its truth holds; what came out worst is listed first, so that someone can look.
Keys (those that apply): documents, teds and teds_structure (a table that was not found counts 0), region_f1 (IoU 0.6),
fields {name: share right} (letters and digits, case folded; amounts as decimals; dates as ISO), pair_f1 (both sides 0.8
alike), qa (ChartQA's measure) with qa_answered and charts_measured, facts (beside facts_empty: what empty output
scores), edit_distance, order_distance, ms (median a document).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import understanding_charts, understanding_fields, understanding_pages, understanding_tables
from benchmarks.understanding_data import Judged, Truth, truths
from docferry.errors import DocferryError
from docferry.model_store import default_store
from docferry_cloud.documents.files import count_pages
from docferry_cloud.engine import Effort, PageInput
from docferry_cloud.interpret import Interpretation, interpret
from docferry_cloud.pipeline import PipelineEngine

Judge = Callable[[Truth, Interpretation], Judged]

JUDGES: dict[str, tuple[Judge, Callable[[Sequence[Judged]], dict[str, Any]]]] = {
    "chartqa": (understanding_charts.judge_questions, understanding_charts.questions_summary),
    "funsd": (understanding_fields.judge_form, understanding_fields.form_summary),
    "icdar2013_tables": (understanding_tables.judge_pages, understanding_tables.pages_summary),
    "invoices": (understanding_fields.judge_invoice, understanding_fields.summary),
    "olmocr_bench_sample": (understanding_pages.judge_facts, understanding_pages.facts_summary),
    "omnidocbench_demo": (understanding_pages.judge_blocks, understanding_pages.blocks_summary),
    "pubtabnet": (understanding_tables.judge_table, understanding_tables.summary),
    "sroie": (understanding_fields.judge_receipt, understanding_fields.summary),
    "zh_documents": (understanding_fields.judge_invoice, understanding_fields.summary),
}
"""By dataset: how one document is judged, and how the judgements add up."""


@dataclass(slots=True)
class Run:
    """What one dataset gave."""

    judged: list[Judged] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0, help="documents of each dataset; 0 means all")
    parser.add_argument("--worst", type=int, default=10, help="how many documents to list, the worst first")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    engine = PipelineEngine.load(default_store(), threads=2)
    report: dict[str, Any] = {}
    for name, documents in truths(options.data, JUDGES).items():
        chosen = documents[: options.limit] if options.limit else documents
        judge, summary = JUDGES[name]
        run = measure(engine, chosen, judge)
        report[name] = {"documents": len(run.judged), **summary(run.judged), "ms": round(median(run.ms))}
        show(name, run, report[name], options.worst)
    line = json.dumps(report)
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def measure(engine: PipelineEngine, documents: Sequence[Truth], judge: Judge) -> Run:
    """Read and judge every document; one that fails is judged by an empty answer."""
    run = Run()
    for truth in documents:
        started = time.perf_counter()
        try:
            answer = interpret(inputs(truth.file), engine, Effort.AUTO, lambda: False)
        except DocferryError as error:
            print(f"{truth.file.name}: {error}")
            answer = Interpretation.empty()
        run.ms.append(1000 * (time.perf_counter() - started))
        run.judged.append(judge(truth, answer))
    return run


def inputs(file: Path) -> list[PageInput]:
    """The pages of a file as the service hands them to the engine."""
    data = file.read_bytes()
    return [PageInput(image=data, image_page=number) for number in range(count_pages(data, file.name))]


def show(name: str, run: Run, result: dict[str, Any], worst: int) -> None:
    """For people: the numbers, then the worst documents with what is wrong with them."""
    print(f"{name}: {json.dumps(result)}")
    for judged in sorted(run.judged, key=lambda one: one.score)[:worst]:
        if judged.score < 1:
            print(f"  {judged.score:.3f} {judged.document}")
            for note in judged.notes:
                print(f"        {note}")


if __name__ == "__main__":
    main()
