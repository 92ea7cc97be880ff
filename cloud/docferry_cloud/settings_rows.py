"""What is checked of a setting beyond its type and range: addresses, and the rows of settings that are lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from docferry.errors import ConfigurationError
from docferry_cloud.sinks.keys import check_secret
from docferry_cloud.sinks.message import MAX_PUBLIC_URL
from docferry_cloud.sinks.titles import LANGUAGES

_HASH = re.compile(r"[0-9a-f]{64}")
_CONTACT = re.compile(r"mailto:[^@\s]{1,64}@[^@\s]{1,255}|https://\S{1,500}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,31}://[!-~]{1,2000}", re.ASCII)
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Token:
    """One issued bearer token: its SHA-256 (never the token itself) and whom it stands for."""

    sha256: bytes
    tenant: str
    device: str


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook from the settings."""

    url: str
    secret: str
    tenant: str
    language: str = "en"


@dataclass(frozen=True, slots=True)
class AppriseAddress:
    """One Apprise address from the settings; a secret as a whole."""

    url: str = field(repr=False)
    tenant: str
    language: str = "en"


def check_url(url: str) -> None:
    """Check that a webhook's URL is http or https with a host that can be looked up and no credentials.

    Raises:
        ConfigurationError: It is not.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
        usable = usable and (parts.port is None or parts.port > 0) and len(url) <= 2048
        # What the client and the resolver will make of the host: labels empty, too long or no IDNA fail here.
        usable = usable and bool(httpx.URL(url).host.encode("idna"))
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise ConfigurationError(
            f"the webhook's URL {url[:200]!r} cannot be used",
            remedy="give http:// or https://, a host, no user name",
        )


def origins(values: Sequence[Any]) -> tuple[str, ...]:
    """Web origins, checked.

    Raises:
        ConfigurationError: It is not as it must be.
    """
    for value in values:
        if not isinstance(value, str) or not _ORIGIN.fullmatch(value):
            raise ConfigurationError(
                f"http.origins holds {value!r}",
                remedy="give scheme, host and port, e.g. https://app.example.com",
                setting="http.origins",
            )
    return tuple(values)


def public_url(url: str) -> str:
    """The address that links begin with, checked, without a slash at its end; empty for none.

    Raises:
        ConfigurationError: It is not as it must be.
    """
    if url:
        check_url(url)
        if len(url) > MAX_PUBLIC_URL or urlsplit(url).query or urlsplit(url).fragment:
            raise ConfigurationError(
                f"push.public_url is {url[:200]!r}",
                remedy=f"give https://HOST, at most {MAX_PUBLIC_URL} characters, without ? and #",
                setting="push.public_url",
            )
    return url.rstrip("/")


def contact(address: str) -> str:
    """Who push services may write to, checked; empty for none.

    Raises:
        ConfigurationError: It is not as it must be.
    """
    if address and not _CONTACT.fullmatch(address):
        raise ConfigurationError(
            f"web_push.contact is {address[:200]!r}",
            remedy="give mailto:somebody@example.com, or an https:// address",
            setting="web_push.contact",
        )
    return address


def path(text: str) -> Path | None:
    """A path, `~` expanded; None for none."""
    return Path(text).expanduser() if text else None


def tables(name: str, rows: Sequence[Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The tables of a list, each with its place in words.

    Raises:
        ConfigurationError: It is not as it must be.
    """
    for row in rows:
        if not isinstance(row, Mapping) or not all(isinstance(value, str) for value in row.values()):
            raise ConfigurationError(
                f"{name} holds {_described(row)}", remedy=f"write [[{name}]] tables of texts", setting=name
            )
    return [(f"{name}[{index}]", row) for index, row in enumerate(rows)]


def _described(row: Any) -> str:
    """What is wrong with a row, without its values: one may be a secret."""
    if not isinstance(row, Mapping):
        return f"a {type(row).__name__}"
    wrong = sorted(str(key) for key, value in row.items() if not isinstance(value, str))
    return f"a table whose {', '.join(wrong)} is no text"


def _only(place: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    wrong = sorted(set(table) ^ set(keys))
    if wrong:
        raise ConfigurationError(
            f"{place}: {', '.join(wrong)} missing or unknown",
            remedy=f"it takes exactly {', '.join(keys)}",
            setting=place,
        )


def _named(place: str, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ConfigurationError(
            f"{place} is {value!r}", remedy="use 1..64 letters, digits, '.', '_' or '-'", setting=place
        )
    return value


def token(place: str, table: Mapping[str, Any]) -> Token:
    """One row of `tokens`.

    Raises:
        ConfigurationError: It is not as it must be.
    """
    _only(place, table, ("token_sha256", "tenant", "device"))
    if not _HASH.fullmatch(table["token_sha256"]):
        raise ConfigurationError(
            f"{place}.token_sha256 is not a SHA-256 in hex",
            remedy="make it with: printf %s TOKEN | sha256sum",
            setting=place,
        )
    return Token(
        bytes.fromhex(table["token_sha256"]),
        _named(f"{place}.tenant", table["tenant"]),
        _named(f"{place}.device", table["device"]),
    )


def webhook(place: str, table: Mapping[str, Any]) -> Webhook:
    """One row of `webhooks.endpoints`.

    Raises:
        ConfigurationError: It is not as it must be.
    """
    _only(place, table, ("url", "secret", "tenant"))
    check_url(table["url"])
    check_secret(table["secret"])
    return Webhook(table["url"], table["secret"], _named(f"{place}.tenant", table["tenant"]))


def apprise(place: str, table: Mapping[str, Any]) -> AppriseAddress:
    """One row of `apprise`; whether Apprise takes the address is seen when the service starts.

    Raises:
        ConfigurationError: It is not as it must be.
    """
    table = {"language": "en", **table}
    _only(place, table, ("url", "tenant", "language"))
    if not _ADDRESS.fullmatch(table["url"]):
        raise ConfigurationError(
            f"{place}.url is no Apprise address",
            remedy="write SCHEME://..., at most 2,000 characters, others than ASCII's percent-encoded",
            setting=place,
        )
    if table["language"] not in LANGUAGES:
        raise ConfigurationError(
            f"{place}.language is {table['language'][:16]!r}", remedy=f"one of {', '.join(LANGUAGES)}", setting=place
        )
    return AppriseAddress(table["url"], _named(f"{place}.tenant", table["tenant"]), table["language"])
