"""Corrections survive a power cut, replace one another by document, and hold no text."""

import multiprocessing
from dataclasses import replace

import pytest

from docferry.errors import InputError
from docferry_edge.calibrating.corrections import FILE, add_correction, corrections


def test_a_document_corrected_again_counts_as_it_was_corrected_last(drawing, folder) -> None:
    first, second = drawing.documents(2)
    add_correction(folder, first)
    add_correction(folder, second)
    again = replace(second, id=first.id)
    add_correction(folder, again)
    assert corrections(folder) == [again, second]


def test_only_the_readers_own_labels_are_taken(drawing, folder) -> None:
    mine, theirs = drawing.documents(1, seed=1, reader="a@1")[0], drawing.documents(1, seed=2, reader="b@2")[0]
    add_correction(folder, mine)
    add_correction(folder, theirs)
    assert corrections(folder, "b@2") == [theirs]
    assert corrections(folder) == [mine, theirs]


def test_half_a_line_left_by_a_power_cut_is_dropped_and_written_over(drawing, folder) -> None:
    first, second = drawing.documents(2)
    add_correction(folder, first)
    with (folder / FILE).open("ab") as stream:
        stream.write(b'{"id": "torn", "lin')
    assert corrections(folder) == [first]
    add_correction(folder, second)
    assert corrections(folder) == [first, second]


def test_a_damaged_line_is_named(drawing, folder) -> None:
    add_correction(folder, drawing.documents(1)[0])
    with (folder / FILE).open("ab") as stream:
        stream.write(b"nonsense\n")
    with pytest.raises(InputError, match="line 2"):
        corrections(folder)


def test_no_corrections_are_an_empty_list(folder) -> None:
    assert corrections(folder / "nowhere") == []


def test_two_processes_do_not_tear_each_others_lines(drawing, folder) -> None:
    documents = drawing.documents(8)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.starmap(add_correction, [(folder, one) for one in documents])
    assert sorted(one.id for one in corrections(folder)) == sorted(one.id for one in documents)
