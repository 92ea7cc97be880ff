"""Visual tokens a page costs the full model: what is in doubt, with the edge's boxes, beside MinerU's two steps.

`python -m benchmarks.visual_tokens [--data DIR] [--pages N] [--limit N] [--json FILE]`. Nothing is asked of any
model: what a picture costs follows from its size. The two steps are the page at 1036 x 1036 and every block's crop at
its own size; ours are the crops that `FullReader` asks about, scaled by the height of their text. Both cut the same
blocks. `crops` takes the edge's boxes for given; `with_layout` adds the page wherever `FullReader` doubts the layout.

On generated pages (`--pages`) the edge reads, and the truth tells which blocks it got wrong. Then the share of wrong
blocks that are asked about is printed, and how many blocks are exact if the model that answers makes no mistakes: it
is the ceiling of both ways, not any model's accuracy. `--data` names omnidocbench_demo, whose pages are counted only.

Prints, last, one JSON line: `{generated | omnidocbench {pages, blocks, asked, layouts, two_steps, crops, share,
share_with_layout, [wrong, covered, coverage, missed, exact {edge, ours, two_steps}]}}`; tokens are sums over all pages,
`missed` are printed lines that no block holds.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.deep_reading import as_png
from benchmarks.generated_pages import MIX, GeneratedPage, generated_page
from benchmarks.generator.truth import Split
from docferry.document import Page, Region
from docferry.model_store import default_store
from docferry_cloud.engine import Cancelled, Effort, PageInput
from docferry_cloud.vlm import pictures
from docferry_cloud.vlm.answers import Reply
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.prompts import Ask
from docferry_cloud.vlm.reader import FullReader
from docferry_edge.assess import assess
from docferry_edge.calibrating.matching import TextLine, line_groups
from docferry_edge.examine import default_calibration
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Reader

LAYOUT_TOKENS = pictures.visual_tokens(np.zeros((pictures.LAYOUT_SIDE, pictures.LAYOUT_SIDE, 3), np.uint8))


def never() -> bool:
    """Nobody leaves."""
    return False


@dataclass(slots=True)
class Listener:
    """A `Model` that answers nothing and keeps what it was asked."""

    provenance: str = "cloud:vlm-listener@000000"
    asked: list[Question] = field(default_factory=list)

    def ask(self, questions: Sequence[Question], _cancelled: Cancelled) -> list[Reply]:
        """Keep the questions."""
        self.asked += questions
        return [Reply("", failure="nobody is there") for _ in questions]


def tokens(questions: Iterable[Question]) -> int:
    """What the pictures of these questions cost."""
    return sum(pictures.visual_tokens(question.image) for question in questions if question.image is not None)


def count(page: PageImage, read: Page) -> Counter[str]:
    """Blocks and visual tokens of one page, both ways."""
    listener = Listener()
    FullReader(listener).deepen(PageInput(reading=read, image=as_png(page)), read, Effort.AUTO, never)
    blocks = [cut for region in read.regions if (cut := pictures.crop(page.pixels, region.box)) is not None]
    layouts = sum(question.ask is Ask.LAYOUT for question in listener.asked)
    return Counter(
        pages=1,
        blocks=len(blocks),
        asked=len(listener.asked) - layouts,
        layouts=layouts,
        two_steps=LAYOUT_TOKENS + sum(pictures.visual_tokens(pictures.fitted(cut)) for cut in blocks),
        crops=tokens(question for question in listener.asked if question.ask is not Ask.LAYOUT),
    )


def asked_about(page: PageImage, read: Page) -> set[str]:
    """Regions that `FullReader` asks about: each is taken alone, so that its question can be told."""
    found = set()
    whole = PageInput(reading=read, image=as_png(page))
    for region in read.regions:
        listener = Listener()
        alone = replace(read, regions=(region,))
        FullReader(listener).deepen(whole, alone, Effort.AUTO, never)
        if any(question.ask is not Ask.LAYOUT for question in listener.asked):
            found.add(region.id)
    return found


def wrong_regions(generated: GeneratedPage, regions: Sequence[Region]) -> tuple[set[str], int]:
    """Regions with a line that the truth spells otherwise, and how many of the truth's lines nobody has read."""
    lines = [(region.id, generated.read(line)) for region in regions for line in region.lines]
    wrong, missed = set(), 0
    for printed, got in line_groups(generated.printed(), [line for _, line in lines]):
        if not got:
            missed += len(printed)
        elif _plain(printed) != _plain(got):
            wrong |= {owner for owner, line in lines if line in got}
    return wrong, missed


def _plain(lines: Sequence[TextLine]) -> Counter[str]:
    """The letters and digits of a group, in any order of its lines; case and punctuation count, spaces do not."""
    return Counter(letter for _, text in lines for letter in text if not letter.isspace())


def on_generated(reader: Reader, pages: int) -> Counter[str]:
    """Generated pages of the JUDGE split, read by the edge."""
    calibration = default_calibration()
    total: Counter[str] = Counter()
    for number in range(pages):
        kind, language = MIX[number % len(MIX)]
        made = generated_page(kind, language, number, Split.JUDGE, reader.orientation)
        read = assess(reader.read_all(made.page), calibration).reading.document.pages[0]
        asked = asked_about(made.page, read)
        wrong, missed = wrong_regions(made, read.regions)
        total += count(made.page, read)
        total += Counter(wrong=len(wrong), covered=len(wrong & asked), missed=missed)
        print(f"{made.truth.id:24} {total['crops'] / total['two_steps']:6.3f}  {dict(total)}", flush=True)
    return total


def on_files(reader: Reader, data: Path, limit: int | None) -> Counter[str]:
    """A dataset's pages, read by the edge; counted only."""
    calibration = default_calibration()
    total: Counter[str] = Counter()
    for path in sorted((data / "images").iterdir())[:limit]:
        page = reader.prepare(Frame(path.read_bytes(), path.name))
        total += count(page, assess(reader.read_all(page), calibration).reading.document.pages[0])
        print(f"{path.name[:40]:40} {total['crops'] / total['two_steps']:6.3f}  {dict(total)}", flush=True)
    return total


def summary(total: Counter[str]) -> dict[str, Any]:
    """The sums with what follows from them."""
    with_layout = total["crops"] + total["layouts"] * LAYOUT_TOKENS
    found: dict[str, Any] = dict(total) | {
        "share": round(total["crops"] / total["two_steps"], 4),
        "share_with_layout": round(with_layout / total["two_steps"], 4),
    }
    if total["wrong"]:
        uncovered = total["wrong"] - total["covered"]
        found["coverage"] = round(total["covered"] / total["wrong"], 4)
        found["exact"] = {
            "edge": round(1 - total["wrong"] / total["blocks"], 4),
            "ours": round(1 - uncovered / total["blocks"], 4),
            "two_steps": 1.0,
        }
    return found


def main() -> None:
    """Print the sums as they grow, and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of omnidocbench_demo")
    parser.add_argument("--pages", type=int, default=40, help="generated pages")
    parser.add_argument("--limit", type=int, help="pages of the dataset")
    parser.add_argument("--json", type=Path, help="also write the JSON line here")
    arguments = parser.parse_args()
    reader = Reader.load(default_store())
    result = {"generated": summary(on_generated(reader, arguments.pages))}
    if arguments.data:
        result["omnidocbench"] = summary(on_files(reader, arguments.data, arguments.limit))
    line = json.dumps(result)
    print(line)
    if arguments.json:
        arguments.json.write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
