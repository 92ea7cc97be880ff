"""What corrections by people say of the confidences: how many accepted lines were wrong, beside what was claimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from docferry.v1 import analysis_pb2, document_pb2
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.correct import PERSON
from docferry_cloud.database import Database
from docferry_cloud.schema import analyses, versions

MOST_DOCUMENTS = 100
"""The newest corrected documents that are looked at: each means two versions to be read."""
_MOST_POINTS = 50

_BEFORE = versions.alias("before")
# Asked of each version and not joined: without statistics SQLite would begin with every analysis of the tenant.
_TENANT = sa.select(analyses.c.tenant).where(analyses.c.analysis_id == versions.c.analysis_id).scalar_subquery()
_CORRECTED = (
    sa.select(versions.c.interpretation, _BEFORE.c.interpretation)
    .join_from(versions, _BEFORE, (_BEFORE.c.analysis_id == versions.c.analysis_id))
    .where(
        sa.bindparam("tenant") == _TENANT,
        # Not a parameter: the index of people's versions is taken only where it is seen to hold what is asked for.
        versions.c.engine == sa.literal_column(f"'{PERSON}'"),
        versions.c.create_time >= sa.bindparam("since"),
        _BEFORE.c.version == versions.c.version - 1,
    )
    .order_by(versions.c.create_time.desc())
    .limit(MOST_DOCUMENTS)
)


@dataclass(frozen=True, slots=True)
class Label:
    """A line that a person looked at: what was believed of it, 0..1, and whether it was right."""

    confidence: float
    right: bool


@dataclass(frozen=True, slots=True)
class RiskPoint:
    """Of the lines with the highest confidences: their share of all, and which share of them was wrong.

    Attributes:
        coverage: 0..1.
        risk: Of these lines the share that a person put right, 0..1.
        predicted: The share that the confidences had led to expect, 0..1.
    """

    coverage: float
    risk: float
    predicted: float


@dataclass(frozen=True, slots=True)
class ReviewedFigures:
    """How many documents and lines people looked at, and the curve over these lines."""

    documents: int
    lines: int
    curve: tuple[RiskPoint, ...]


class Reviewed:
    """Reads what people have put right or confirmed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def figures(self, tenant: str, days: int) -> ReviewedFigures:
        """Of the newest documents that people corrected in the last `days` days; takes tens of milliseconds."""
        since = self._database.now() - days * 86400 * MICROSECONDS
        with self._database.read() as connection:
            rows = connection.execute(_CORRECTED, {"tenant": tenant, "since": since}).all()
        found = [labels for after, before in rows if (labels := labels_of(after, before))]
        labels = [label for document in found for label in document]
        return ReviewedFigures(len(found), len(labels), tuple(risk_curve(labels)))


def labels_of(after: bytes, before: bytes) -> list[Label]:
    """The lines that a person settled in a version, both versions being serialized interpretations.

    Lines without a confidence, and those that the version before had from a person already, say nothing of it.
    """
    settled = {place: line.text for place, line in _lines(after) if line.provenance == PERSON}
    return [
        Label(line.confidence, line.text == settled[place])
        for place, line in _lines(before)
        if place in settled and line.HasField("confidence") and line.provenance != PERSON
    ]


def risk_curve(labels: Sequence[Label]) -> list[RiskPoint]:
    """Risk against coverage, the surest lines first; lines believed alike are accepted together.

    Selective risk after Geifman and El-Yaniv (2017).
    """
    ordered = sorted(labels, key=lambda label: -label.confidence)
    points: list[RiskPoint] = []
    wrong, expected = 0, 0.0
    for count, label in enumerate(ordered, 1):
        wrong += not label.right
        expected += 1.0 - label.confidence
        if count == len(ordered) or ordered[count].confidence < label.confidence:
            points.append(RiskPoint(count / len(ordered), wrong / count, expected / count))
    step = max(1, -(-len(points) // _MOST_POINTS))
    # The last one is all of them, and always told.
    return points[::-1][::step][::-1]


def _lines(interpretation: bytes) -> Iterable[tuple[tuple[int, str], document_pb2.Line]]:
    message = analysis_pb2.Interpretation.FromString(interpretation)
    for number, page in enumerate(message.document.pages):
        for region in page.regions:
            for line in region.lines:
                yield (number, line.line_id), line
