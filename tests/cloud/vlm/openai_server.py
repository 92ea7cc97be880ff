"""A real HTTP server of OpenAI's chat API for tests: what it answers and how it fails is set from outside."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Teller = Callable[[str, bytes | None, dict], dict]
"""Prompt, picture and body in; `text`, and perhaps `finish`, `logprobs` and `usage` out."""


class FakeServer(ThreadingHTTPServer):
    """Counts what is under way, keeps the bodies.

    Attributes:
        tell: Makes the answers.
        statuses: Answered to the next calls instead, one after the other; 200 answers as usual.
        streams: Whether answers stream.
        breaks_after: So many pieces of a stream are sent and then the connection ends; None for whole answers.
        gate: Calls wait for it.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, tell: Teller, port: int = 0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.tell = tell
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.streams = True
        self.breaks_after: int | None = None
        self.raw: bytes | None = None
        self.models = ["tiny"]
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.lock = threading.Lock()
        self.bodies: list[dict] = []
        self.pictures: list[bytes | None] = []
        self.tokens: list[str] = []
        self.under_way = self.most_under_way = 0
        self.gone = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """A client that leaves is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeServer

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._whole(200, {"object": "list", "data": [{"id": name} for name in self.server.models]})

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.bodies.append(body)
            server.tokens.append(self.headers.get("authorization", ""))
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
            status = server.statuses.pop(0) if server.statuses else 200
        server.entered.release()
        try:
            server.gate.wait(20)
            if status != 200:
                self._whole(status, {"error": {"message": f"told to answer {status}"}})
            elif server.raw is not None:
                self._send(200, server.raw, "text/event-stream")
            else:
                self._complete(body)
        finally:
            with server.lock:
                server.under_way -= 1

    def _complete(self, body: dict) -> None:
        content = body["messages"][-1]["content"]
        prompt = next(part["text"] for part in content if part["type"] == "text")
        urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
        picture = base64.b64decode(urls[0].partition(",")[2]) if urls else None
        self.server.pictures.append(picture)
        told = {"finish": "stop", "logprobs": None, "usage": None} | self.server.tell(prompt, picture, body)
        if not self.server.streams:
            choice = {"index": 0, "message": {"role": "assistant", "content": told["text"]}}
            choice |= {"finish_reason": told["finish"], "logprobs": _logprobs(told["logprobs"])}
            self._whole(200, {"object": "chat.completion", "choices": [choice], "usage": told["usage"]})
            return
        self._stream(told)

    def _stream(self, told: dict) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        pieces = [told["text"][at : at + 8] for at in range(0, len(told["text"]), 8)]
        events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        last = {"index": 0, "delta": {}, "finish_reason": told["finish"], "logprobs": _logprobs(told["logprobs"])}
        events.append({"choices": [last]})
        if told["usage"]:
            events.append({"choices": [], "usage": told["usage"]})
        try:
            for number, event in enumerate(events):
                if number == self.server.breaks_after:
                    return
                self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.server.gone.set()

    def _whole(self, status: int, value: dict) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, data: bytes, media_type: str) -> None:
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _logprobs(values) -> dict | None:
    return None if values is None else {"content": [{"token": "x", "logprob": value} for value in values]}


def echo(prompt: str, picture: bytes | None, body: dict) -> dict:
    """Says what it was asked."""
    return {"text": f"asked for {prompt.strip()}"}


@contextmanager
def fake_server(tell: Teller = echo, port: int = 0) -> Iterator[FakeServer]:
    """A server on a loopback port until the block ends."""
    server = FakeServer(tell, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()
