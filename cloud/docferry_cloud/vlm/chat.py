"""OpenAI's chat format: a question as a request's body, and an answer as it streams in. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from docferry_cloud.vlm.prompts import NO_REPEAT, SYSTEM, Manner

FRAME = ("<|im_end|>", "<|endoftext|>", "<|im_start|>")
"""Tokens of the chat itself, which servers that return special tokens return too."""


class NotAnAnswer(ValueError):
    """What came back is no chat completion."""


@dataclass(slots=True)
class Answer:
    """What has come of an answer so far."""

    parts: list[str] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    reason: str = ""
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def text(self) -> str:
        """The answer without the chat's own tokens."""
        return without_frame("".join(self.parts))


def request_body(model: str, prompt: str, picture: str | None, manner: Manner, most_tokens: int) -> dict[str, Any]:
    """The body of `POST /v1/chat/completions`; greedy, streamed, special tokens kept.

    Args:
        picture: A data URL.
    """
    content: list[dict[str, Any]] = [{"type": "text", "text": prompt}]
    if picture is not None:
        content.insert(0, {"type": "image_url", "image_url": {"url": picture}})
    return {
        "model": model,
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}],
        "temperature": 0.0,
        "top_p": 0.01,
        "top_k": 1,
        "repetition_penalty": 1.0,
        "presence_penalty": manner.presence,
        "frequency_penalty": manner.frequency,
        "max_tokens": most_tokens,
        "logprobs": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        # vLLM's names; without the first one a layout is numbers that mean nothing.
        "skip_special_tokens": False,
        "vllm_xargs": {"no_repeat_ngram_size": NO_REPEAT, "debug": False},
    }


def events(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """The objects of a stream of server-sent events, up to `[DONE]`.

    Raises:
        NotAnAnswer: A line is no JSON object.
    """
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            return
        yield parsed(data)


def parsed(data: str | bytes) -> Mapping[str, Any]:
    """A JSON object.

    Raises:
        NotAnAnswer: It is none.
    """
    try:
        value = json.loads(data)
    except ValueError as error:
        raise NotAnAnswer(f"no JSON: {data[:80]!r}") from error
    if not isinstance(value, dict):
        raise NotAnAnswer(f"no JSON object: {data[:80]!r}")
    return value


def take(answer: Answer, event: Mapping[str, Any]) -> None:
    """Add one event of a stream, or a whole completion, to an answer.

    Raises:
        NotAnAnswer: It has another shape, or says that the server failed.
    """
    if event.get("error"):
        raise NotAnAnswer(f"the server says: {str(event['error'])[:200]}")
    try:
        usage = event.get("usage") or {}
        answer.tokens_in = int(usage.get("prompt_tokens", answer.tokens_in) or 0)
        answer.tokens_out = int(usage.get("completion_tokens", answer.tokens_out) or 0)
        for choice in event.get("choices") or ():
            said = choice.get("delta") or choice.get("message") or {}
            answer.parts.append(str(said.get("content") or ""))
            answer.reason = str(choice.get("finish_reason") or answer.reason)
            told = choice.get("logprobs") or {}
            answer.logprobs += [float(token["logprob"]) for token in told.get("content") or ()]
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise NotAnAnswer(f"no chat completion: {str(event)[:80]}") from error


def without_frame(text: str) -> str:
    """An answer without the tokens that end and begin turns of a chat."""
    for token in FRAME:
        text = text.replace(token, "")
    return text
