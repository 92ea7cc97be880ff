"""Reading a prepared page on the device: hints first, then lines in reading order, then the finished reading."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from docferry.document import Degradation, Document, Line, Page, Polygon, Quality, Reading, Region, Trace
from docferry.model_store import ModelStore
from docferry.model_store.bundle import installed
from docferry.reading_order import Block, LayoutBox, arrange, line_id, region_id
from docferry.vision.detector import Detection, Detector
from docferry.vision.ink import ink_around
from docferry.vision.layout import LayoutDetector
from docferry.vision.orientation import OrientationClassifier
from docferry.vision.quads import Quad, relative, size
from docferry.vision.recogniser import Recogniser, RecogniserSettings, has_cjk, unstroked
from docferry.vision.sessions import open_network
from docferry_edge.preparation.quality import hint
from docferry_edge.prepare import Frame, PageImage, PrepareSettings, prepare

DETECTOR = "ppocrv5-det"
RECOGNISER = "ppocrv6-rec-small"
LAYOUT = "layout-cdla"
ORIENTATION = "page-orientation"
MODELS = (DETECTOR, RECOGNISER, LAYOUT, ORIENTATION)
"""The models a reader needs, by their names in the model store."""

_HASH_DIGITS = 6
_SMALLER = 0.5
"""Share of its pixels that the detector gets on a device under strain."""


@dataclass(frozen=True, slots=True)
class LayoutHint:
    """The first thing known of a page: its blocks, raw, best score first. Empty on many receipts."""

    regions: tuple[LayoutBox, ...]


@dataclass(frozen=True, slots=True)
class LinesHint:
    """Where text stands: one polygon per line, in reading order."""

    polygons: tuple[Polygon, ...]


@dataclass(frozen=True, slots=True)
class LineRead:
    """One line has been read; lines come in reading order."""

    line: Line


Event = LayoutHint | LinesHint | LineRead | Reading
"""What `Reader.read` yields: one LayoutHint, one LinesHint, any number of LineReads, and last the Reading."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How pages are read.

    Attributes:
        first_lines: Lines recognised before the first of them is yielded; small, so that text shows soon.
        lines: Lines recognised together after that; more fill the batches better.
        least_score: A line the recogniser scores lower is noise the detector took for text (a logo, an edge).
    """

    first_lines: int = 8
    lines: int = 48
    least_score: float = 0.5


@dataclass(frozen=True, slots=True)
class Reader:
    """The device's reader: loaded networks and nothing that changes.

    Safe to use from several threads: every call of `read` keeps its state in its own generator. Each network uses
    the number of threads it was loaded with, so parallel calls compete for the same cores.
    """

    detector: Detector
    recogniser: Recogniser
    layout: LayoutDetector
    orientation: OrientationClassifier
    name: str
    layout_name: str
    settings: ReadSettings = field(default_factory=ReadSettings)

    @classmethod
    def load(cls, store: ModelStore, threads: int = 2, settings: ReadSettings | None = None) -> Reader:
        """Load the networks: built ones where the store has them, else the originals.

        Args:
            store: Where the models of `MODELS`, or a bundle built from them, have been pulled to.
            threads: Threads one page may use.
            settings: The defaults when None.

        Raises:
            ModelError: A model is missing or damaged.
        """
        built = installed(store)
        networks = {
            model: open_network(
                built.get(model) or store.path(model),
                # The recogniser has many small inputs: it fills the cores with lanes.
                threads=1 if model == RECOGNISER else threads,
            )
            for model in MODELS
        }
        return cls(
            detector=Detector(networks[DETECTOR]),
            recogniser=Recogniser.of(networks[RECOGNISER], RecogniserSettings(lanes=threads)),
            layout=LayoutDetector.of(networks[LAYOUT]),
            orientation=OrientationClassifier.of(networks[ORIENTATION]),
            name=_reader_name(store, built.get(RECOGNISER)),
            layout_name=f"cdla@{store.sha256(LAYOUT)[:_HASH_DIGITS]}",
            settings=settings or ReadSettings(),
        )

    def prepare(self, frame: Frame, settings: PrepareSettings | None = None) -> PageImage:
        """Prepare a frame with this reader's orientation network; see `docferry_edge.prepare.prepare`."""
        return prepare(frame, self.orientation, settings)

    def read(self, page: PageImage, degradation: Degradation = Degradation.NONE) -> Generator[Event, None, None]:
        """Read a page, yielding what is known as soon as it is known.

        The consumer may stop between any two events by closing the generator; nothing further is computed.

        Args:
            page: A prepared page.
            degradation: What to leave out. FEWER_THREADS is for whoever loads the reader to heed.
        """
        regions = self.layout.detect(page.pixels)
        yield LayoutHint(regions)
        detector = self.detector
        if degradation >= Degradation.SMALLER_DETECTION:
            area = int(detector.settings.area * _SMALLER)
            detector = replace(detector, settings=replace(detector.settings, area=area))
        detection = detector.detect(page.pixels)
        quads = detection.quads
        polygons = [relative(quad, page.width, page.height) for quad in quads]
        blocks = arrange(page.width, page.height, regions, polygons)
        yield LinesHint(tuple(polygons[index] for block in blocks for index in block.members))
        quality = _with_text_height(page.quality, quads)
        lines: dict[str, Line] = {}
        if degradation < Degradation.STRUCTURE_ONLY:
            for line in self._lines(page, blocks, detection):
                lines[line.id] = line
                yield LineRead(line)
        finished = _page(page, blocks, lines, quality, f"edge:{self.layout_name}")
        yield Reading(Document((finished,)), self.name, degradation)

    def read_all(self, page: PageImage) -> Reading:
        """The finished reading of a page, for those who need no hints."""
        for event in self.read(page):
            if isinstance(event, Reading):
                return event
        raise AssertionError("read() ends with a Reading")

    def _lines(self, page: PageImage, blocks: Sequence[Block], found: Detection) -> Iterator[Line]:
        places = [
            (line_id(order, place), index)
            for order, block in enumerate(blocks)
            for place, index in enumerate(block.members)
        ]
        ink = ink_around(page.pixels, found.quads)
        start, count = 0, self.settings.first_lines
        latin = True
        while start < len(places):
            chunk = places[start : start + count]
            read = self.recogniser.read(page.pixels, [found.quads[index] for _, index in chunk])
            latin = latin and not any(has_cjk(recognised.text) for recognised in read)
            for (name, index), recognised in zip(chunk, read, strict=True):
                if recognised.text and recognised.score >= self.settings.least_score:
                    yield Line(
                        id=name,
                        text=unstroked(recognised.text) if latin else recognised.text,
                        polygon=relative(recognised.quad, page.width, page.height),
                        score=recognised.score,
                        provenance=f"edge:{self.name}",
                        trace=Trace(recognised.peaks, recognised.gap, found.scores[index], ink[index]),
                    )
            start += count
            # A few lines left over would not fill the lanes: they go with the chunk before them.
            left = len(places) - start
            count = left if left < 1.5 * self.settings.lines else self.settings.lines


def _reader_name(store: ModelStore, built: Path | None) -> str:
    """What a reading says it was read with; a built recogniser reads a little differently, so it has its own name."""
    if built is None:
        return f"ppocrv6-small@{store.sha256(RECOGNISER)[:_HASH_DIGITS]}"
    # A built model's folder is named after its hash.
    return f"ppocrv6-small-int8@{built.parent.name[:_HASH_DIGITS]}"


def _page(page: PageImage, blocks: Sequence[Block], lines: dict[str, Line], quality: Quality, provenance: str) -> Page:
    """The finished page; the ids are those the lines were yielded with, so gaps mark places without readable text."""
    regions: list[Region] = []
    for order, block in enumerate(blocks):
        held = [lines.get(line_id(order, place)) for place in range(len(block.members))]
        found = tuple(line for line in held if line is not None)
        if not found and block.score == 0:
            continue
        regions.append(
            Region(
                id=region_id(order),
                type=block.type,
                box=block.box,
                order=len(regions),
                score=block.score,
                lines=found,
                provenance=provenance if block.score else "",
            )
        )
    return Page(page.width, page.height, tuple(regions), quality)


def _with_text_height(quality: Quality, quads: Sequence[Quad]) -> Quality:
    if not quads:
        return quality
    measured = replace(quality, text_height=round(median(size(quad)[1] for quad in quads), 1))
    return replace(measured, hint=quality.hint or hint(measured))
