"""Templates to answers: everything escaped, nothing inline, and the policy that holds browsers to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from docferry_cloud.gateway.pages import page_headers, templates
from docferry_cloud.phone.words import CHINESE, ENGLISH, WORDS, field_name, language_of

_HEADERS = page_headers("manifest-src 'self'", "worker-src 'self'")


class Pages:
    """Renders the pages; made once."""

    def __init__(self) -> None:
        environment = templates("docferry_cloud.phone")
        environment.globals["field_name"] = field_name
        self._environment = environment

    def answer(
        self, request: Request, name: str, code: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> Response:
        """A page in the reader's language."""
        language = language_of(request.headers.get("accept-language", ""), request.query_params.get("lang", ""))
        other = ENGLISH if language == CHINESE else CHINESE
        text = self._environment.get_template(name).render(
            words=WORDS[language], language=language, other=other, path=request.url.path, **values
        )
        said = {"content-language": language, "vary": "accept-language, cookie"}
        return HTMLResponse(text, code, {**_HEADERS, **(headers or {}), **said})

    def problem(self, request: Request, code: int, headers: Mapping[str, str], reason: str, *, gone: bool) -> Response:
        """A page that says why there is none.

        Args:
            gone: The caller's claim is over, which is all there is to say.
        """
        return self.answer(request, "problem.html", code, headers, reason=reason, gone=gone)
