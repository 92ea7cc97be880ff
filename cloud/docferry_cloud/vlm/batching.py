"""Questions of several callers answered together: no thread of its own, whoever waits does the next batch for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from docferry.errors import EngineError
from docferry_cloud.engine import Cancelled, check
from docferry_cloud.vlm.answers import Reply
from docferry_cloud.vlm.model import Question

_ALIKE = 3.0
"""Pictures in one batch differ by at most this factor in area: short ones are padded to the longest."""


@dataclass(slots=True, eq=False)
class Waiting:
    """One question that waits; `reply` or `error` is set once it has been worked on."""

    question: Question
    cancelled: Cancelled
    reply: Reply | None = None
    error: BaseException | None = None
    taken: bool = field(default=False)

    @property
    def done(self) -> bool:
        """Whether it has been worked on."""
        return self.reply is not None or self.error is not None


class Batches:
    """Gathers questions into batches of one prompt and like area, the oldest first.

    Args:
        run: Answers a batch; called by one thread at a time.
        size: Questions in one batch, at most.
    """

    def __init__(self, run: Callable[[Sequence[Waiting]], Sequence[Reply]], size: int) -> None:
        self._run = run
        self._size = size
        self._waiting: list[Waiting] = []
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    def ask(self, questions: Sequence[Question], cancelled: Cancelled) -> list[Reply]:
        """Answer these questions, and on the way others' that fit into the same batches.

        Raises:
            EngineError: `cancelled` said True, or the model failed.
        """
        check(cancelled)
        mine = [Waiting(question, cancelled) for question in questions]
        with self._lock:
            self._waiting += mine
        try:
            while not all(waiting.done for waiting in mine):
                with self._turn:
                    if not all(waiting.done for waiting in mine):
                        self._work()
                check(cancelled)
        finally:
            with self._lock:
                left = set(map(id, mine))
                self._waiting = [waiting for waiting in self._waiting if id(waiting) not in left]
        return [_reply(waiting) for waiting in mine]

    def _work(self) -> None:
        """Answer one batch, whoever asked."""
        with self._lock:
            batch = _batch(self._waiting, self._size)
            taken = set(map(id, batch))
            self._waiting = [waiting for waiting in self._waiting if id(waiting) not in taken]
        if not batch:
            return
        try:
            replies = self._run(batch)
        # What a library raises belongs to everyone who asked in this batch.
        except Exception as error:  # noqa: BLE001
            for waiting in batch:
                waiting.error = error
            return
        for waiting, reply in zip(batch, replies, strict=True):
            waiting.reply = reply


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


def _reply(waiting: Waiting) -> Reply:
    if waiting.error is not None:
        raise EngineError(
            f"the full model failed: {type(waiting.error).__name__}", remedy="the log of the service says more"
        ) from waiting.error
    if waiting.reply is None:
        raise EngineError("the full model gave no answer", remedy="the log of the service says more")
    return waiting.reply
