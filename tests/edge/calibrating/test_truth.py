"""Labels of a real reading of a drawn page, and the format truths come in."""

import io
import json

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docferry.confidence.signals import NAMES
from docferry.document import RegionType
from docferry.errors import InputError, NotFound
from docferry.model_store import default_store
from docferry_edge.calibrating.labels import Comparison
from docferry_edge.calibrating.truth import corrected, label, load_truths, truth_of
from docferry_edge.prepare import Frame
from docferry_edge.read import Reader

ROWS = (
    ("HARBOUR BOOKS SDN BHD", 50),
    ("Date 14/03/2025", 50),
    ("Tide tables 12.50", 50),
    ("TOTAL RM 12.50", 50),
    ("Thank you and come again", 50),
)
FONT_SIZE = 30


def picture() -> tuple[bytes, list[dict]]:
    """A receipt, and where each of its lines stands."""
    page = Image.new("RGB", (700, 480), "white")
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(FONT_SIZE)
    lines = []
    for number, (text, x) in enumerate(ROWS):
        pen.text((x, 60 + 70 * number), text, "black", font)
        lines.append({"bbox": list(pen.textbbox((x, 60 + 70 * number), text, font)), "text": text})
    buffer = io.BytesIO()
    page.save(buffer, "PNG")
    return buffer.getvalue(), lines


def truth(lines: list[dict], **more) -> dict:
    return {"id": "receipt-1", "image": "receipt.png", "lines": lines, **more}


@pytest.fixture(scope="module")
def read():
    reader = Reader.load(default_store(), threads=1)
    data, lines = picture()
    page = reader.prepare(Frame(data, "receipt"))
    return page, reader.read_all(page), lines


def test_a_reading_is_labelled_line_by_line(read, tmp_path) -> None:
    page, reading, lines = read
    told = [*lines[:2], {**lines[2], "text": "Tide tables 12.60"}, *lines[3:]]
    fields = {"company": "Harbour Books Sdn. Bhd.", "date": "14.03.2025", "total": "12.50"}
    found = label(truth_of(truth(told, fields=fields), tmp_path), page, reading, (700, 480))
    assert [line.right for line in found.lines] == [True, True, False, True, True]
    assert [line.wrong for line in found.lines] == [0, 0, 1, 0, 0]
    assert (found.printed, found.found) == (5, 4)
    assert all(len(line.signals) == len(NAMES) for line in found.lines)
    assert {one.name: one.right for one in found.fields} == {"merchant": True, "date": True, "total": True}
    assert all(line.trace is not None for line in reading.document.lines)


def test_words_serve_as_well_as_lines(read, tmp_path) -> None:
    page, reading, lines = read
    words = []
    for line in lines:
        x0, y0, x1, y1 = line["bbox"]
        parts, at = line["text"].split(" "), 0
        for part in parts:
            left = x0 + (x1 - x0) * at / len(line["text"])
            at += len(part) + 1
            words.append({"bbox": [left, y0, x0 + (x1 - x0) * (at - 1) / len(line["text"]), y1], "text": part})
    tree = truth([], words=words)
    del tree["lines"]
    found = label(truth_of(tree, tmp_path), page, reading, (700, 480), Comparison.LOOSE)
    assert all(line.right for line in found.lines)


def test_layout_boxes_are_judged_by_place_and_kind(read, tmp_path) -> None:
    page, reading, lines = read
    boxes = [
        {"type": region.type.value, "bbox": [v * s for v, s in zip(region.box, (700, 480, 700, 480), strict=True)]}
        for region in reading.document.pages[0].regions
        if region.score > 0
    ]
    if not boxes:
        pytest.skip("the layout network saw no box on this page")
    same = label(truth_of(truth(lines, regions=boxes), tmp_path), page, reading, (700, 480))
    assert all(right for _, right in same.layout)
    other = [{**box, "type": RegionType.EQUATION.value} for box in boxes]
    assert not any(
        right for _, right in label(truth_of(truth(lines, regions=other), tmp_path), page, reading, (700, 480)).layout
    )


def test_a_person_names_the_wrong_lines_and_the_others_are_right(read) -> None:
    _, reading, _ = read
    names = [line.id for line in reading.document.lines]
    found = corrected("picture", reading, {names[2]: "Tide tables 12.60", names[4]: ""})
    assert [line.right for line in found.lines] == [True, True, False, True, False]
    assert (found.printed, found.found) == (4, 3)
    assert found.lines[2].wrong == 1
    assert corrected("picture", reading, {names[0]: "HARBOUR BOOKS SDN BHD"}).lines[0].right


def test_a_correction_of_no_line_is_refused(read) -> None:
    with pytest.raises(InputError, match="there is no line"):
        corrected("picture", read[1], {"r9.l9": "x"})


def test_a_folder_without_truths_is_refused(tmp_path) -> None:
    with pytest.raises(NotFound, match="no labelled documents"):
        load_truths(tmp_path)


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        "[1]",
        json.dumps({"id": "a", "image": "a.png", "lines": [{"text": "no place"}]}),
        json.dumps({"id": "a", "image": "a.png", "lines": [{"text": "x", "poly": [1, 2, 3]}]}),
        json.dumps(
            {"id": "a", "image": "a.png", "lines": [{"text": "x", "bbox": [0, 0, 1, 1]}], "regions": [{"type": "no"}]}
        ),
    ],
)
def test_a_truth_in_another_format_is_named(tmp_path, broken: str) -> None:
    (tmp_path / "gt").mkdir()
    (tmp_path / "gt" / "one.json").write_text(broken, encoding="utf-8")
    with pytest.raises(InputError, match="not a document's truth"):
        load_truths(tmp_path)


def test_a_folder_is_read_by_file_name(tmp_path) -> None:
    (tmp_path / "gt").mkdir()
    for name in ("b", "a"):
        tree = {**truth([{"bbox": [0, 0, 10, 10], "text": "x"}]), "id": name}
        (tmp_path / "gt" / f"{name}.json").write_text(json.dumps(tree), encoding="utf-8")
    (tmp_path / "gt" / "c.json").write_text(json.dumps({"id": "c", "latex": "x"}), encoding="utf-8")
    found = load_truths(tmp_path)
    assert [one.id for one in found] == ["a", "b"]
    assert found[0].image == tmp_path / "receipt.png"
    assert np.array(found[0].lines[0][0]).shape == (4, 2)
