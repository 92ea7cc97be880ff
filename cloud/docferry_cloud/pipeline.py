"""The embedded engine: PaddleOCR on the CPU, with the edge's reading as its first witness."""

from __future__ import annotations

import numpy as np

from docferry.document import Box, Line, Page, Polygon
from docferry.errors import InputError
from docferry.model_store import ModelStore
from docferry.vision.images import ImageLimits, decode, picture_size
from docferry.vision.orientation import DOUBTFUL_ORIENTATION
from docferry.vision.quads import Quad, absolute, relative
from docferry_cloud.engine import Crop, Effort, PageInput, Task, Want
from docferry_cloud.pipeline_geometry import from_crop, to_crop
from docferry_cloud.pipeline_merge import Opinion, Reread, in_doubt, merge, worth_reading
from docferry_cloud.pipeline_paddle import Cancelled, PaddleReader, check
from docferry_cloud.pipeline_page import PageReader
from docferry_cloud.pipeline_wants import Shown, wanted, whole_page

_CROP_LIMITS = ImageLimits(max_bytes=16 * 1024 * 1024, max_pixels=40_000_000)
_WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


class PipelineEngine:
    """Reads pages with PaddleOCR, and doubtful places of pages that the edge has read already.

    Safe to call from several threads at once. `load` makes one.
    """

    name = "pipeline"
    tasks = frozenset({Task.TEXT, Task.LAYOUT})

    def __init__(self, reader: PaddleReader, pages: PageReader) -> None:
        self._reader = reader
        self._pages = pages

    @classmethod
    def load(cls, store: ModelStore, threads: int) -> PipelineEngine:
        """Load every network and run each once; nothing is fetched.

        Args:
            store: Holds the model set `cloud`.
            threads: How many pages or batches may be worked on at the same time, at least 1.

        Raises:
            ModelError: A model is missing or cannot be loaded; the remedy is the command that brings it.
        """
        reader = PaddleReader.load(store, threads=threads)
        return cls(reader, PageReader.load(store, reader, threads=threads))

    def read(self, page: PageInput, effort: Effort, cancelled: Cancelled) -> Page:  # noqa: ARG002
        """Read one page. The embedded models know one effort.

        The edge's reading stands, except where sharp pixels show it anew: crops, or the whole page as one crop. A page
        is read afresh where nothing can be built on the edge's reading: there is none, it is empty, or the edge was
        not sure which way is up. An overview changes nothing: it is the same page with fewer pixels than the edge has
        read already, and reading it again can only be worse; people look at it.

        Raises:
            EngineError: PaddleOCR failed, or `cancelled` said True.
            UnreadableImage, ImageTooLarge: The pixels that were sent cannot be used.
            InputError: There is neither a reading nor a picture of the page to read.
        """
        check(cancelled)
        crops = page.crops
        if page.image is not None:
            if page.reading is None or not _can_be_built_on(page.reading):
                return self._pages.read(page.image, cancelled, page.image_page)
            crops = (*crops, Crop("page", _WHOLE, page.image))
        if page.reading is None:
            return self._without_reading(page, cancelled)
        rereads = []
        for crop in crops:
            check(cancelled)
            rereads.append(self._reread(page.reading, crop, cancelled))
        return merge(page.reading, rereads)

    def wants(self, page: PageInput, read: Page) -> tuple[Want, ...]:
        """What would let it read this page better: sharper pixels of what is still in doubt."""
        if page.image is not None or page.original_scale <= 0:
            return ()
        if page.reading is None or not _can_be_built_on(page.reading):
            return (whole_page(page.original_scale),)
        return wanted(
            read,
            [Shown(crop.box, _scale(crop.data, crop.box, read)) for crop in page.crops if _has_area(crop)],
            overview=0.0 if page.overview is None else _scale(page.overview, _WHOLE, read),
            original=page.original_scale,
            target_risk=page.target_risk,
            tasks=self.tasks,
        )

    def _without_reading(self, page: PageInput, cancelled: Cancelled) -> Page:
        if page.overview is None:
            raise InputError(
                "the page came with neither a reading nor a picture", remedy="send the page's picture or its reading"
            )
        return self._pages.read(page.overview, cancelled)

    def _reread(self, page: Page, crop: Crop, cancelled: Cancelled) -> Reread:
        image = decode(crop.data, limits=_CROP_LIMITS, name=f"crop {crop.part_id}")
        if not _has_area(crop):
            return Reread(crop.box)
        height, width = image.shape[:2]
        doubtful = in_doubt(page, crop.box)
        known = [_grown(absolute(to_crop(line.polygon, crop.box), width, height)) for line in doubtful]
        quads = self._reader.find(image)
        polygons = [_on_page(quad, width, height, crop) for quad in quads]
        worth = [quads[number] for number in worth_reading(page, crop.box, polygons)]
        check(cancelled)
        answers = self._reader.read(image, [*known, *worth], cancelled)
        provenance = self._reader.provenance
        return Reread(
            box=crop.box,
            again={
                line.id: Opinion(answer.text, answer.score, provenance)
                for line, answer in zip(doubtful, answers, strict=False)
            },
            found=tuple(
                Line("", answer.text, _on_page(answer.quad, width, height, crop), answer.score, None, provenance)
                for answer in answers[len(known) :]
                if answer.text
            ),
        )


def _can_be_built_on(reading: Page) -> bool:
    return bool(reading.lines) and reading.quality.orientation_score >= DOUBTFUL_ORIENTATION


def _scale(data: bytes, box: Box, page: Page) -> float:
    """Pixels of a picture of a page's piece for one of the page, along the side where it has fewer."""
    width, height = picture_size(data)
    return min(width / max(1.0, (box[2] - box[0]) * page.width), height / max(1.0, (box[3] - box[1]) * page.height))


def _has_area(crop: Crop) -> bool:
    return crop.box[2] > crop.box[0] and crop.box[3] > crop.box[1]


def _on_page(quad: Quad, width: int, height: int, crop: Crop) -> Polygon:
    return from_crop(relative(quad, width, height), crop.box)


def _grown(quad: Quad) -> Quad:
    """A quad that came over the wire: rounding to 1/4096 of the page may have shaved its strokes by a pixel."""
    middle = quad.mean(axis=0)
    return np.asarray(quad + np.sign(quad - middle), dtype=np.float32)
