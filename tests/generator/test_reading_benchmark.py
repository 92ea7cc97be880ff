"""What the reading benchmark counts."""

from __future__ import annotations

import pytest

from benchmarks.bootstrap import word_f1_gain
from benchmarks.metrics import WordCounts
from benchmarks.readers import Answer, _tesseract_lines
from benchmarks.reading import hint_summary, line_errors


def box(x0, y0, x1, y1):
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


def test_line_errors_follow_place_and_not_order():
    truth = [(box(0, 0, 100, 20), "TOTAL"), (box(200, 0, 260, 20), "9.00")]
    assert line_errors(truth, truth[::-1]) == (0, 8)


def test_words_of_the_truth_are_compared_with_the_line_that_covers_them():
    words = [(box(0, 0, 40, 20), "Blue"), (box(50, 0, 100, 20), "ink")]
    assert line_errors(words, [(box(0, 0, 102, 21), "Blue jnk")]) == (1, 7)


def test_a_line_that_was_not_found_counts_whole_and_an_invented_one_not_at_all():
    truth = [(box(0, 0, 100, 20), "TOTAL")]
    assert line_errors(truth, [(box(0, 300, 100, 320), "STAMP")]) == (5, 5)


@pytest.mark.parametrize(("worse", "sure"), [(40, True), (1, False)])
def test_a_gain_is_sure_only_when_the_documents_agree(worse, sure):
    ours = [WordCounts(90, 100, 100)] * 40
    theirs = [WordCounts(80, 100, 100)] * worse + [WordCounts(90, 100, 100)] * (40 - worse)
    gain = word_f1_gain(ours, theirs)
    assert gain.difference == pytest.approx(worse / 400)
    assert gain.low <= gain.difference <= gain.high
    assert (gain.low > 0) is sure


def test_tesseracts_words_are_joined_by_line():
    columns = ("level", "page_num", "block_num", "par_num", "line_num", "word_num", "left", "top", "width", "height")
    rows = [
        [*columns, "conf", "text"],
        ["4", "1", "1", "1", "1", "0", "10", "5", "90", "20", "-1", ""],
        ["5", "1", "1", "1", "1", "1", "10", "5", "40", "20", "96", "Blue"],
        ["5", "1", "1", "1", "1", "2", "60", "6", "40", "18", "91", '"ink"'],
        ["5", "1", "1", "1", "2", "1", "10", "40", "40", "20", "90", "9.00"],
    ]
    table = "\n".join("\t".join(row) for row in rows)
    assert _tesseract_lines(table) == ((box(10, 5, 100, 25), 'Blue "ink"'), (box(10, 40, 50, 60), "9.00"))


def test_the_hint_is_compared_with_its_parts_alone():
    answers = [Answer((), full_ms=500, cpu_s=0.5, layout_ms=60, hint_ms=140)] * 20
    parts = [{"decode": 10.0, "orientation": 20.0, "layout": 30.0, "detector": 40.0}] * 20
    summary = hint_summary(answers, parts)
    assert summary["p95_ratio"] == pytest.approx(1.4)
    assert summary["layout_ms"] == 60
    assert summary["detector_alone_ms"] == 40
