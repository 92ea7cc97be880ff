"""Two-column pages as in a journal: header, title, columns with headings, paragraphs, a table, a chart, page number."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.generator.canvas import Canvas, Style, rectangle
from benchmarks.generator.drawing import Drawing
from benchmarks.generator.fonts import FONTS, Face
from benchmarks.generator.prose import heading, paragraph
from benchmarks.generator.tables import Column, Ruling, draw_table
from benchmarks.generator.truth import Language, Split
from benchmarks.generator.words import Words, words
from benchmarks.generator.writer import Writer
from docferry.document import RegionType

RULINGS = {Split.TRAIN: Ruling.GRID, Split.CALIBRATE: Ruling.LINES, Split.JUDGE: Ruling.BOOK}
CENTRED = {Split.TRAIN: True, Split.CALIBRATE: False, Split.JUDGE: True}
GUTTERS = {Split.TRAIN: (0.03, 0.04), Split.CALIBRATE: (0.05, 0.06), Split.JUDGE: (0.04, 0.05)}
JOURNALS = {
    Split.TRAIN: ("Annals of Common Things", "通用学报"),
    Split.CALIBRATE: ("Proceedings of the Quiet Society", "实用文集"),
    Split.JUDGE: ("Quarterly Review of Works", "综合评论"),
}


@dataclass(frozen=True, slots=True)
class _Page:
    rng: random.Random
    table: Words
    split: Split
    language: Language

    @property
    def chinese(self) -> bool:
        return self.language is Language.ZH


def draw_page(rng: random.Random, split: Split, language: Language) -> Drawing:
    """One page, flat and clean, with its truth; the title is its field `title`."""
    page = _Page(rng, words(split, language), split, language)
    width = rng.randint(1150, 1350)
    canvas = Canvas(width, round(width * 1.414))
    if page.chinese:
        style = Style(FONTS[split][Face.CHINESE][0], round(width / rng.uniform(56, 62)), leading=1.0)
    else:
        face = rng.choice((Face.SERIF, Face.SERIF, Face.SANS))
        style = Style(rng.choice(FONTS[split][face]), round(width / rng.uniform(60, 68)), leading=1.08)
    margin = width * rng.uniform(0.06, 0.09)
    head = Writer(canvas, style, margin, width - margin, width * 0.045)
    _running_head(page, head)
    title = _title(page, head)
    bottom = canvas.image.height - width * 0.085
    gutter = width * rng.uniform(*GUTTERS[split])
    middle = (head.x0 + head.x1) / 2
    extras = [_insert_table, _insert_chart] if rng.random() < 0.8 else [_insert_table]
    rng.shuffle(extras)
    for x0, x1 in ((head.x0, middle - gutter / 2), (middle + gutter / 2, head.x1)):
        column = Writer(canvas, style, x0, x1, head.y)
        _fill(page, column, bottom, extras.pop() if extras else None)
    foot = Writer(canvas, style, head.x0, head.x1, canvas.image.height - width * 0.06)
    with canvas.region(RegionType.PAGE_NUMBER):
        foot.row([(str(rng.randint(1, 400)), 0.5, "m")])
    fields = {"title": title}
    return Drawing(canvas.finished(canvas.image.height), tuple(canvas.lines), tuple(canvas.regions), fields, {})


def _running_head(page: _Page, writer: Writer) -> None:
    with writer.canvas.region(RegionType.HEADER):
        issue = f"{page.rng.randint(1, 60)} ({page.rng.randint(1980, 2025)})"
        writer.row([(JOURNALS[page.split][page.chinese], 0, "l"), (issue, 1, "r")], writer.style.scaled(0.85))
    writer.rule()


def _title(page: _Page, writer: Writer) -> str:
    writer.gap(0.8)
    topic = page.rng.choice(page.table["topics"])
    text = topic if page.chinese else f"{topic} and {heading(page.rng, page.table, page.language)}"
    big = writer.style.scaled(1.8, bold=True)
    anchor, place = ("m", 0.5) if CENTRED[page.split] else ("l", 0.0)
    with writer.canvas.region(RegionType.TITLE):
        printed = writer.paragraph(text, big, place=place, anchor=anchor)
    with writer.canvas.region(RegionType.TEXT):
        writer.row(
            [
                (
                    "、".join(page.rng.sample(page.table["staff"], 2))
                    if page.chinese
                    else " and ".join(page.rng.sample(page.table["staff"], 2)),
                    place,
                    anchor,
                )
            ]
        )
    writer.gap(1)
    return ("" if page.chinese else " ").join(printed)


def _fill(page: _Page, column: Writer, bottom: float, extra: object) -> None:
    """Headings and paragraphs down to `bottom`, with one table or chart on the way."""
    style, rng = column.style, page.rng
    placed = extra is None
    while True:
        room = int((bottom - column.y) / style.line_height)
        if room < 4:
            return
        if not placed and (room < 26 or rng.random() < 0.4):
            placed = True
            if room >= 12:
                (_insert_table if extra is _insert_table else _insert_chart)(page, column)
            continue
        if rng.random() < 0.35 and room > 6:
            with column.canvas.region(RegionType.TITLE):
                column.paragraph(heading(rng, page.table, page.language), style.scaled(1.15, bold=True))
            room -= 2
        lines = style.wrap(paragraph(rng, page.table, page.language, rng.randint(2, 6)), column.width)
        with column.canvas.region(RegionType.TEXT):
            for line in lines[:room]:
                column.row([(line, 0, "l")])
        column.gap(0.6)


def _insert_table(page: _Page, column: Writer) -> None:
    rng, nouns = page.rng, page.table["nouns"]
    columns = [
        Column("项目" if page.chinese else "Name", 2),
        *(Column(str(rng.randint(1900, 2020)), 1, "r") for _ in range(rng.randint(2, 3))),
    ]
    rows = [
        [noun, *(f"{rng.uniform(1, 99):.1f}" for _ in columns[1:])] for noun in rng.sample(nouns, rng.randint(3, 6))
    ]
    small = column.style.scaled(0.9)
    with column.canvas.region(RegionType.TABLE_CAPTION):
        number = rng.randint(1, 9)
        column.paragraph(
            f"表{number} {heading(rng, page.table, page.language)}"
            if page.chinese
            else f"Table {number}. {heading(rng, page.table, page.language)}",
            small,
        )
    column.gap(0.2)
    column.y = draw_table(
        column.canvas, small, columns, rows, x0=column.x0, x1=column.x1, y=column.y, ruling=RULINGS[page.split]
    )
    column.gap(0.8)


def _insert_chart(page: _Page, column: Writer) -> None:
    """A bar chart without text, and its caption."""
    rng = page.rng
    height = column.style.line_height * 8
    bars = rng.randint(4, 9)
    step = column.width * 0.9 / bars
    base, left = column.y + height, column.x0 + column.width * 0.06
    shade = rng.randint(70, 150)
    for index in range(bars):
        x = left + index * step
        top = base - height * rng.uniform(0.15, 0.95)
        column.canvas.pen.rectangle(
            (round(x), round(top), round(x + step * 0.65), round(base)), fill=(shade, shade, shade)
        )
    column.canvas.rule(left - 6, column.x1, base, thickness=2)
    column.canvas.upright(left - 6, column.y, base, thickness=2)
    column.canvas.add_region(RegionType.CHART, rectangle(left - 6, column.y, column.x1, base + 2))
    column.y = base + column.style.line_height * 0.4
    with column.canvas.region(RegionType.IMAGE_CAPTION):
        number = rng.randint(1, 9)
        text = (
            f"图{number} {heading(rng, page.table, page.language)}"
            if page.chinese
            else f"Figure {number}. {heading(rng, page.table, page.language)}"
        )
        column.paragraph(text, column.style.scaled(0.9))
    column.gap(0.8)
