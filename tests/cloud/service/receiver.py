"""A webhook receiver: a real HTTP server on loopback."""

import asyncio
import base64
from dataclasses import dataclass

from tests.cloud.service.running import DEADLINE


@dataclass
class Received:
    """One request that the receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A real HTTP server on loopback: answers with the statuses it was given, then 204, and keeps what it got."""

    secret = f"whsec_{base64.b64encode(b'k' * 32).decode()}"

    def __init__(self):
        self.answers: list[bytes] = []
        self.requests: asyncio.Queue[Received] = asyncio.Queue()
        self.url = ""

    def answer(self, *statuses: int, header: str = ""):
        extra = f"{header}\r\n" if header else ""
        self.answers += [f"HTTP/1.1 {status} x\r\n{extra}content-length: 0\r\n\r\n".encode() for status in statuses]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            start, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            answer = self.answers.pop(0) if self.answers else b"HTTP/1.1 204 x\r\n\r\n"
            self.requests.put_nowait(Received(start.split()[1], headers, body))
            writer.write(answer.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
            await writer.drain()
        finally:
            writer.close()

    async def next(self) -> Received:
        async with asyncio.timeout(DEADLINE):
            return await self.requests.get()
