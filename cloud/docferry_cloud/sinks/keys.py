"""The keys of Standard Webhooks: symmetric (`whsec_`) and ed25519 (`whsk_` private, `whpk_` public).

Source: standard-webhooks/standard-webhooks, spec/standard-webhooks.md, "Signature scheme".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from docferry.errors import ConfigurationError

SYMMETRIC = "whsec_"
PRIVATE = "whsk_"
PUBLIC = "whpk_"
_SEED = 32


def new_secret(*, asymmetric: bool = False) -> str:
    """A new random key."""
    if not asymmetric:
        return SYMMETRIC + _text(secrets.token_bytes(32))
    seed = secrets.token_bytes(_SEED)
    return PRIVATE + _text(seed + _public_bytes(seed))


def check_secret(secret: str) -> None:
    """Check that a key can sign.

    Raises:
        ConfigurationError: It is neither `whsec_` and 24..64 bytes nor `whsk_` and an ed25519 key, as base64.
    """
    if secret.startswith(PRIVATE):
        _seed(secret)
    else:
        _symmetric(secret)


def public_key(secret: str) -> str:
    """The public half of an ed25519 key, `whpk_...`; empty for a symmetric one.

    Raises:
        ConfigurationError: The key is malformed.
    """
    return PUBLIC + _text(_public_bytes(_seed(secret))) if secret.startswith(PRIVATE) else ""


def signature(secret: str, signed: bytes) -> str:
    """One signature with its version: `v1,` for HMAC-SHA256, `v1a,` for ed25519.

    Raises:
        ConfigurationError: The key is malformed.
    """
    if not secret.startswith(PRIVATE):
        return "v1," + _text(hmac.new(_symmetric(secret), signed, hashlib.sha256).digest())
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return "v1a," + _text(Ed25519PrivateKey.from_private_bytes(_seed(secret)).sign(signed))


def _symmetric(secret: str) -> bytes:
    key = _bytes(secret.removeprefix(SYMMETRIC))
    if not secret.startswith(SYMMETRIC) or not 24 <= len(key) <= 64:
        raise ConfigurationError(
            "the webhook's secret is malformed",
            remedy="give `whsec_` and 24 to 64 random bytes, or `whsk_` and an ed25519 key, as base64",
        )
    return key


def _seed(secret: str) -> bytes:
    """The 32 bytes that make an ed25519 key; its public half may follow them, and must fit."""
    key = _bytes(secret.removeprefix(PRIVATE))
    seed, rest = key[:_SEED], key[_SEED:]
    if len(seed) != _SEED or (rest and rest != _public_bytes(seed)):
        raise ConfigurationError(
            "the webhook's ed25519 key is malformed",
            remedy="give `whsk_` and its 32 bytes, or these and the public key's 32, as base64",
        )
    return seed


def _public_bytes(seed: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
