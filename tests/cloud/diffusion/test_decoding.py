"""The decoder alone, over a model whose mind is known."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry.errors import EngineError
from docferry_cloud.diffusion.decoding import Options, decode

VOCABULARY = 8
MASK, STOP = 7, 6
OPTIONS = Options(mask_id=MASK, stop_ids=frozenset({STOP}), threshold=0.9, block_length=4, longest=12)


class Settled:
    """A model that has made up its mind beforehand: per row a list of (token, probability)."""

    def __init__(self, *answers, proposes_mask=False):
        self.answers = list(answers)
        self.rows = len(answers)
        self.proposes_mask = proposes_mask
        self.start = 0
        self.scored = 0
        self.committed = []
        self.shown = []

    def score(self, committed, block):
        if committed is not None:
            self.start += committed.shape[1]
            self.committed.append(committed.tolist())
        self.scored += 1
        self.shown.append(block.tolist())
        logits = torch.full((*block.shape, VOCABULARY), -torch.inf)
        for row, answer in enumerate(self.answers):
            for column in range(block.shape[1]):
                token, sure = (*answer, *[(0, 0.99)] * 12)[self.start + column]
                logits[row, column] = torch.log(torch.tensor((1 - sure) / (VOCABULARY - 2)))
                logits[row, column, token] = torch.log(torch.tensor(sure))
                logits[row, column, MASK] = 9.0 if self.proposes_mask else -torch.inf
        return logits

    def keep(self, rows):
        self.answers = [self.answers[row] for row in rows]
        self.rows = len(rows)


def sure(*tokens):
    return [(token, 0.99) for token in tokens]


def test_a_sure_model_fixes_a_block_with_every_forward():
    model = Settled(sure(1, 2, 3, 4, 5, 1, STOP))
    (answer,) = decode(model, OPTIONS)
    assert answer.tokens == (1, 2, 3, 4, 5, 1)
    assert answer.steps == (1, 1, 1, 1, 2, 2)
    assert answer.stop_step == 2
    assert answer.forwards == model.scored == 2
    assert answer.confidence == pytest.approx((0.99,) * 6)
    assert model.committed == [[[1, 2, 3, 4]]]


def test_an_unsure_model_fixes_its_surest_token_first():
    (answer,) = decode(Settled([(1, 0.5), (2, 0.8), (3, 0.6), (STOP, 0.7)]), OPTIONS)
    assert answer.tokens == (1, 2, 3)
    assert answer.steps == (4, 1, 3)
    assert answer.stop_step == 2
    assert answer.forwards == 4


def test_at_least_so_many_tokens_are_fixed_by_a_forward():
    model = Settled([(1, 0.5), (2, 0.8), (3, 0.6), (STOP, 0.7)])
    (answer,) = decode(model, replace(OPTIONS, at_least=3))
    assert answer.steps == (2, 1, 1)
    assert answer.forwards == 2


def test_what_stands_behind_the_end_is_not_waited_for():
    model = Settled([(1, 0.99), (STOP, 0.99), (3, 0.3), (4, 0.3)])
    (answer,) = decode(model, OPTIONS)
    assert answer.tokens == (1,)
    assert answer.forwards == model.scored == 1


def test_an_end_mark_waits_for_what_stands_before_it():
    (answer,) = decode(Settled([(1, 0.3), (STOP, 0.99), (3, 0.99), (4, 0.99)]), OPTIONS)
    assert answer.tokens == (1,)
    assert (answer.steps, answer.stop_step, answer.forwards) == ((2,), 1, 2)


def test_rows_stop_one_by_one():
    short, long = sure(1, STOP), sure(1, 2, 3, 4, 5, 1, 2, 3, STOP)
    model = Settled(long, short, long)
    answers = decode(model, OPTIONS)
    assert [answer.tokens for answer in answers] == [(1, 2, 3, 4, 5, 1, 2, 3), (1,), (1, 2, 3, 4, 5, 1, 2, 3)]
    assert [answer.forwards for answer in answers] == [3, 1, 3]
    assert [len(rows) for rows in model.committed] == [2, 2]


def test_a_row_that_is_done_with_its_block_pays_nothing_for_the_others():
    quick, slow = sure(1, 2, 3, 4, STOP), [(1, 0.5), (2, 0.5), (3, 0.5), (4, 0.5), (STOP, 0.99)]
    quick_answer, slow_answer = decode(Settled(quick, slow), OPTIONS)
    assert (quick_answer.forwards, slow_answer.forwards) == (2, 5)


def test_an_answer_without_end_is_cut_off_and_says_so():
    model = Settled(sure(*[1] * 12))
    (answer,) = decode(model, replace(OPTIONS, longest=6))
    assert answer.tokens == (1,) * 6
    assert answer.stop_step is None
    assert [len(row) for ((row),) in model.shown] == [4, 2]


def test_the_mask_is_never_an_answer():
    (answer,) = decode(Settled(sure(1, 2, STOP), proposes_mask=True), OPTIONS)
    assert answer.tokens == (1, 2)


def test_no_prompts_no_answers():
    assert decode(Settled(), OPTIONS) == []


def test_a_reading_stops_between_two_forwards():
    model = Settled([(1, 0.3)] * 4)
    with pytest.raises(EngineError):
        decode(model, OPTIONS, cancelled=lambda: model.scored == 2)
    assert model.scored == 2


@pytest.mark.parametrize("wrong", [{"threshold": 1.1}, {"at_least": 0}, {"block_length": 0}, {"mask_id": STOP}])
def test_options_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"must|cannot"):
        replace(OPTIONS, **wrong)


beliefs = st.lists(
    st.tuples(st.integers(0, STOP), st.sampled_from((0.3, 0.5, 0.7, 0.95, 0.99))), min_size=12, max_size=12
)


@settings(deadline=None)
@given(st.lists(beliefs, min_size=1, max_size=4), st.sampled_from((0.0, 0.6, 0.9, 1.0)), st.integers(1, 4))
def test_whatever_the_model_believes_its_answer_is_told_in_order(rows, threshold, at_least):
    options = replace(OPTIONS, threshold=threshold, at_least=at_least)
    answers = decode(Settled(*rows), options)
    for row, answer in zip(rows, answers, strict=True):
        wanted = [token for token, _ in row]
        end = wanted.index(STOP) if STOP in wanted else len(wanted)
        assert list(answer.tokens) == wanted[:end]
        assert (answer.stop_step is None) == (STOP not in wanted)
        assert len(answer.steps) == len(answer.confidence) == len(answer.tokens)
        steps = [*answer.steps, *([] if answer.stop_step is None else [answer.stop_step])]
        # Blocks follow each other: no token is fixed before an earlier block is finished.
        blocks = [steps[start : start + 4] for start in range(0, len(steps), 4)]
        for before, after in pairwise(blocks):
            assert max(before) < min(after)
        assert min(steps) >= 1
        assert max(steps) <= answer.forwards
        assert decode(Settled(row), options) == [answer]


@settings(deadline=None)
@given(st.lists(st.sampled_from((0.3, 0.5, 0.7, 0.95, 0.99)), min_size=4, max_size=4), st.sampled_from((0.0, 0.6, 1.0)))
def test_a_block_costs_what_its_sureness_says(sureness, threshold):
    (answer,) = decode(Settled([(1, sure) for sure in sureness]), replace(OPTIONS, threshold=threshold, longest=4))
    at_once = sum(sure > threshold for sure in sureness)
    assert answer.forwards == (1 if at_once else 0) + len(sureness) - at_once
