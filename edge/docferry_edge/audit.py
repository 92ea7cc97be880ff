"""Outcomes of the audit slice: what the edge read beside what the cloud read of the same pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from docferry.document import Document, Line
from docferry.v1 import analysis_pb2
from docferry.wire import document_from_proto
from docferry_edge.calibrating.labels import Comparison, judge
from docferry_edge.calibrating.matching import TextLine
from docferry_edge.drift import AuditOutcome


def audit_outcomes(folder: Path) -> Iterator[AuditOutcome]:
    """The outcome of every audited document whose answer is still in the outbox, oldest first.

    The outbox is only read, and may be in use by the agent. The cloud's reading stands for the truth: where it is wrong
    and the edge is right, the edge counts as wrong, so a drift of the cloud shows too.

    Args:
        folder: The agent's state folder; nothing comes of one without an outbox.
    """
    file = folder / "outbox.sqlite"
    if not file.exists():
        return
    database = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=10.0)
    try:
        rows = database.execute("SELECT analysis FROM documents WHERE analysis IS NOT NULL ORDER BY place")
        for (blob,) in rows:
            outcome = _outcome(analysis_pb2.Analysis.FromString(blob))
            if outcome is not None:
                yield outcome
    finally:
        database.close()


def _outcome(analysis: analysis_pb2.Analysis) -> AuditOutcome | None:
    """None for a document that was not audited, or whose two readings are not both there."""
    if not any(reason.code == "AUDIT" for reason in analysis.route.reasons):
        return None
    edge = next((version for version in analysis.versions if version.engine == "edge"), None)
    cloud = next((version for version in reversed(analysis.versions) if version.engine not in {"edge", "person"}), None)
    if edge is None or cloud is None:
        return None
    return compared(
        document_from_proto(edge.interpretation.document), document_from_proto(cloud.interpretation.document)
    )


def compared(edge: Document, cloud: Document) -> AuditOutcome:
    """How many of the edge's lines the cloud's reading does not confirm, against how many were expected to be wrong."""
    wrong, predicted, lines = 0, 0.0, 0
    for mine, theirs in zip(edge.pages, cloud.pages, strict=False):
        size = (mine.width or 1, mine.height or 1)
        verdicts = judge(_lines(theirs.lines, size), _lines(mine.lines, size), Comparison.EXACT)
        wrong += sum(not verdict.right for verdict in verdicts.lines)
        predicted += sum(1.0 - (line.confidence or 0.0) for line in mine.lines)
        lines += len(mine.lines)
    return AuditOutcome(predicted / lines if lines else 0.0, wrong / lines if lines else 0.0, lines)


def _lines(lines: Sequence[Line], size: tuple[int, int]) -> list[TextLine]:
    width, height = size
    return [(tuple((x * width, y * height) for x, y in line.polygon), line.text) for line in lines]
