"""Turns: beside one another, or alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from docferry_cloud.turns import Turns

DEADLINE = 20.0


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_a_turn_alone_begins_when_the_others_have_ended_and_keeps_new_ones_out(threads):
    turns, steps = Turns(), []
    entered, leave, inside, end = (threading.Event() for _ in range(4))

    def beside(name):
        with turns.beside():
            entered.set()
            steps.append(f"{name} begins")
            if name == "old":
                leave.wait(DEADLINE)
                steps.append("old ends")

    def alone():
        with turns.alone(DEADLINE) as free:
            assert free
            steps.append("alone begins")
            inside.set()
            end.wait(DEADLINE)
            steps.append("alone ends")

    old = threads.submit(beside, "old")
    assert entered.wait(DEADLINE)
    suspect = threads.submit(alone)
    leave.set()
    assert inside.wait(DEADLINE)
    new = threads.submit(beside, "new")
    end.set()
    for future in (old, suspect, new):
        future.result(DEADLINE)
    assert steps == ["old begins", "old ends", "alone begins", "alone ends", "new begins"]


def test_who_has_no_patience_gets_no_turn_alone_and_holds_up_nobody():
    turns = Turns()
    with turns.beside():
        with turns.alone(0.0) as free:
            assert not free
        with turns.beside():
            pass
    with turns.alone(0.0) as free:
        assert free
        with turns.alone(0.0) as again:
            assert not again
    with turns.beside():
        pass
