"""One server that speaks OpenAI's chat API: vLLM, llama.cpp, LMDeploy, Ollama."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from docferry_cloud.engine import Cancelled, check
from docferry_cloud.vlm import chat, pictures
from docferry_cloud.vlm.answers import Reply
from docferry_cloud.vlm.breaker import Breaker
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.repetition import find_loop

_MOST_BYTES = 16 << 20
"""Of one answer; tokens are a few hundred bytes each with what is said around them."""
_LOOK_EVERY = 1000
"""Characters between two looks for a loop."""
_BUSY = frozenset({429, 503})
_THIS_QUESTION = frozenset({400, 413, 422})
"""The server is well and will not answer this."""
_LONGEST_PAUSE_S = 30.0


class ServerFailed(Exception):
    """The call failed and the server is why; another one may answer."""


class ServerBusy(ServerFailed):
    """The server wants to be left alone for `seconds`."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """One server.

    Attributes:
        url: Without `/v1`.
        model: The name to ask for; empty: the one that it lists.
        form: How pictures travel, a name in `pictures.FORMATS`.
    """

    url: str
    client: httpx.Client
    breaker: Breaker
    model: str
    form: str

    def ask(self, question: Question, model: str, cancelled: Cancelled) -> Reply:
        """Ask and read the answer as it streams in; between two tokens look whether anybody still waits.

        Raises:
            ServerFailed: The server could not be reached, broke off, or sent no chat completion.
            EngineError: `cancelled` said True; the connection is closed, so that the server stops too.
        """
        picture = None if question.image is None else pictures.data_url(question.image, self.form)
        body = chat.request_body(model, question.prompt, picture, question.manner, question.most_tokens)
        began = time.monotonic()
        try:
            with self.client.stream("POST", f"{self.url}/v1/chat/completions", json=body) as response:
                if response.status_code in _THIS_QUESTION:
                    return Reply("", failure=f"the server answered {response.status_code}: {_said(response)}")
                _check_status(response)
                answer = _read(response, cancelled)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise ServerFailed(f"{self.url}: {type(error).__name__}: {error}") from error
        except chat.NotAnAnswer as error:
            raise ServerFailed(f"{self.url}: {error}") from error
        return _reply(answer, time.monotonic() - began)

    def listed(self) -> list[str]:
        """The models that it serves.

        Raises:
            ServerFailed: It cannot be reached, or answers with something else.
        """
        try:
            response = self.client.get(f"{self.url}/v1/models")
            _check_status(response)
            return [str(entry["id"]) for entry in chat.parsed(response.content)["data"]]
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServerFailed(f"{self.url}: {type(error).__name__}: {error}") from error
        except (chat.NotAnAnswer, KeyError, TypeError) as error:
            raise ServerFailed(f"{self.url} lists no models: {error!r}") from error

    def served(self) -> str:
        """The model to ask for.

        Raises:
            ServerFailed: It cannot be reached, or lists none or several while none is named.
        """
        if self.model:
            return self.model
        names = self.listed()
        if len(names) != 1:
            raise ServerFailed(f"{self.url} lists {len(names)} models: name one in vlm.model")
        return names[0]


def base_url(url: str) -> str:
    """A server's URL without `/v1` and what follows, however it was given.

    Raises:
        ValueError: It is no http or https URL with a host.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{url!r} is no http:// or https:// URL of a server")
    path = parts.path.removesuffix("/").removesuffix("/chat/completions").removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if status in _BUSY:
        asked = response.headers.get("retry-after", "")
        seconds = float(asked) if asked.isascii() and asked.isdigit() else 1.0
        raise ServerBusy(f"{response.url} answered {status}", min(seconds, _LONGEST_PAUSE_S))
    if status != 200:
        raise ServerFailed(f"{response.url} answered {status}: {_said(response)}")


def _said(response: httpx.Response) -> str:
    """What a server says of its refusal, on one line."""
    try:
        data = b"".join(_bytes(response))
    except (httpx.HTTPError, chat.NotAnAnswer):
        return ""
    return " ".join(data.decode(errors="replace").split())[:200]


def _read(response: httpx.Response, cancelled: Cancelled) -> chat.Answer:
    answer = chat.Answer()
    if response.headers.get("content-type", "").startswith("application/json"):
        # It does not stream.
        chat.take(answer, chat.parsed(b"".join(_bytes(response))))
        return answer
    looked = length = 0
    for event in chat.events(_lines(response)):
        check(cancelled)
        chat.take(answer, event)
        length += len(answer.parts[-1]) if event.get("choices") else 0
        if length - looked >= _LOOK_EVERY:
            looked = length
            if find_loop(answer.text, finished=False) is not None:
                # It will not come out of it by itself; leaving tells the server to stop.
                answer.reason = "length"
                break
    if not answer.reason:
        raise ServerFailed(f"{response.url} broke off in the middle of an answer")
    return answer


def _reply(answer: chat.Answer, seconds: float) -> Reply:
    if answer.reason not in {"stop", "length"}:
        return Reply(
            "", seconds=seconds, failure=f"the server ended the answer for another reason: {answer.reason[:80]}"
        )
    return Reply(
        answer.text,
        finished=answer.reason == "stop",
        logprobs=tuple(answer.logprobs) or None,
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        seconds=seconds,
    )


def _lines(response: httpx.Response) -> Iterator[str]:
    rest = b""
    for data in _bytes(response):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").rstrip("\r")
    if rest:
        yield rest.decode(errors="replace")


def _bytes(response: httpx.Response) -> Iterator[bytes]:
    total = 0
    for data in response.iter_bytes():
        total += len(data)
        if total > _MOST_BYTES:
            raise chat.NotAnAnswer(f"the answer has more than {_MOST_BYTES >> 20} MiB")
        yield data
