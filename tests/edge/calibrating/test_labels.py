"""Right is what stands there as printed; a lost decimal point is wrong however loosely texts are compared."""

import pytest

from docferry.errors import InputError
from docferry_edge.calibrating.labels import Comparison, dump_label, judge, labels_sha256, load_label, plain


def at(x0, text, *, row=0, x1=None):
    y0 = 40 * row
    right = x1 if x1 is not None else x0 + 10 * len(text)
    return ((x0, y0), (right, y0), (right, y0 + 20), (x0, y0 + 20)), text


def rights(truth, read, comparison=Comparison.EXACT):
    return [verdict.right for verdict in judge(truth, read, comparison).lines]


def test_a_line_is_right_as_printed_and_wrong_by_one_character() -> None:
    truth = [at(0, "TOTAL 9.00"), at(0, "CASH 10.00", row=1)]
    found = judge(truth, [at(0, "TOTAL 9.00"), at(0, "CASH 16.00", row=1)], Comparison.EXACT)
    assert [verdict.right for verdict in found.lines] == [True, False]
    assert [verdict.wrong for verdict in found.lines] == [0, 1]
    assert (found.printed, found.found) == (2, 1)


def test_rows_cut_differently_are_compared_as_wholes() -> None:
    whole = [at(0, "TOTAL 9.00", x1=300)]
    assert rights(whole, [at(0, "TOTAL", x1=120), at(200, "9.00", x1=300)]) == [True, True]
    assert rights([at(0, "TOTAL", x1=120), at(200, "9.00", x1=300)], whole) == [True]


def test_a_piece_that_is_right_by_itself_is_not_spoiled_by_its_neighbour() -> None:
    truth = [at(0, "TOTAL", x1=120), at(200, "9.00", x1=300)]
    assert rights(truth, [at(0, "TOTAI", x1=120), at(200, "9.00", x1=300)]) == [False, True]


def test_what_is_read_where_nothing_is_printed_is_wrong() -> None:
    assert rights([at(0, "TOTAL")], [at(0, "TOTAL"), at(0, "K", row=5)]) == [True, False]


def test_a_line_nobody_found_counts_as_printed() -> None:
    found = judge([at(0, "TOTAL"), at(0, "9.00", row=1)], [at(0, "TOTAL")], Comparison.EXACT)
    assert (found.printed, found.found) == (2, 1)


def test_loosely_compared_case_and_marks_do_not_count_but_decimal_points_do() -> None:
    assert plain("Total: RM 9,00", Comparison.LOOSE) == plain("TOTAL RM 9.00", Comparison.LOOSE)
    assert plain("9.00", Comparison.LOOSE) != plain("900", Comparison.LOOSE)
    assert plain("9 00", Comparison.LOOSE) == plain("900", Comparison.LOOSE)
    assert plain("Total", Comparison.EXACT) != plain("TOTAL", Comparison.EXACT)


def test_labels_come_back_as_written_and_their_hash_knows_no_order(drawing) -> None:
    documents = drawing.documents(4)
    assert [load_label(dump_label(one), "file") for one in documents] == documents
    assert labels_sha256(documents) == labels_sha256(documents[::-1])
    assert labels_sha256(documents) != labels_sha256(documents[1:])


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"id": 1, "lines": 3}'])
def test_what_is_no_label_is_named(text: str) -> None:
    with pytest.raises(InputError, match="file, line 3"):
        load_label(text, "file, line 3")
