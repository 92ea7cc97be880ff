"""Bring one file down, going on where an earlier attempt, or an earlier process, stopped."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPException
from typing import BinaryIO
from urllib.error import HTTPError

from docferry.errors import ModelError, Unavailable
from docferry.model_store.http_client import Answer, HttpClient, is_passing, pause, without_credentials

_CHUNK = 1 << 18
_RANGE = re.compile(r"bytes (\d+)-")
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


def download(
    url: str, part: BinaryIO, size: int, http: HttpClient, *, retries: int, arrived: Callable[[int], None]
) -> None:
    """Fill `part` up to `size` bytes; what it already holds is not asked for again.

    A broken connection is taken up again at once as long as each attempt brings something; those that bring
    nothing are at most `retries` in a row, with growing pauses between. With no retries the first break is final.

    Args:
        url: Where the file is.
        part: Open for reading and writing; kept as it is when this fails.
        size: Bytes the file must have.
        http: The way there.
        retries: Attempts that may bring nothing.
        arrived: Told the bytes held so far.

    Raises:
        ModelError: The server has no such file, or sends one of another size.
        Unavailable: The connection broke and stayed broken.
    """
    best = fruitless = 0
    while (held := part.seek(0, os.SEEK_END)) < size:
        arrived(held)
        try:
            _attempt(url, part, size, http, arrived)
            continue
        except (Unavailable, OSError, HTTPException) as error:
            _raise_if_final(error, url)
            now = part.seek(0, os.SEEK_END)
            # Compared with the best so far: where a server lets us start over, coming as far again is no progress.
            fruitless = 0 if now > max(held, best) else fruitless + 1
            best = max(best, now)
            if fruitless > retries or retries == 0:
                raise _broken(url, now, size, error) from error
        if fruitless:
            pause(fruitless)
    if held > size:
        raise _other_file(url, f"{held} or more", size)


def _attempt(url: str, part: BinaryIO, size: int, http: HttpClient, arrived: Callable[[int], None]) -> None:
    held = part.seek(0, os.SEEK_END)
    with _answer(url, part, held, http) as answer:
        held = _position(answer, held)
        _require_size(answer, size, url)
        part.seek(held)
        part.truncate()
        # What has arrived is taken at once, for on a bad link nothing more may come; one byte more than wanted is
        # enough to see that it is another file.
        while held <= size and (chunk := answer.read1(min(_CHUNK, size + 1 - held))):
            part.write(chunk)
            held += len(chunk)
            arrived(min(held, size))
    part.flush()
    if held < size:
        raise ConnectionError(f"the connection ended after {held} of {size} bytes")


def _answer(url: str, part: BinaryIO, held: int, http: HttpClient) -> Answer:
    try:
        return http.get(url, start=held)
    except HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        # The server's file ends before ours does, so ours holds something else.
        part.truncate(0)
        raise ConnectionError(f"the server has fewer than {held} bytes") from error


def _position(answer: Answer, wanted: int) -> int:
    # A server without ranges answers 200 and starts over.
    if answer.status != HTTPStatus.PARTIAL_CONTENT:
        return 0
    stated = _RANGE.match(answer.headers.get("Content-Range", ""))
    if stated is None or int(stated[1]) != wanted:
        raise ConnectionError(f"asked for bytes from {wanted} on, got {stated[0] if stated else 'no range'}")
    return wanted


def _require_size(answer: Answer, size: int, url: str) -> None:
    partial = answer.status == HTTPStatus.PARTIAL_CONTENT
    stated = answer.headers.get("Content-Range" if partial else "Content-Length", "").rpartition("/")[2]
    if stated.isdecimal() and int(stated) != size:
        raise _other_file(url, stated, size)


def _other_file(url: str, found: str, size: int) -> ModelError:
    return ModelError(
        f"{without_credentials(url)} has {found} bytes, not {size}",
        remedy="this is another file than the pinned one; check the package index",
    )


def _raise_if_final(error: Exception, url: str) -> None:
    if isinstance(error, OSError) and error.errno in _DISK:
        raise error
    if not isinstance(error, HTTPError) or is_passing(error):
        return
    raise ModelError(
        f"{without_credentials(url)} answered {error.code} {error.reason}",
        remedy="check the package index and the credentials in pip's configuration",
    ) from error


def _broken(url: str, held: int, size: int, error: Exception) -> Unavailable:
    return Unavailable(
        f"{without_credentials(url)}: stopped at {held} of {size} bytes: {error}",
        remedy="run the same command again; it goes on where it stopped",
    )
