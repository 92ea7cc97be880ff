"""Several servers of one model as one: a question goes to the one with the least to do, to another if it fails."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import httpx

from docferry.errors import Unavailable
from docferry_cloud.engine import Cancelled, check
from docferry_cloud.vlm.answers import Reply
from docferry_cloud.vlm.breaker import Breaker, Clock
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.server import Server, ServerBusy, ServerFailed, base_url

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerTimes:
    """Seconds.

    Attributes:
        connect: Until a connection stands.
        silence: Between two pieces of an answer; before the first one lies the reading of the picture.
        open: How long a server that failed three times in a row is left alone.
        pauses: Before the second, third, ... attempt at one question.
    """

    connect: float = 5.0
    silence: float = 300.0
    open: float = 10.0
    pauses: tuple[float, ...] = (0.5, 2.0)


class Servers:
    """A model behind one or several URLs. `close` ends its connections.

    Args:
        urls: Of the servers, with or without `/v1`.
        model: The name to ask for; empty: the one that each lists.
        key: Sent as a bearer token; empty sends none.
        form: How pictures travel, a name in `pictures.FORMATS`.
        concurrency: Questions under way at once, over all callers.

    Raises:
        ValueError: A URL is none.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        model: str = "",
        key: str = "",
        form: str = "webp",
        concurrency: int = 8,
        times: ServerTimes | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._times = times = times or ServerTimes()
        self._concurrency = concurrency
        self._places = threading.BoundedSemaphore(concurrency)
        self._turn = itertools.count()
        self._client = httpx.Client(
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(times.silence, connect=times.connect),
            limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
            # The environment is for settings to read.
            trust_env=False,
        )
        self.members = tuple(
            Server(base_url(url), self._client, Breaker(clock, open_s=times.open), model, form) for url in urls
        )
        self.provenance = f"cloud:vlm-{model or 'served'}"

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def ask(self, questions: Sequence[Question], cancelled: Cancelled) -> list[Reply]:
        """Ask all at once, as far as there are places; the replies come in the order of the questions.

        Raises:
            Unavailable: No server answers; what had been answered is dropped, as it will be asked again together.
            EngineError: `cancelled` said True.
        """
        check(cancelled)
        if not questions:
            return []
        stopped = threading.Event()

        def over() -> bool:
            return stopped.is_set() or cancelled()

        with ThreadPoolExecutor(min(len(questions), self._concurrency), "docferry-vlm") as pool:
            asked = [pool.submit(self._one, question, over) for question in questions]
            try:
                done, _ = wait(asked, return_when=FIRST_EXCEPTION)
                for future in done:
                    # The first that failed on its own account, not one that was stopped because of it.
                    _raise_of(future)
            finally:
                stopped.set()
                pool.shutdown(cancel_futures=True)
        return [future.result() for future in asked]

    def _one(self, question: Question, over: Cancelled) -> Reply:
        with self._places:
            failure: ServerFailed | None = None
            tried: list[Server] = []
            for attempt in range(len(self._times.pauses) + 1):
                check(over)
                server = self._least_busy(tried)
                if server is None:
                    break
                try:
                    return self._ask(server, question, over)
                except ServerFailed as error:
                    log.warning("the full model: %s", error)
                    failure = error
                    tried.append(server)
                if attempt < len(self._times.pauses) and len(tried) >= len(self.members):
                    _pause(self._times.pauses[attempt], over)
            why = str(failure) if failure else "all of its servers failed a moment ago"
            raise Unavailable(
                f"the full model cannot be reached: {why}", remedy="look with: docferry cloud doctor"
            ) from failure

    def _ask(self, server: Server, question: Question, over: Cancelled) -> Reply:
        try:
            reply = server.ask(question, server.served(), over)
        except ServerBusy as error:
            server.breaker.busy(error.seconds)
            raise
        except ServerFailed:
            server.breaker.failed()
            raise
        except BaseException:
            server.breaker.dropped()
            raise
        server.breaker.succeeded()
        return reply

    def _least_busy(self, tried: Sequence[Server]) -> Server | None:
        """A server to ask, its place taken: those not tried yet first, then the fewest calls, then in turn."""
        turn = next(self._turn)
        count = len(self.members)
        order = sorted(
            range(count),
            key=lambda at: (tried.count(self.members[at]), self.members[at].breaker.calls, (at - turn) % count),
        )
        return next((self.members[at] for at in order if self.members[at].breaker.begin()), None)


def _raise_of(future: Future[Reply]) -> None:
    error = future.exception()
    if error is not None:
        raise error


def _pause(seconds: float, over: Cancelled) -> None:
    """Wait, and look up often."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        check(over)
        time.sleep(min(left, 0.05))
