"""Split-aware reading: only what the first reader doubts, or cannot read, goes to the model, as crops of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from docferry.document import Box, Page, Region, RegionType
from docferry.vision.images import Pixels
from docferry_cloud.engine import Cancelled, Cost, Effort, PageInput, check
from docferry_cloud.pipeline_merge import DOUBT
from docferry_cloud.vlm import pictures, views
from docferry_cloud.vlm.answers import Reply, read_answer
from docferry_cloud.vlm.layout import parse_layout
from docferry_cloud.vlm.merge import merged, with_layout
from docferry_cloud.vlm.model import Model, Question
from docferry_cloud.vlm.prompts import Ask, ask_of
from docferry_cloud.vlm.views import View

_LEAST_PICTURE = 0.01
"""Share of the page from which a picture is worth a question."""
_LOOSE = 0.5
"""Share of a page's letters outside of all layout boxes from which the layout itself is in doubt."""
_FURNITURE = frozenset({RegionType.HEADER, RegionType.FOOTER, RegionType.PAGE_NUMBER})


@dataclass(frozen=True, slots=True, eq=False)
class FullReader:
    """The second step: a model's reading of pages that were read before. Safe to use from several threads.

    Attributes:
        always_layout: Whether the model lays every page out that it is shown whole, and not only those in doubt.
    """

    model: Model
    always_layout: bool = False
    name: str = "vlm"

    def doubts(self, page: PageInput, read: Page, effort: Effort) -> bool:
        """Whether there is something for the model to do; FAST never asks."""
        if effort is Effort.FAST or not views.has_view(page):
            return False
        whole = page.image is not None or page.reading is None
        return (whole and self._lays_out(read)) or any(_wanted(region, effort) for region in read.regions)

    def deepen(self, page: PageInput, read: Page, effort: Effort, cancelled: Cancelled) -> tuple[Page, Cost]:
        """Lay the page out anew if that is in doubt, then read what is in doubt or unread.

        Raises:
            Unavailable: The model cannot be reached now.
            EngineError: The model failed, or `cancelled` said True.
            UnreadableImage, ImageTooLarge: The pixels that were sent cannot be used.
        """
        if not self.doubts(page, read, effort):
            return read, Cost()
        shown = views.views(page, read)
        check(cancelled)
        cost = Cost()
        angles: Mapping[str, int] = {}
        whole = views.whole(shown)
        if whole is not None and self._lays_out(read):
            read, angles, cost = self._laid_out(read, whole, cancelled)
        asked = [
            (region, crop)
            for region in read.regions
            if _wanted(region, effort) and (crop := _crop(region, shown, angles.get(region.id, 0))) is not None
        ]
        questions = [Question(ask_of(region.type), crop) for region, crop in asked]
        replies = self.model.ask(questions, cancelled)
        new: dict[str, Region] = {}
        for (region, crop), question, reply in zip(asked, questions, replies, strict=True):
            content = read_answer(question.ask, reply, crop.shape[0] * crop.shape[1])
            new[region.id] = merged(region, content, self.model.provenance)
        regions = tuple(new.get(region.id, region) for region in read.regions)
        return replace(read, regions=regions), cost + _cost(replies)

    def _lays_out(self, read: Page) -> bool:
        return self.always_layout or layout_in_doubt(read)

    def _laid_out(self, read: Page, whole: View, cancelled: Cancelled) -> tuple[Page, Mapping[str, int], Cost]:
        """The page under the model's layout, and by how much each region's crop is to be turned."""
        question = Question(Ask.LAYOUT, pictures.page_picture(whole.image))
        (reply,) = self.model.ask([question], cancelled)
        layout = parse_layout("" if reply.failure else reply.text)
        made = with_layout(read, layout.blocks, layout.marks, self.model.provenance)
        turns = {block.box: block.angle for block in layout.blocks}
        angles = {region.id: turns.get(region.box, 0) for region in made.regions}
        return made, angles, _cost([reply])


def layout_in_doubt(read: Page) -> bool:
    """Whether most of what was read stands in no layout box, or nothing was found at all."""
    letters = sum(len(line.text) for line in read.lines)
    if not letters:
        return not any(region.html or region.latex for region in read.regions)
    loose = sum(len(line.text) for region in read.regions if region.score <= 0 for line in region.lines)
    return loose > _LOOSE * letters


def _wanted(region: Region, effort: Effort) -> bool:
    """Whether a region is in doubt, or holds what the first reader cannot read."""
    ask = ask_of(region.type)
    if ask is Ask.TABLE:
        return region.html is None or _doubted(region)
    if ask is Ask.FORMULA:
        return region.latex is None
    if ask is Ask.PICTURE:
        large = _area(region.box) >= _LEAST_PICTURE
        return large and region.html is None and (region.type is RegionType.CHART or effort is Effort.DEEP)
    if not region.lines:
        return region.type not in _FURNITURE
    return _doubted(region)


def _doubted(region: Region) -> bool:
    return any(line.confidence is None or line.confidence < DOUBT for line in region.lines)


def _crop(region: Region, shown: Sequence[View], angle: int) -> Pixels | None:
    box = _around(region)
    view = views.sharpest(shown, box) or views.sharpest(shown, region.box)
    if view is None:
        return None
    cut = views.cut_out(view, box if view.box == views.WHOLE else _clipped(box, view.box), angle)
    if cut is None or not cut.size:
        return None
    heights = [(line.box[3] - line.box[1]) / max(box[3] - box[1], 1e-6) for line in region.lines]
    # A turned crop's lines run the other way; their height is not known then.
    height = median(heights) * cut.shape[0] if heights and not angle else 0.0
    return pictures.fitted(cut, height)


def _around(region: Region) -> Box:
    """The region's box, wide enough for every line that belongs to it."""
    boxes = [region.box, *(line.box for line in region.lines)]
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return max(0.0, min(x0s)), max(0.0, min(y0s)), min(1.0, max(x1s)), min(1.0, max(y1s))


def _clipped(box: Box, outer: Box) -> Box:
    return max(box[0], outer[0]), max(box[1], outer[1]), min(box[2], outer[2]), min(box[3], outer[3])


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _cost(replies: Sequence[Reply]) -> Cost:
    return Cost(
        len(replies),
        sum(reply.tokens_in for reply in replies),
        sum(reply.tokens_out for reply in replies),
        sum(reply.seconds for reply in replies),
    )
