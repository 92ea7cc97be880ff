"""Questions of several callers answered together: no thread of its own, whoever waits does the next batch for all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from docferry_cloud.engine import Cancelled, check
from docferry_cloud.vlm.answers import Reply
from docferry_cloud.vlm.model import Question

log = logging.getLogger(__name__)

_ALIKE = 3.0
"""Pictures in one batch differ by at most this factor in area: short ones are padded to the longest."""


class _Caller:
    """Whoever asks, as the thread sees him that answers a batch of several: his trouble must not become theirs."""

    def __init__(self, cancelled: Cancelled) -> None:
        self._cancelled = cancelled
        self._error: Exception | None = None

    def left(self) -> bool:
        """Whether nobody waits any more, or nobody can say; never raises."""
        if self._error is None:
            try:
                return self._cancelled()
            # It asks the database, as a rule; `check` hands it to whose it is.
            except Exception as error:  # noqa: BLE001
                self._error = error
        return True

    def check(self) -> None:
        """Stop here if he has left, or raise what kept him from saying so. Called by his own thread."""
        if self._error is not None:
            raise self._error
        check(self._cancelled)


@dataclass(slots=True, eq=False)
class Waiting:
    """One question that waits; `reply` is set once it has been worked on. `cancelled` never raises.

    `since` is when it came, in seconds of the monotonic clock.
    """

    question: Question
    cancelled: Cancelled
    since: float
    reply: Reply | None = None


class Batches:
    """Gathers questions into batches of one prompt and like area, the oldest first.

    Args:
        run: Answers a batch; called by one thread at a time.
        size: Questions in one batch, at most.
        patience_s: How long the oldest question waits, from when it came, for others to fill its batch. Without it the
            first of several callers who come together would be answered alone.
    """

    def __init__(self, run: Callable[[Sequence[Waiting]], Sequence[Reply]], size: int, patience_s: float = 0.0) -> None:
        self._run = run
        self._size = size
        self._patience_s = patience_s
        self._waiting: list[Waiting] = []
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self._turn = threading.Lock()

    def ask(self, questions: Sequence[Question], cancelled: Cancelled) -> list[Reply]:
        """Answer these questions, and on the way others' that fit into the same batches.

        A question that the model fails on has its failure in its reply; those beside it have their answers.

        Raises:
            EngineError: `cancelled` said True.
        """
        caller = _Caller(cancelled)
        caller.check()
        now = time.monotonic()
        mine = [Waiting(question, caller.left, now) for question in questions]
        with self._more:
            self._waiting += mine
            self._more.notify_all()
        try:
            while any(waiting.reply is None for waiting in mine):
                with self._turn:
                    if any(waiting.reply is None for waiting in mine):
                        self._work()
                caller.check()
        finally:
            with self._lock:
                left = set(map(id, mine))
                self._waiting = [waiting for waiting in self._waiting if id(waiting) not in left]
        return [waiting.reply for waiting in mine if waiting.reply is not None]

    def _work(self) -> None:
        """Answer one batch, whoever asked."""
        with self._more:
            batch = _batch(self._waiting, self._size)
            while 0 < len(batch) < self._size and (left := batch[0].since + self._patience_s - time.monotonic()) > 0:
                self._more.wait(left)
                batch = _batch(self._waiting, self._size)
            taken = set(map(id, batch))
            self._waiting = [waiting for waiting in self._waiting if id(waiting) not in taken]
        if not batch or self._answer(batch):
            return
        # One picture may have spoiled it for all: which one shows when each is asked about alone.
        for waiting in batch:
            if len(batch) == 1 or not self._answer([waiting]):
                waiting.reply = Reply("", failure="the full model failed on this; the log of the service says more")

    def _answer(self, batch: Sequence[Waiting]) -> bool:
        """Set the replies of a batch; False if the model failed on it."""
        try:
            replies = self._run(batch)
        # Its libraries raise anything.
        except Exception:
            log.exception("the full model failed on a batch of %d", len(batch))
            return False
        for waiting, reply in zip(batch, replies, strict=True):
            waiting.reply = reply
        return True


def _batch(waiting: Sequence[Waiting], size: int) -> list[Waiting]:
    """The oldest question and those that go best with it."""
    if not waiting:
        return []
    first = waiting[0]
    area = _area(first.question)
    alike = [
        other
        for other in waiting[1:]
        if _key(other.question) == _key(first.question) and _ratio(area, _area(other.question)) <= _ALIKE
    ]
    alike.sort(key=lambda other: _ratio(area, _area(other.question)))
    return [first, *alike[: size - 1]]


def _key(question: Question) -> tuple[str, int, bool]:
    return question.prompt, question.most_tokens, question.image is None


def _area(question: Question) -> float:
    return 1.0 if question.image is None else float(question.image.shape[0] * question.image.shape[1])


def _ratio(one: float, other: float) -> float:
    return max(one, other) / min(one, other)
