"""Batches of several callers: what goes wrong with one question is that question's alone."""

import threading

import numpy as np
import pytest

from docferry.errors import EngineError, Unavailable
from docferry_cloud.vlm.answers import Reply
from docferry_cloud.vlm.batching import Batches
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.prompts import Ask

DEADLINE = 20


def never():
    return False


def question(shade=0):
    return Question(Ask.TEXT, np.full((56, 56, 3), shade, np.uint8))


def shade_of(waiting):
    return int(waiting.question.image[0, 0, 0])


class Fragile:
    """A model that cannot bear one picture, whatever stands beside it, and asks between tokens who still waits."""

    def __init__(self, bad=-1):
        self.bad, self.batches = bad, []

    def __call__(self, batch):
        shades = [shade_of(waiting) for waiting in batch]
        self.batches.append(shades)
        gone = [waiting.cancelled() for waiting in batch]
        if self.bad in shades:
            raise ValueError("a grid of no patches")
        return [Reply("" if left else str(shade)) for left, shade in zip(gone, shades, strict=True)]


def test_a_picture_that_the_model_cannot_bear_fails_its_own_question_only():
    model = Fragile(bad=2)
    replies = Batches(model, 4).ask([question(shade) for shade in range(4)], never)
    assert [reply.text for reply in replies] == ["0", "1", "", "3"]
    assert [bool(reply.failure) for reply in replies] == [False, False, True, False]
    assert model.batches == [[0, 1, 2, 3], [0], [1], [2], [3]]


def test_a_batch_of_one_that_fails_is_not_tried_again():
    model = Fragile(bad=7)
    (reply,) = Batches(model, 4).ask([question(7)], never)
    assert reply.failure
    assert model.batches == [[7]]


@pytest.mark.parametrize("raised", [Unavailable("the database is away", remedy="wait"), RuntimeError("broken")])
def test_a_caller_who_cannot_say_whether_he_waits_stops_his_own_row_only(raised):
    """His question and a neighbour's share a batch; what his asking raises reaches him and nobody else."""
    model = Fragile()
    batches = Batches(model, 4)
    outcomes = {}
    times = iter((False,))

    def unsure():
        for answer in times:
            return answer
        raise raised

    def ask(name, shade, cancelled):
        try:
            outcomes[name] = batches.ask([question(shade)], cancelled)
        except (Unavailable, RuntimeError) as error:
            outcomes[name] = error

    threads = [
        threading.Thread(target=ask, args=("unsure", 1, unsure)),
        threading.Thread(target=ask, args=("steady", 2, never)),
    ]
    with batches._turn:
        for number, thread in enumerate(threads, start=1):
            thread.start()
            waited = threading.Event()
            for _ in range(DEADLINE * 200):
                if len(batches._waiting) == number:
                    break
                waited.wait(0.005)
    for thread in threads:
        thread.join(DEADLINE)
    assert model.batches == [[1, 2]]
    assert outcomes["unsure"] is raised
    assert [reply.text for reply in outcomes["steady"]] == ["2"]


def test_whoever_has_left_before_asks_nothing():
    model = Fragile()
    with pytest.raises(EngineError, match="cancelled"):
        Batches(model, 4).ask([question()], lambda: True)
    assert model.batches == []


def test_callers_who_come_together_are_answered_together():
    """Nobody is at work yet, so the first of them waits for the others; a full batch waits no longer."""
    model = Fragile()
    batches = Batches(model, 16, patience_s=DEADLINE)
    together = threading.Barrier(16)
    replies = {}

    def ask(shade):
        together.wait(DEADLINE)
        replies[shade] = batches.ask([question(shade)], never)[0].text

    threads = [threading.Thread(target=ask, args=(shade,)) for shade in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert [sorted(batch) for batch in model.batches] == [list(range(16))]
    assert replies == {shade: str(shade) for shade in range(16)}


def test_who_comes_alone_is_answered_when_patience_ends():
    model = Fragile()
    (reply,) = Batches(model, 16, patience_s=0.01).ask([question(3)], never)
    assert reply.text == "3"
    assert model.batches == [[3]]


def test_other_prompts_and_other_sizes_go_into_batches_of_their_own():
    model = Fragile()
    small, large = np.full((28, 28, 3), 1, np.uint8), np.full((280, 280, 3), 2, np.uint8)
    asked = [
        Question(Ask.TEXT, small),
        Question(Ask.TEXT, large),
        Question(Ask.TABLE, small),
        Question(Ask.TEXT, small),
    ]
    assert [reply.text for reply in Batches(model, 16).ask(asked, never)] == ["1", "2", "1", "1"]
    assert model.batches == [[1, 1], [2], [1]]
