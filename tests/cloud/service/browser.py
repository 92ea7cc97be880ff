"""A browser that has subscribed: its keys, and what it makes of a body that was pushed to it."""

import asyncio
import base64
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SCRIPT = Path(__file__).with_name("decrypt.cjs")


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Browser:
    """One push subscription."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    secret: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def p256dh(self) -> str:
        return b64url(self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))

    @property
    def auth(self) -> str:
        return b64url(self.secret)

    async def read(self, body: bytes) -> bytes:
        """The message, by npm's http_ece."""
        private = self.key.private_numbers().private_value.to_bytes(32, "big")
        given = {"body": b64url(body), "auth": self.auth, "private": b64url(private)}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec("node", str(SCRIPT), stdin=pipe, stdout=pipe, stderr=pipe)
        out, complaint = await process.communicate(json.dumps(given).encode())
        assert process.returncode == 0, complaint.decode()
        return out
