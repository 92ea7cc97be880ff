"""The service's own key for Web Push (VAPID, RFC 8292), made once and shared by all processes of one database."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import sqlalchemy as sa

from docferry.errors import ConfigurationError
from docferry_cloud.database import Database
from docferry_cloud.schema import facts

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_FACT = "vapid_key"
_TOKEN_S = 12 * 3600
"""How long a token holds; RFC 8292 allows a day, and a push service's clock may differ from ours."""


@dataclass(frozen=True, slots=True)
class Vapid:
    """A P-256 key and the contact that push services may write to.

    Attributes:
        contact: `mailto:` or `https:`; empty: no Web Push.
    """

    key: EllipticCurvePrivateKey
    contact: str

    @property
    def public(self) -> str:
        """The public key as browsers take it for `applicationServerKey`: 65 bytes, base64url without padding."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return b64url(self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))

    def authorization(self, endpoint: str) -> str:
        """The Authorization header for a post to this endpoint."""
        from py_vapid import Vapid02

        parts = urlsplit(endpoint)
        claims = {
            "aud": f"{parts.scheme}://{parts.netloc}",
            "exp": int(time.time()) + _TOKEN_S,
            "sub": self.contact,
        }
        # `no-strict`: the settings have checked the contact; the library's own pattern refuses good ones.
        return str(Vapid02(self.key, conf={"no-strict": True}).sign(claims)["Authorization"])


def open_vapid(database: Database, file: Path | None, contact: str) -> Vapid:
    """The key from a PEM file, or the database's own, made if it has none.

    Raises:
        ConfigurationError: The file cannot be read or holds no P-256 key.
    """
    return Vapid(_read(file) if file is not None else _shared(database), contact)


def b64url(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _read(file: Path) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except OSError as error:
        raise ConfigurationError(
            f"{file}: cannot be read: {error.strerror}", remedy="set web_push.vapid_key", setting="web_push.vapid_key"
        ) from error
    except (ValueError, TypeError) as error:
        raise _no_key(file) from error
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise _no_key(file)
    return key


def _no_key(file: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{file} holds no P-256 private key without a password",
        remedy="make one: openssl ecparam -name prime256v1 -genkey -noout",
        setting="web_push.vapid_key",
    )


def _shared(database: Database) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    query = sa.select(facts.c.value).where(facts.c.name == _FACT)
    with database.write() as connection:
        stored = connection.execute(query).scalar_one_or_none()
        if stored is None:
            number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
            stored = f"{number:x}"
            connection.execute(facts.insert().values(name=_FACT, value=stored))
    return ec.derive_private_key(int(stored, 16), ec.SECP256R1())
