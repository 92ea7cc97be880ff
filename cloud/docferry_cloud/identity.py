"""Who calls: a bearer token in the call's metadata names tenant and device."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from docferry.errors import Unauthenticated
from docferry_cloud.rows import Caller
from docferry_cloud.settings import LOCAL_TENANT, Token

_SCHEME = "bearer "


def authenticate(metadata: Iterable[tuple[str, str | bytes]], tokens: tuple[Token, ...]) -> Caller:
    """The caller behind a call's metadata; with no tokens configured everyone is local.

    Raises:
        Unauthenticated: No token came, or one that nobody issued.
    """
    if not tokens:
        return Caller(LOCAL_TENANT, LOCAL_TENANT)
    given = next((value for key, value in metadata if key == "authorization"), "")
    text = given.decode("latin-1") if isinstance(given, bytes) else given
    if not text.lower().startswith(_SCHEME):
        raise Unauthenticated("the call carries no token", remedy="send the metadata `authorization: Bearer TOKEN`")
    digest = hashlib.sha256(text[len(_SCHEME) :].strip().encode()).digest()
    # Every token is compared, in constant time: how long this takes tells nothing.
    matches = [token for token in tokens if hmac.compare_digest(token.sha256, digest)]
    if not matches:
        raise Unauthenticated("nobody issued this token", remedy="ask the operator for a token of your own")
    return Caller(matches[0].tenant, matches[0].device)
