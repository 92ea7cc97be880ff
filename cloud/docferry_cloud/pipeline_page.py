"""Reading a whole page from its pixels, as the edge does, but without the edge's limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from docferry.document import Line, Page, Quality, RegionType
from docferry.model_store import ModelStore
from docferry.reading_order import LayoutBox, assemble_page
from docferry.vision.images import Pixels, decode
from docferry.vision.layout import LayoutDetector
from docferry.vision.orientation import Orientation, OrientationClassifier, turned
from docferry.vision.quads import relative, size
from docferry.vision.sessions import open_network
from docferry_cloud.charts.reader import (
    as_chart,
    as_diagram,
    chart_of,
    may_be_chart,
    read_chart,
    whole_diagram,
    with_charts,
)
from docferry_cloud.deep.lines import DeepLine
from docferry_cloud.deep.reader import DeepReader
from docferry_cloud.documents.files import FileKind, kind_of
from docferry_cloud.documents.native_page import read_native
from docferry_cloud.documents.office import read_office
from docferry_cloud.documents.pdf import read_page
from docferry_cloud.engine import Cancelled, Effort, check
from docferry_cloud.excerpt import TABLE_SCORE, as_one_table, from_sheet, is_excerpt, is_wide, legible, on_sheet
from docferry_cloud.tables.pages import with_tables
from docferry_cloud.tables.reader import TableReader

_LAYOUT = "layout-cdla"
_ORIENTATION = "page-orientation"
_SHARPNESS_SIDE = 1000

SURE_OF_TURN = 0.6
"""Below this score the orientation network's answer is tried both ways, by reading a few lines."""

_LINES_TRIED = 6


@dataclass(frozen=True, slots=True)
class PageReader:
    """Orientation, layout boxes, text lines, reading order and tables of a page. Safe to use from several threads."""

    reader: DeepReader
    layout: LayoutDetector
    orientation: OrientationClassifier
    tables: TableReader
    layout_provenance: str

    @classmethod
    def load(cls, store: ModelStore, reader: DeepReader, *, threads: int) -> PageReader:
        """Load the layout and orientation networks beside a text reader.

        Raises:
            ModelError: A model is missing or cannot be loaded.
        """
        layout = LayoutDetector.of(open_network(store.path(_LAYOUT), threads=threads))
        orientation = OrientationClassifier.of(open_network(store.path(_ORIENTATION), threads=threads))
        tables = TableReader.load(store, reader, threads=threads)
        page_reader = cls(reader, layout, orientation, tables, f"cloud:{_LAYOUT}@{store.sha256(_LAYOUT)[:6]}")
        page_reader.warm_up()
        return page_reader

    def warm_up(self) -> None:
        """Run both networks once, so that the first page pays for no lazy set-up."""
        blank = np.full((320, 240, 3), 255, dtype=np.uint8)
        self.layout.detect(blank)
        self.orientation.classify(blank)

    def read(self, data: bytes, effort: Effort, cancelled: Cancelled, number: int = 0) -> Page:
        """Read a picture of a page, or page `number` of a file that holds several: TIFF, PDF, Office.

        Raises:
            UnreadableImage, ImageTooLarge: It is no file we read, or too large a one.
            InputError: The file is locked.
            EngineError: `cancelled` said True.
        """
        kind = kind_of(data)
        if kind is FileKind.PICTURE:
            return self._read_picture(decode(data, name="page", page=number), effort, cancelled)
        if kind is not FileKind.PDF:
            return read_office(data, kind.value, number)
        page = read_page(data, number)
        check(cancelled)
        if page.layer is None:
            return self._read_picture(page.image, effort, cancelled)
        read = read_native(
            page,
            page.layer,
            self.layout,
            self.tables.structure,
            self.reader,
            cancelled,
            provenance=self.layout_provenance,
        )
        return with_charts(read, page.image, None, cancelled)

    def _read_picture(self, image: Pixels, effort: Effort, cancelled: Cancelled) -> Page:
        check(cancelled)
        image, turn = self._upright(image, cancelled)
        check(cancelled)
        boxes = self._layout(image)
        check(cancelled)
        excerpt = is_excerpt(image)
        shown = legible(image, self.reader.first.detect(image).quads) if excerpt else image
        answers = self._lines(shown, effort, cancelled)
        height, width = shown.shape[:2]
        lines = [
            Line("", a.text, relative(a.quad, width, height), a.score, a.confidence, self.reader.provenance)
            for a in answers
        ]
        quality = _quality(image, turn, answers, image.shape[0] / height)
        height, width = image.shape[:2]
        page = assemble_page(width, height, boxes, lines, quality, provenance=self.layout_provenance)
        if excerpt and (table := as_one_table(page)) is not None:
            table = with_tables(table, shown, self.tables, cancelled, reread=True, least_score=TABLE_SCORE)
            if table.regions[0].html:
                return table
        page = with_tables(page, shown, self.tables, cancelled, reread=True)
        if excerpt and not any(region.html for region in page.regions):
            whole = LayoutBox(RegionType.CHART, (0.0, 0.0, 1.0, 1.0), 1.0)
            chart = None
            if may_be_chart(lines):
                # A quick look is too little for the small print of an axis; a full one is not had twice.
                skimmed = effort is Effort.FAST
                chart = read_chart(image, self.reader, cancelled) if skimmed else chart_of(image, lines)
            diagram = whole_diagram(page, image) if chart is None else None
            if chart is not None or diagram is not None:
                page = assemble_page(width, height, [whole], lines, quality, provenance=self.layout_provenance)
                first, *rest = page.regions
                if chart is not None:
                    first = as_chart(first, chart)
                elif diagram is not None:
                    first = as_diagram(first, diagram)
                return replace(page, regions=(first, *rest))
        return with_charts(page, shown, self.reader, cancelled)

    def _layout(self, image: Pixels) -> tuple[LayoutBox, ...]:
        if not (is_excerpt(image) and is_wide(image)):
            return self.layout.detect(image)
        sheet, place = on_sheet(image)
        return from_sheet(self.layout.detect(sheet), place)

    def _lines(self, image: Pixels, effort: Effort, cancelled: Cancelled) -> list[DeepLine]:
        if effort is Effort.FAST:
            return self.reader.skim(image, cancelled)
        return self.reader.read(image, cancelled, everything=effort is Effort.DEEP)

    def _upright(self, image: Pixels, cancelled: Cancelled) -> tuple[Pixels, Orientation]:
        turn = self.orientation.classify(image)
        if turn.degrees == 0:
            return image, turn
        upright = turned(image, -turn.degrees % 360)
        if turn.score >= SURE_OF_TURN or self._legibility(upright, cancelled) >= self._legibility(image, cancelled):
            return upright, turn
        return image, Orientation(0, turn.upright_score, turn.upright_score)

    def _legibility(self, image: Pixels, cancelled: Cancelled) -> float:
        """The mean score of the page's longest lines; text that stands on its head reads badly."""
        quads = sorted(self.reader.first.detect(image).quads, key=lambda quad: -size(quad)[0])[:_LINES_TRIED]
        answers = self.reader.main.read(image, quads)
        check(cancelled)
        return sum(answer.score for answer in answers) / len(answers) if answers else 0.0


def _quality(image: Pixels, turn: Orientation, answers: list[DeepLine], shrink: float) -> Quality:
    """What the picture is like; `shrink` is its size for one of what the lines were read from."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    scale = _SHARPNESS_SIDE / max(grey.shape)
    small = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    dark, bright = np.percentile(small, (5, 95))
    heights = [size(answer.quad)[1] * shrink for answer in answers]
    return Quality(
        sharpness=float(cv2.Laplacian(small, cv2.CV_64F).var()),
        brightness=float(small.mean()) / 255,
        contrast=float(bright - dark) / 255,
        text_height=float(np.median(heights)) if heights else 0.0,
        orientation=turn.degrees,
        orientation_score=turn.score,
    )
