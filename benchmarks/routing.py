"""What routing is worth: accuracy against bytes, cloud CPU and share escalated, beside everything it must beat.

    python -m benchmarks.routing --data DIR [--limit N] [--cache DIR] [--plots DIR] [--json FILE]
        [--targets 0.01 0.02 ...] [--splits 5] [--label NAME] [--skip-unit]

For each data set: the edge alone; the cloud alone, which gets the original file; the file scaled down (`naive`);
originals of documents drawn at random, or below a threshold on the mean score as kubeedge/sedna does; our plans at
several targets, with a calibration fitted on one half of the documents and judged on the other (`ours`, mean over the
splits) and with the one that ships (`shipped`); and an oracle that knows what each route gives. Bytes are those of all
serialized request messages. Everything that is read is kept in the cache folder, so that curves are cheap to draw
again; give the engine another `--label` when its settings or models change. Line crops: benchmarks.routing_unit.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from benchmarks import routing_unit
from benchmarks.routing_data import Case, Score, cases
from benchmarks.routing_fit import Fit, Split, by_score, shipped, splits
from benchmarks.routing_runs import Bench, Run, edge_only
from docferry.model_store import default_store
from docferry.route import Decision, Plan
from docferry_cloud.engine import Effort
from docferry_cloud.pipeline import PipelineEngine
from docferry_edge.assess import Assessment, assess
from docferry_edge.offers import accepted
from docferry_edge.read import Reader
from docferry_edge.route import Policy, plan

NAIVE = ((1280, 50), (1024, 50), (768, 50), (512, 40))
"""Long sides and WebP qualities of the file scaled down."""

TARGETS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1)
RATES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
_DRAWS = 200

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """One document on one of our routes."""

    case: Case
    assessment: Assessment
    plan: Plan
    run: Run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0, help="documents of each dataset; 0 means all")
    parser.add_argument("--cache", type=Path, default=Path(".cache/routing"))
    parser.add_argument("--plots", type=Path, help="folder for PNG plots")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--targets", type=float, nargs="+", default=list(TARGETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--label", default="", help="names the engine's settings in the cache")
    parser.add_argument(
        "--effort", choices=list(Effort), default=Effort.AUTO, help="how much work the engine may spend"
    )
    parser.add_argument("--skip-unit", action="store_true", help="leave the line-crop curve out")
    options = parser.parse_args()
    reader = Reader.load(default_store(), threads=1)
    engine = PipelineEngine.load(default_store(), threads=1)
    label = f"{engine.name}{options.label}-{options.effort}-{reader.name}"
    bench = Bench(engine, options.cache, label, Effort(options.effort))
    report: dict[str, Row] = {}
    for name, found in cases(options.data, options.limit, reader, options.cache):
        report[name] = measure(found, bench, options.targets, options.splits)
        if not options.skip_unit:
            report[name]["unit"] = unit_curve(found, bench, options.splits)
        show(name, report[name])
        if options.plots is not None:
            from benchmarks.routing_plots import draw

            draw(name, report[name], options.plots)
    line = json.dumps({"routing": report})
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def measure(found: Sequence[Case], bench: Bench, targets: Sequence[float], count: int) -> Row:
    """Everything about one data set but the line-crop curve."""
    edge = [edge_only(case) for case in found]
    cloud = [bench.original(case) for case in found]
    originals = sum(len(case.data) for case in found)
    whole = Whole(originals, sum(run.cpu_s for run in cloud))
    fixed = list(splits(found, shipped, 1))
    every = [Split(fixed[0].calibration, tuple(found))]
    halves = list(splits(found, by_score, count))
    naive = {size: [bench.naive(case, *size) for case in found] for size in NAIVE}
    ours = {target: [routed(part, target, bench) for part in halves] for target in targets}
    plain = {target: [routed(part, target, bench) for part in every] for target in targets}
    columns = [edge, cloud, *naive.values(), *(_runs(parts[0]) for parts in plain.values())]
    known = [list(runs) for runs in zip(*columns, strict=True)]
    theirs = {case.name: run for case, run in zip(found, cloud, strict=True)}
    return {
        "documents": len(found),
        "original_bytes": originals,
        "edge_only": whole.row(edge),
        "cloud_only": {**whole.row(cloud), "cloud_cpu_s": round(whole.cpu_s / max(1, len(found)), 3)},
        "gap": gap(edge, cloud),
        "naive": [{"side": side, "quality": quality, **whole.row(runs)} for (side, quality), runs in naive.items()],
        "random": [{"rate": rate, **whole.row(*drawn(edge, cloud, rate))} for rate in RATES],
        "threshold": [{"threshold": at, **whole.row(runs)} for at, runs in thresholds(found, edge, cloud)],
        "ours": [our_row(target, parts, theirs) for target, parts in ours.items()],
        "shipped": [our_row(target, parts, theirs) for target, parts in plain.items()],
        "oracle": [{"price": price, **whole.row(runs)} for price, runs in oracle(known)],
        **ranking(halves),
    }


@dataclass(frozen=True, slots=True)
class Whole:
    """What shares are taken of: all original bytes, and the CPU seconds of the cloud alone."""

    bytes: int
    cpu_s: float

    def row(self, *draws: Sequence[Run]) -> Row:
        """Sums over documents; the mean of several draws of them."""
        rows = []
        for runs in draws:
            total = sum((run.score for run in runs), Score())
            rows.append(
                {
                    "word_f1": total.word_f1,
                    "field_f1": total.field_f1,
                    "bytes_share": sum(run.bytes for run in runs) / max(1, self.bytes),
                    "cloud_cpu_share": sum(run.cpu_s for run in runs) / max(1e-9, self.cpu_s),
                    "escalated": sum(run.bytes > 0 for run in runs) / max(1, len(runs)),
                }
            )
        return {name: round(fmean(row[name] for row in rows), 5) for name in rows[0]}


def routed(part: Split, target: float, bench: Bench) -> list[Judged]:
    """The judged half on our routes at one target."""
    judged = []
    for case in part.judged:
        assessment = assess(case.reading, part.calibration)
        chosen = plan(assessment, Policy(target, audit_share=0.0), case.name)
        judged.append(Judged(case, assessment, chosen, bench.ours(case, assessment, chosen)))
    return judged


def our_row(target: float, parts: Sequence[Sequence[Judged]], cloud: Mapping[str, Run]) -> Row:
    """One target: the mean over the splits, with the spread of what is promised; beside `cloud` on the same files."""
    rows = []
    for judged in parts:
        originals = sum(len(one.case.data) for one in judged)
        row = Whole(originals, sum(cloud[one.case.name].cpu_s for one in judged)).row(_runs(judged))
        left = [_labels(one) for one in judged]
        accepted_, wrong = sum(n for n, _, _ in left), sum(w for _, w, _ in left)
        pictures = [one for one in judged if one.plan.route.decision in {Decision.CROPS, Decision.PAGE}]
        structures = [one.run.bytes for one in judged if one.plan.route.decision is Decision.STRUCTURE]
        alone = [one.run.bytes / len(one.case.data) for one in judged if one.plan.route.decision is Decision.STRUCTURE]
        rows.append(
            {
                **row,
                "escalated": len(pictures) / max(1, len(judged)),
                "pages": sum(one.plan.route.decision is Decision.PAGE for one in judged) / max(1, len(judged)),
                "median_bytes_share": median(one.run.bytes / len(one.case.data) for one in judged),
                "structure_bytes": median(one.run.structure for one in judged),
                "structure_route_bytes": median(structures) if structures else 0,
                "structure_route_share": fmean(alone) if alone else 0.0,
                "predicted_bytes": sum(one.plan.bytes for one in judged) / sum(one.run.bytes for one in judged),
                "risk_accepted": wrong / accepted_ if accepted_ else 0.0,
                "coverage": accepted_ / max(1, sum(n for _, _, n in left)),
            }
        )
    mean = {name: round(fmean(row[name] for row in rows), 5) for name in rows[0]}
    spread = stdev(row["risk_accepted"] for row in rows) if len(rows) > 1 else 0.0
    return {"target_risk": target, **mean, "risk_accepted_spread": round(spread, 5)}


def gap(edge: Sequence[Run], cloud: Sequence[Run]) -> Row:
    """What the cloud alone reads better than the edge alone, with the 95 % interval over documents."""

    def difference(numbers: Iterable[int], name: str) -> float:
        chosen = list(numbers)
        ours, theirs = (sum((runs[n].score for n in chosen), Score()) for runs in (edge, cloud))
        return float(getattr(theirs, name) - getattr(ours, name))

    rng = random.Random(0)
    samples = [[rng.randrange(len(edge)) for _ in edge] for _ in range(1000)]
    result: Row = {}
    for name in ("word_f1", "field_f1"):
        drawn_ = sorted(difference(sample, name) for sample in samples)
        result[name] = {
            "mean": round(difference(range(len(edge)), name), 5),
            "low": round(drawn_[25], 5),
            "high": round(drawn_[974], 5),
        }
    return result


def drawn(edge: Sequence[Run], cloud: Sequence[Run], rate: float) -> list[list[Run]]:
    """Documents escalated at random, several times over."""
    rng = random.Random(0)
    count = round(rate * len(edge))
    draws = 1 if count in {0, len(edge)} else _DRAWS
    picked = (set(rng.sample(range(len(edge)), count)) for _ in range(draws))
    return [[cloud[n] if n in chosen else edge[n] for n in range(len(edge))] for chosen in picked]


def thresholds(found: Sequence[Case], edge: Sequence[Run], cloud: Sequence[Run]) -> Iterable[tuple[float, list[Run]]]:
    """The original goes up where the mean score is below a threshold: sedna's 0.5, and one for each rate.

    As in kubeedge/sedna, a document without a single line is taken for easy and stays.
    """
    means = [fmean(line.score for line in lines) if (lines := case.reading.document.lines) else 1.0 for case in found]
    ordered = sorted(means)
    cuts = [0.5, *(ordered[min(len(ordered) - 1, round(rate * len(ordered)))] for rate in RATES[1:-1]), 1.01]
    for cut in cuts:
        yield (
            round(cut, 4),
            [high if mean < cut else low for mean, low, high in zip(means, edge, cloud, strict=True)],
        )


def oracle(known: Sequence[Sequence[Run]]) -> Iterable[tuple[float, list[Run]]]:
    """For each price of a byte, the best route of every document by one who knows what each gives.

    What counts is 2 * words in common - words read, whose sum moves with the F1.
    """

    def worth(run: Run, price: float) -> float:
        return 2 * run.score.words.common - run.score.words.read - price * run.bytes

    for price in (1e-1, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 0.0):
        yield price, [max(runs, key=lambda run: (worth(run, price), -run.bytes)) for runs in known]


def ranking(parts: Sequence[Split]) -> Row:
    """How well confidence tells right lines from wrong ones on the judged halves: AUROC and ten-bin error."""
    areas, errors = [], []
    for part in parts:
        pairs = [
            (1.0 - risk.risk, case.labels[risk.line.id])
            for case in part.judged
            for risk in assess(case.reading, part.calibration).lines
            if risk.line.id in case.labels
        ]
        if pairs:
            areas.append(auroc(pairs))
            errors.append(expected_error(pairs))
    return {"auroc": round(fmean(areas), 4) if areas else None, "ece": round(fmean(errors), 4) if errors else None}


def auroc(pairs: Sequence[tuple[float, bool]]) -> float:
    """Probability that a right line has a higher confidence than a wrong one; ties count half (Mann and Whitney)."""
    ordered = sorted(pairs)
    right = sum(good for _, good in ordered)
    wrong = len(ordered) - right
    if not right or not wrong:
        return 1.0
    rank, total, start = 0, 0.0, 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end][0] == ordered[start][0]:
            end += 1
        total += sum(good for _, good in ordered[start:end]) * (rank + (end - start + 1) / 2)
        rank, start = rank + end - start, end
    return (total - right * (right + 1) / 2) / (right * wrong)


def expected_error(pairs: Sequence[tuple[float, bool]], bins: int = 10) -> float:
    """Expected calibration error over bins of equal size."""
    ordered = sorted(pairs)
    size = max(1, len(ordered) // bins)
    parts = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return sum(abs(sum(p for p, _ in part) - sum(good for _, good in part)) for part in parts) / len(ordered)


def unit_curve(found: Sequence[Case], bench: Bench, count: int, fit: Fit = by_score) -> Row:
    """The line-crop curve over all splits' judged halves."""
    lines = [
        unit
        for part in splits(found, fit, count)
        for case in part.judged
        for unit in routing_unit.units(case, part.calibration, bench)
    ]
    return routing_unit.summary(lines) if lines else {}


def show(name: str, row: Row) -> None:
    """The same for people."""
    print(f"{name}: {row['documents']} documents, {row['original_bytes']} bytes; gap {row['gap']}")
    line: Callable[[str, Row], None] = lambda head, r: print(  # noqa: E731
        f"  {head:<24} words {r['word_f1']:.4f}  fields {r['field_f1']:.4f}  bytes {100 * r['bytes_share']:7.3f} %"
        f"  cpu {100 * r['cloud_cpu_share']:6.1f} %  escalated {r['escalated']:.2f}"
    )
    line("edge only", row["edge_only"])
    line("cloud only", row["cloud_only"])
    for kind, key in (("naive", "side"), ("random", "rate"), ("threshold", "threshold"), ("oracle", "price")):
        for one in row[kind]:
            line(f"{kind} {one[key]:g}", one)
    for kind in ("ours", "shipped"):
        for one in row[kind]:
            line(f"{kind} {one['target_risk']:g}", one)
            print(
                f"    risk {one['risk_accepted']:.4f} ± {one['risk_accepted_spread']:.4f}, coverage "
                f"{one['coverage']:.3f}, median bytes {100 * one['median_bytes_share']:.3f} %, structure "
                f"{one['structure_bytes']:.0f} bytes, structure-only request {one['structure_route_bytes']:.0f} bytes "
                f"({100 * one['structure_route_share']:.2f} %), pages {one['pages']:.2f}"
            )
    print(f"  auroc {row['auroc']}  ece {row['ece']}")
    if unit := row.get("unit"):
        print(
            f"  line crops: {unit['lines']} lines, at 25 % {unit['at_25']}, area {unit['area']}, {unit['better_than']}"
        )


def _runs(judged: Sequence[Judged]) -> list[Run]:
    return [one.run for one in judged]


def _labels(one: Judged) -> tuple[int, int, int]:
    """Lines accepted as the edge read them, wrong ones among these, and all lines; of those that can be compared."""
    labels = one.case.labels
    kept = [line for line in accepted(one.assessment, one.plan) if line in labels]
    return len(kept), sum(not labels[line] for line in kept), len(labels)


if __name__ == "__main__":
    main()
