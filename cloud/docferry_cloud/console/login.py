"""In and out: a key is traded for a session, and only the session stays with the browser."""

from __future__ import annotations

import grpc.aio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from docferry.errors import DocferryError
from docferry.v1 import operator_service_pb2 as pb
from docferry_cloud.access.sessions import SESSION_S
from docferry_cloud.console import session
from docferry_cloud.console.visit import LOGIN, Doorman, Visit
from docferry_cloud.gateway.link import Link, metadata_of
from docferry_cloud.gateway.problems import Refused, status_and_code
from docferry_cloud.gateway.routes import SERVICES

INBOX = f"{session.PATH}/inbox"
MOST_LOGIN_BYTES = 8 << 10
"""Bytes of the login's form: the only body that is taken from somebody whom nobody knows."""

_OPERATOR = SERVICES["OperatorService"].methods_by_name
_LONGEST_KEY = 4096


class Login:
    """The pages before the pages."""

    def __init__(self, doorman: Doorman, link: Link) -> None:
        self._doorman = doorman
        self._link = link

    async def show(self, request: Request) -> Response:
        """The form; who is known already goes on to the inbox."""
        cookie = session.cookie_of(request)
        try:
            await self._doorman.visit(request, cookie)
        except (grpc.aio.AioRpcError, DocferryError) as failure:
            _, code, _ = status_and_code(failure)
            return self._form(cookie, "" if code == 401 else "The service does not answer. Try again in a moment.")
        return RedirectResponse(INBOX, 303)

    async def enter(self, request: Request) -> Response:
        """Trade the key in the form for a session."""
        cookie = session.cookie_of(request)
        try:
            fields = await request.form(max_files=0, max_fields=4)
        except Refused as refusal:
            return self._form(cookie, str(refusal), refusal.code)
        if session.forged(cookie, fields.get("token")):
            return self._form(cookie, "This form was not made for this browser. Send it again.", 403)
        key = fields.get("key")
        given = key.strip() if isinstance(key, str) else ""
        if not given or len(given) > _LONGEST_KEY or not (given.isascii() and given.isprintable()):
            return self._form(cookie, "Enter a key.", 400)
        bearer = [pair for pair in metadata_of(request) if pair[0] != "authorization"]
        bearer.append(("authorization", f"Bearer {given}"))
        try:
            opened = await self._link.unary(_OPERATOR["OpenSession"], pb.OpenSessionRequest(), tuple(bearer))
        except grpc.aio.AioRpcError as failure:
            status, code, _ = status_and_code(failure)
            return self._form(cookie, status.message, code)
        assert isinstance(opened, pb.OpenSessionResponse)
        answer = RedirectResponse(INBOX, 303)
        session.set_cookie(answer, opened.token, secure=self._doorman.secure, lasts_s=SESSION_S)
        return answer

    async def leave(self, visit: Visit) -> Response:
        """End the session."""
        await visit.form()
        await visit.call("OperatorService.CloseSession", pb.CloseSessionRequest(), pb.CloseSessionResponse)
        answer = RedirectResponse(LOGIN, 303)
        answer.delete_cookie(session.COOKIE, path=session.PATH)
        return answer

    def _form(self, cookie: str, problem: str, code: int = 200) -> Response:
        known = cookie or session.strangers_cookie()
        values = {"token": session.form_token(known), "problem": problem}
        answer = self._doorman.renderer.page("login.html", values, code)
        if not cookie:
            session.set_cookie(answer, known, secure=self._doorman.secure)
        return answer
