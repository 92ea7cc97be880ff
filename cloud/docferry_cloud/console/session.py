"""Who a browser is: one cookie for the console's pages alone, and a token against forged posts that follows from it."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from starlette.requests import Request
from starlette.responses import Response

PATH = "/console"
"""All pages of the console lie under it, and the cookie is sent nowhere else."""
COOKIE = "docferry_console"

_LONGEST = 200
_STRANGER = "dfa_"
"""What the cookie of a browser begins with that has no session (yet): it is only there for the token of forms."""


def cookie_of(request: Request) -> str:
    """The cookie's value; empty if there is none that could be ours."""
    value = request.cookies.get(COOKIE, "")
    return value if len(value) <= _LONGEST and value.isascii() and value.isprintable() else ""


def session_of(request: Request) -> str:
    """The session that a browser brings to a page of the console; empty for any other request."""
    path = str(request.scope.get("path", ""))
    if path != PATH and not path.startswith(f"{PATH}/"):
        return ""
    value = cookie_of(request)
    return "" if value.startswith(_STRANGER) else value


def strangers_cookie() -> str:
    """A value for a browser that has no session."""
    return f"{_STRANGER}{secrets.token_urlsafe(32)}"


def form_token(cookie: str) -> str:
    """The token that every form carries: only pages that were made for this cookie know it."""
    return hmac.new(cookie.encode(), b"docferry console form", hashlib.sha256).hexdigest()


def forged(cookie: str, token: object) -> bool:
    """Whether a form was not made for this cookie."""
    given = token[:_LONGEST] if isinstance(token, str) else ""
    return not cookie or not hmac.compare_digest(form_token(cookie).encode(), given.encode("utf-8", "replace"))


def set_cookie(response: Response, value: str, *, secure: bool, lasts_s: int | None = None) -> None:
    """Give a browser its cookie: no script reads it, and no other site's page sends it along."""
    response.set_cookie(COOKIE, value, max_age=lasts_s, path=PATH, secure=secure, httponly=True, samesite="strict")
