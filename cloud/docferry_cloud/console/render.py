"""Templates and the files beside them: every text is escaped, every file has its content's hash in its name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from starlette.responses import HTMLResponse, Response

from docferry_cloud.gateway.pages import page_headers, templates
from docferry_cloud.gateway.rich_text import formula

HEADERS = page_headers()
_FOR_EVER = "public, max-age=31536000, immutable"
_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages are made of."""

    data: bytes
    media_type: str


class Renderer:
    """Renders pages; made once, and reads its files then."""

    def __init__(self) -> None:
        self._assets: dict[str, Asset] = {}
        self._names: dict[str, str] = {}
        for file in resources.files("docferry_cloud.console").joinpath("static").iterdir():
            stem, _, ending = file.name.rpartition(".")
            if f".{ending}" not in _KINDS:
                continue
            data = file.read_bytes()
            name = f"{stem}.{hashlib.sha256(data).hexdigest()[:12]}.{ending}"
            self._names[file.name] = f"/console/static/{name}"
            self._assets[name] = Asset(data, _KINDS[f".{ending}"])
        environment = templates("docferry_cloud.console")
        environment.globals["asset"] = self._names.__getitem__
        environment.filters |= {
            "moment": moment,
            "amount": amount,
            "percent": percent,
            "enum": enum_word,
            "formula": formula,
            "seconds": seconds,
        }
        self._environment = environment

    def page(self, template: str, values: Mapping[str, Any], code: int = 200) -> Response:
        """A page."""
        return HTMLResponse(self._environment.get_template(template).render(values), code, dict(HEADERS))

    def static(self, name: str) -> Response | None:
        """One of the files; None if there is none of that name."""
        asset = self._assets.get(name)
        if asset is None:
            return None
        return Response(asset.data, media_type=asset.media_type, headers={"cache-control": _FOR_EVER})


def moment(time: Timestamp) -> str:
    """`2026-03-01 12:30` (UTC); empty for a time that is not set."""
    if not time.seconds:
        return ""
    return datetime.fromtimestamp(time.seconds, UTC).strftime("%Y-%m-%d %H:%M")


def amount(size: float) -> str:
    """Bytes for people: `917 B`, `12.3 kB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")


def percent(share: float, digits: int = 0) -> str:
    """`12 %`."""
    return f"{share * 100:.{digits}f} %"


def seconds(value: float) -> str:
    """`0.4 s`, `12 s`, `3.5 h`."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 3600 else f"{value / 3600:.1f} h"


def enum_word(name: str, prefix: str) -> str:
    """A value of an enum for people: `ROUTE_DECISION_CROPS` becomes `crops`."""
    return name.removeprefix(prefix).lower().replace("_", " ")
