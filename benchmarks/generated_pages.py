"""Generated documents as an edge prepares them, and where lines read on them stand in the photograph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from benchmarks.generator.make import generate
from benchmarks.generator.truth import Kind, Language, Split, Truth
from docferry.document import Line
from docferry.vision.orientation import OrientationClassifier
from docferry_edge.calibrating.matching import Polygon, TextLine
from docferry_edge.preparation.geometry import apply
from docferry_edge.prepare import Frame, PageImage, prepare

MIX: tuple[tuple[Kind, Language], ...] = (
    *((Kind.RECEIPT, Language.EN),) * 6,
    (Kind.INVOICE, Language.EN),
    (Kind.PAGE, Language.EN),
    (Kind.RECEIPT, Language.ZH),
    (Kind.INVOICE, Language.ZH),
)
"""What is fitted on and judged by, in turn: mostly receipts."""


@dataclass(frozen=True, slots=True)
class GeneratedPage:
    """A prepared page and the truth in pixels of the photograph it was made from."""

    page: PageImage
    truth: Truth
    frame_size: tuple[int, int]

    def printed(self) -> list[TextLine]:
        """The truth's lines, where they stand in the photograph."""
        return [(_polygon(line.polygon.tolist()), line.text) for line in self.truth.lines]

    def read(self, line: Line) -> TextLine:
        """A line read on the prepared page, where it stands in the photograph: the truth speaks of that one."""
        points = apply(self.page.to_frame, np.array(line.polygon)) * np.array(self.frame_size)
        return _polygon(points.tolist()), line.text


def generated_page(
    kind: Kind, language: Language, seed: int, split: Split, classifier: OrientationClassifier
) -> GeneratedPage:
    """Draw, photograph, compress and prepare one document."""
    sample = generate(kind, seed, split, language=language)
    good, encoded = cv2.imencode(".jpg", sample.image, [cv2.IMWRITE_JPEG_QUALITY, 90])
    assert good
    height, width = sample.image.shape[:2]
    page = prepare(Frame(encoded.tobytes(), sample.truth.id), classifier)
    return GeneratedPage(page, sample.truth, (width, height))


def _polygon(points: Sequence[Sequence[float]]) -> Polygon:
    return tuple((float(x), float(y)) for x, y in points)
