"""The embedded engine: deep reading on the CPU, with the edge's reading as its first witness."""

from __future__ import annotations

import numpy as np

from docferry.document import DOUBTFUL_ORIENTATION, Box, Line, Page, Polygon, RegionType
from docferry.errors import InputError
from docferry.model_store import ModelStore
from docferry.vision.images import ImageLimits, decode, picture_size
from docferry.vision.quads import Quad, absolute, relative
from docferry_cloud.deep.numbers import page_with_points
from docferry_cloud.deep.reader import DeepReader, Known
from docferry_cloud.deep.vote import Witness
from docferry_cloud.engine import Cancelled, Crop, Effort, PageInput, Task, Want, check
from docferry_cloud.pipeline_geometry import from_crop, to_crop, touches
from docferry_cloud.pipeline_merge import Opinion, Reread, in_doubt, merge
from docferry_cloud.pipeline_page import PageReader
from docferry_cloud.pipeline_wants import Shown, wanted, whole_page
from docferry_cloud.tables.pages import with_tables

_CROP_LIMITS = ImageLimits(max_bytes=16 * 1024 * 1024, max_pixels=40_000_000)
_WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


class PipelineEngine:
    """Reads pages deeply, and doubtful places of pages that the edge has read already.

    Safe to call from several threads at once. `load` makes one.
    """

    name = "pipeline"
    tasks = frozenset({Task.TEXT, Task.LAYOUT, Task.TABLE})

    def __init__(self, reader: DeepReader, pages: PageReader) -> None:
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
        reader = DeepReader.load(store, threads=threads)
        return cls(reader, PageReader.load(store, reader, threads=threads))

    def read(self, page: PageInput, effort: Effort, cancelled: Cancelled) -> Page:
        """Read one page. FAST reads it once; AUTO lets the helpers read what is in doubt, DEEP everything.

        The edge's reading stands, except where sharp pixels show it anew: crops, or the whole page as one crop. A page
        is read afresh where nothing can be built on the edge's reading: there is none, it is empty, or the edge was
        not sure which way is up. An overview changes nothing: it is the same page with fewer pixels than the edge has
        read already, and reading it again can only be worse; people look at it.

        Raises:
            EngineError: `cancelled` said True.
            UnreadableImage, ImageTooLarge: The pixels that were sent cannot be used.
            InputError: There is neither a reading nor a picture of the page to read.
        """
        check(cancelled)
        crops = page.crops
        if page.image is not None:
            if page.reading is None or not _can_be_built_on(page.reading):
                return self._pages.read(page.image, effort, cancelled, page.image_page)
            crops = (*crops, Crop("page", _WHOLE, page.image))
        if page.reading is None:
            return self._without_reading(page, effort, cancelled)
        rereads = []
        for crop in crops:
            check(cancelled)
            rereads.append(self._reread(page.reading, crop, cancelled))
        read = page_with_points(merge(page.reading, rereads), self._reader.provenance)
        return self._with_tables(page, read, cancelled)

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

    def _with_tables(self, page: PageInput, read: Page, cancelled: Cancelled) -> Page:
        """The page with its tables, where a picture shows their structure; an overview is enough for that."""
        data = page.image if page.image is not None else page.overview
        if data is None or not any(region.type is RegionType.TABLE for region in read.regions):
            return read
        number = page.image_page if page.image is not None else 0
        image = decode(data, name="page", page=number)
        return with_tables(read, image, self._pages.tables, cancelled, reread=page.image is not None)

    def _without_reading(self, page: PageInput, effort: Effort, cancelled: Cancelled) -> Page:
        if page.overview is None:
            raise InputError(
                "the page came with neither a reading nor a picture", remedy="send the page's picture or its reading"
            )
        return self._pages.read(page.overview, effort, cancelled)

    def _reread(self, page: Page, crop: Crop, cancelled: Cancelled) -> Reread:
        image = decode(crop.data, limits=_CROP_LIMITS, name=f"crop {crop.part_id}")
        if not _has_area(crop):
            return Reread(crop.box)
        height, width = image.shape[:2]
        doubtful = in_doubt(page, crop.box)
        asked = {line.id for line in doubtful}
        sure = [line for line in page.lines if line.id not in asked and touches(line.box, crop.box)]
        known = [Known(_seen(line, width, height, crop), _spoken(line)) for line in doubtful]
        read = self._reader.reread(image, known, [_seen(line, width, height, crop) for line in sure], cancelled)
        provenance = self._reader.provenance
        return Reread(
            box=crop.box,
            again={
                line.id: Opinion(answer.text, answer.score, answer.confidence or 0.0, provenance)
                for line, answer in zip(doubtful, read.known, strict=True)
                if answer.text
            },
            found=tuple(
                Line("", each.text, _on_page(each.quad, width, height, crop), each.score, each.confidence, provenance)
                for each in read.found
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


def _spoken(line: Line) -> Witness:
    """The edge's reading as a witness; an impossible score is worth nothing."""
    score = line.score if 0.0 <= line.score <= 1.0 else 0.0
    return Witness(line.text, (score,) * len(line.text))


def _seen(line: Line, width: int, height: int, crop: Crop) -> Quad:
    return _grown(absolute(to_crop(line.polygon, crop.box), width, height))


def _grown(quad: Quad) -> Quad:
    """A quad that came over the wire: rounding to 1/4096 of the page may have shaved its strokes by a pixel."""
    middle = quad.mean(axis=0)
    return np.asarray(quad + np.sign(quad - middle), dtype=np.float32)
