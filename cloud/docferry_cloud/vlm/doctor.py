"""What is wrong with the full model: the directory, or each server, and whether it returns special tokens."""

from __future__ import annotations

import cv2
import numpy as np

from docferry.doctor import FAILED, OK, WARNING, Finding
from docferry.errors import DocferryError
from docferry.vision.images import Pixels
from docferry_cloud.vlm import pictures
from docferry_cloud.vlm.layout import parse_layout
from docferry_cloud.vlm.model import Question
from docferry_cloud.vlm.prompts import Ask
from docferry_cloud.vlm.server import Server, ServerFailed
from docferry_cloud.vlm.servers import Servers, ServerTimes
from docferry_cloud.vlm.settings import VlmSettings

NAME = "full model"
_PATIENCE = ServerTimes(connect=5.0, silence=60.0)
_TOKENS = 64
"""Enough for two blocks of a layout."""


def look(settings: VlmSettings) -> Finding:
    """The full model as the settings name it; one finding for all servers."""
    if not settings.there:
        return Finding(NAME, OK, "none: the embedded engine reads alone")
    if settings.directory is not None:
        return _directory(settings)
    servers = Servers(
        settings.servers, model=settings.model, key=settings.key, form=settings.picture_format, times=_PATIENCE
    )
    try:
        found = [_server(server) for server in servers.members]
    finally:
        servers.close()
    told = "; ".join(detail for _, detail, _ in found)
    good = [state for state, _, _ in found if state == OK]
    remedy = next((remedy for state, _, remedy in found if state != OK), "")
    if len(good) == len(found):
        return Finding(NAME, OK, told)
    # As long as one answers, deep answers come; without any the fast ones stand, marked.
    return Finding(NAME, WARNING if good or all(state == WARNING for state, _, _ in found) else FAILED, told, remedy)


def _server(server: Server) -> tuple[str, str, str]:
    """State, detail and remedy."""
    try:
        model = server.served()
        reply = server.ask(Question(Ask.LAYOUT, _page(), tokens=_TOKENS), model, lambda: False)
    except ServerFailed as error:
        return FAILED, str(error), "start it, or take it out of vlm.servers"
    if reply.failure:
        return FAILED, f"{server.url}: {reply.failure}", "look at its log"
    if parse_layout(reply.text).blocks or "<|box_start|>" in reply.text:
        return OK, f"{server.url} serves {model} and returns special tokens", ""
    return (
        WARNING,
        f"{server.url} serves {model} but returns no special tokens: layouts cannot be read",
        "llama-server: --special; vLLM honours skip_special_tokens; is it a MinerU2.5 model at all?",
    )


def _directory(settings: VlmSettings) -> Finding:
    from docferry_cloud.vlm.local import check

    try:
        if settings.directory is not None:
            check(settings.directory, quantize=settings.quantize)
    except DocferryError as error:
        return Finding(NAME, FAILED, error.reason, error.remedy)
    return Finding(NAME, OK, str(settings.directory))


def _page() -> Pixels:
    """A page with a few words on it."""
    page = np.full((700, 500, 3), 255, np.uint8)
    for number, text in enumerate(("Receipt", "Coffee  2.50", "Total  2.50")):
        place = (60, 120 + 80 * number)
        cv2.putText(page, text, place, cv2.FONT_HERSHEY_SIMPLEX, 1.4, (0, 0, 0), 3)
    return pictures.page_picture(page)
