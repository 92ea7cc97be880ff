"""HTTP with pip's settings: certificates, proxy, trusted hosts, credentials of the address or of .netrc."""

from __future__ import annotations

import base64
import netrc
import ssl
import time
from http.client import HTTPException
from typing import Protocol, Self, cast
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from docferry.errors import ModelError, Unavailable
from docferry.model_store.pip_settings import PipSettings

_PASSING = {408, 425, 429, 500, 502, 503, 504}
_LONGEST_PAUSE_S = 8.0


class Answer(Protocol):
    """The part of an HTTP answer that is used: status, headers, the final address, a body to read."""

    status: int
    headers: Headers
    url: str

    def read(self, amount: int, /) -> bytes:
        """`amount` bytes of the body, fewer at its end."""

    def read1(self, amount: int, /) -> bytes:
        """What has arrived of the body, at most `amount` bytes; none at its end."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...


class Headers(Protocol):
    """Header lookup that ignores case."""

    def get(self, name: str, default: str, /) -> str:
        """The header's value."""


class HttpClient:
    """Sends GET requests; one per pull, cheap to make, holds no connection.

    Args:
        settings: Whom to trust, which way to go and how long to wait.
    """

    def __init__(self, settings: PipSettings) -> None:
        self._settings = settings
        hosts = [urlsplit(index) for index in (*settings.indexes, *settings.find_links)]
        self._accounts = {parts.netloc.rpartition("@")[2]: parts for parts in hosts if parts.username}

    def get(self, url: str, *, accept: str = "*/*", start: int = 0) -> Answer:
        """Ask for `url`, from byte `start` on.

        Raises:
            HTTPError: The server answered with a status of 400 or more.
            Unavailable: The server cannot be reached, or its certificate is not trusted.
        """
        parts = urlsplit(url)
        request = Request(without_credentials(url), headers={"Accept": accept, "User-Agent": "docferry"})  # noqa: S310
        if start:
            request.add_header("Range", f"bytes={start}-")
        if account := self._account(parts):
            # Unredirected: a redirect to another host must not carry the password along.
            request.add_unredirected_header("Authorization", account)
        try:
            return cast("Answer", self._opener(parts).open(request, timeout=self._settings.timeout))
        except HTTPError as error:
            error.close()
            raise
        except (URLError, OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise Unavailable(
                f"{without_credentials(url)} cannot be reached: {reason or type(error).__name__}",
                remedy="check the network, and proxy and cert in pip's configuration",
            ) from error

    def _opener(self, parts: SplitResult) -> OpenerDirector:
        proxy = self._settings.proxy
        # Without one of its own, urllib takes the proxies of the environment, as pip does.
        proxies = ProxyHandler({"http": proxy, "https": proxy} if proxy else None)
        return build_opener(proxies, HTTPSHandler(context=self._context(parts)))

    def _context(self, parts: SplitResult) -> ssl.SSLContext:
        settings = self._settings
        cert = settings.cert
        try:
            folder = cert is not None and cert.is_dir()
            context = ssl.create_default_context(cafile=None if folder else cert, capath=cert if folder else None)
            if settings.client_cert:
                context.load_cert_chain(settings.client_cert)
        except OSError as error:
            raise ModelError(
                f"cert {cert} or client-cert {settings.client_cert} of pip's configuration cannot be used: {error}",
                remedy="correct them: pip config list",
            ) from error
        host = parts.hostname or ""
        if {host, f"{host}:{parts.port}"} & set(settings.trusted_hosts):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _account(self, parts: SplitResult) -> str | None:
        given = parts if parts.username else self._accounts.get(parts.netloc.rpartition("@")[2])
        if given is not None and given.username:
            return _basic(unquote(given.username), unquote(given.password or ""))
        try:
            found = netrc.netrc().authenticators(parts.hostname or "")
        except (OSError, netrc.NetrcParseError):
            return None
        return _basic(found[0], found[2] or "") if found else None


def is_passing(error: HTTPError) -> bool:
    """Whether a later attempt may get another answer."""
    return error.code in _PASSING


def pause(fruitless: int) -> None:
    """Wait before the next attempt, longer with each that brought nothing (counted from one)."""
    time.sleep(min(_LONGEST_PAUSE_S, 0.25 * 2**fruitless))


def without_credentials(url: str) -> str:
    """The address as it may be shown and sent: without name and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode("ascii")
