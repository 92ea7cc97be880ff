"""/c/{token}: the page that a link leads to, and the opening of it.

Opening is a POST that the page sends by itself: what only looks at a link (a chat's preview, a scanner of mails) does
not use it up. The session goes into a cookie that scripts cannot read and that is sent to this document's pages alone.
"""

from __future__ import annotations

import re
import time

import grpc.aio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from docferry.errors import DocferryError
from docferry.v1 import claim_service_pb2 as pb
from docferry_cloud.gateway.link import SESSION_COOKIE, Link, Metadata, metadata_of
from docferry_cloud.gateway.problems import status_and_code
from docferry_cloud.gateway.routes import SERVICES
from docferry_cloud.phone.rendering import Pages

_OPEN = SERVICES["ClaimService"].methods_by_name["Open"]
_OPENED = "docferry_opened"
"""Says to the phone that opened a link where that led, so that scanning the code twice does no harm. No secret."""
_ID = re.compile(r"[0-9a-f-]{36}")


async def claim_page(request: Request, pages: Pages) -> Response:
    """The page that opens the link, or the way to what this phone opened before."""
    opened = request.cookies.get(_OPENED, "")
    if _ID.fullmatch(opened):
        return RedirectResponse(f"/r/{opened}", 303)
    return pages.answer(request, "claim.html")


async def claim(request: Request, link: Link, pages: Pages, *, secure: bool) -> Response:
    """Open the link.

    Args:
        secure: The way to the browser is encrypted, and its cookies are for such ways only.
    """
    token = request.path_params["token"]
    try:
        metadata = _with_token(metadata_of(request), token)
        # Nothing is read of the request: whose body it was would be asked for a key, and the link is all there is.
        answer = await link.unary(_OPEN, pb.ClaimServiceOpenRequest(), metadata)
    except (grpc.aio.AioRpcError, DocferryError) as failure:
        status, code, headers = status_and_code(failure)
        # What never was, is over or was opened before: one page for all of it.
        gone = code in {401, 403, 404}
        return pages.problem(request, 404 if gone else code, {} if gone else headers, status.message, gone=gone)
    assert isinstance(answer, pb.ClaimServiceOpenResponse)
    place = f"/r/{answer.analysis_id}"
    response = RedirectResponse(place, 303)
    lasting = max(0, answer.expire_time.seconds - int(time.time()))
    for name, value, path in (
        (SESSION_COOKIE, answer.session, place),
        (_OPENED, answer.analysis_id, request.url.path),
    ):
        response.set_cookie(name, value, max_age=lasting, path=path, secure=secure, httponly=True, samesite="lax")
    return response


def _with_token(metadata: Metadata, token: str) -> Metadata:
    # The link itself is what is shown here, whatever else the browser would say of its user.
    rest = tuple(pair for pair in metadata if pair[0] != "authorization")
    shown = token if re.fullmatch(r"[A-Za-z0-9_-]{1,100}", token) else "-"
    return (*rest, ("authorization", f"Bearer {shown}"))
