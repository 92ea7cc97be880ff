"""Logs: one line an event, for people or as JSON, with the ids of what is worked on; never content, never secrets.

Everything that is logged by the standard `logging` goes through here. `about` says what the lines that follow in this
task or thread are about; the ids are added to each of them, whoever wrote it.

An exception is told by its type and where it went through, not by its text, unless the error is one of our own: a
library's message may quote the document that it stumbled over.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TextIO

import structlog

from docferry.errors import ConfigurationError, DocferryError

FORMATS = ("console", "json")
LEVELS = ("debug", "info", "warning", "error")

_CHATTY = ("httpx", "httpcore", "alembic", "opentelemetry", "urllib3", "oauthlib", "requests_oauthlib", "PIL")
"""Libraries that tell at INFO what is ours to tell; httpx the URLs of webhooks, which may hold secrets."""

Event = MutableMapping[str, Any]
Raised = tuple[type[BaseException], BaseException, TracebackType | None]


def configure(form: str, level: str, stream: TextIO | None = None) -> None:
    """Send everything that is logged from now on to `stream`, stderr by default. For programs, once, at their start.

    Args:
        form: One of `FORMATS`.
        level: One of `LEVELS`.

    Raises:
        ConfigurationError: It is none of them.
    """
    _check("log.format", form, FORMATS)
    _check("log.level", level, LEVELS)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _exception,
    ]
    last: Any = structlog.processors.JSONRenderer() if form == "json" else _line
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last]
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Add ids to every line of this block: analysis_id, document_id, tenant, trace_id; empty ones are left out."""
    with structlog.contextvars.bound_contextvars(**{name: value for name, value in ids.items() if value}):
        yield


def _exception(_logger: Any, _method: str, event: Event) -> Event:
    """What was raised, as text without what a library had to say about the content."""
    raised = event.pop("exc_info", None)
    if raised is True:
        raised = sys.exc_info()
    if isinstance(raised, BaseException):
        raised = (type(raised), raised, raised.__traceback__)
    if raised and raised[1] is not None:
        event["exception"] = "\n".join(_told(raised))
    return event


def _told(raised: Raised, seen: frozenset[int] = frozenset()) -> Iterator[str]:
    kind, error, trace = raised
    # A chain of causes can be a ring.
    seen |= {id(error)}
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for each in (*((before,) if before is not None else ()), *inner):
        if id(each) not in seen:
            yield from _told((type(each), each, each.__traceback__), seen)
            yield "then"
    for frame in traceback.extract_tb(trace):
        yield f"  {frame.filename}:{frame.lineno} {frame.name}"
    said = f": {error}" if isinstance(error, DocferryError | OSError) else ""
    yield f"{kind.__module__}.{kind.__qualname__}{said}"


def _line(_logger: Any, _method: str, event: Event) -> str:
    """A line for people: time, level, what happened, then the ids."""
    head = f"{event.pop('timestamp')} {str(event.pop('level')).upper():<7} {event.pop('event')}"
    event.pop("logger", None)
    exception = event.pop("exception", "")
    ids = "".join(f" {name}={value}" for name, value in sorted(event.items()))
    return head + ids + (f"\n{exception}" if exception else "")


def _check(setting: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigurationError(f"{setting} is {value!r}", remedy=f"one of {', '.join(allowed)}", setting=setting)
