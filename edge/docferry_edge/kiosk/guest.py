"""What the page's guest gets beyond hints: a way in for a photo, the answer when it is there, a link to take it along,
and a pen.

Whoever stands before the kiosk has one document at a time. Its answers and its link go to the page as events; what the
guest puts right is kept in the outbox first and goes up once the cloud has an answer to put right.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from docferry.async_client import AsyncClient
from docferry.document import Document, Line
from docferry.errors import DocferryError, InputError, NotFound, Outdated, Unavailable
from docferry.v1 import analysis_pb2, analysis_service_pb2
from docferry.wire import document_from_proto
from docferry_edge.entry import FINAL, Entry, State
from docferry_edge.kiosk.hub import Event
from docferry_edge.outbox import Outbox

_log = logging.getLogger(__name__)

MAX_CORRECTIONS = 200
"""Corrections that wait for the cloud; beyond this no more are taken."""
LONGEST_TEXT = 2000
_CORRECTIONS = "kiosk.corrections"
_SET_ASIDE = "kiosk.corrections.aside"
"""Corrections that a fault of ours kept from being sent: on disk, not tried again by themselves."""
_LONGEST_PAUSE_S = 30.0
_MOST_LINES = 400
_DOUBTFUL = 0.9
"""A line below this is offered to be put right: a hint for eyes, nothing is decided by it."""
_SENT = frozenset({State.SUBMITTED, State.DELIVERED})
LINK_OPEN_S = 600.0
"""How long the link on the screen can be opened: whoever takes it along does so standing there."""


class Guest:
    """One kiosk's guest, whoever that is at the moment.

    Args:
        tell: Shows an event on the page; see `Hub.tell`.
        captured: Wakes the agent: there is something new in the outbox.
        pause_s: Between two looks at what has become of the document.
    """

    def __init__(
        self,
        outbox: Outbox,
        client: AsyncClient,
        tell: Callable[[Event], None],
        captured: Callable[[], None] = lambda: None,
        pause_s: float = 0.3,
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._show = tell
        self._captured = captured
        self._pause_s = pause_s
        self._seen = threading.Lock()
        self._wishes = threading.Lock()
        # Whose reading is going on, whose story the page shows, and whether that is kept for a guest's own.
        self._reading = ""
        self._current = ""
        self._present = False
        # What was captured before a restart belongs to nobody who can be known to stand here.
        self._left_at = time.time()

    def on_captured(self, captured: Callable[[], None]) -> None:
        """Whom to wake from now on."""
        self._captured = captured

    def tell(self, event: Event) -> None:
        """An event from the agent, from any thread: it goes on to the page, and a new document is followed.

        A document that was captured before its guest left is read all the same, but nothing of it is shown; nor is
        anything of a watched folder's from the moment a guest hands something in until they leave.
        """
        with self._seen:
            kind = event["type"]
            if kind == "captured":
                self._arrive(float(event["captured_at"]))
                return
            if kind == "document":
                self._begin(event)
            # The events of a reading carry no id; they are those of the document that was told last.
            if kind == "camera" or (self._current and event.get("document_id", self._reading) == self._current):
                self._show(event)

    def handing_in(self, captured_at: float) -> None:
        """A guest has begun to hand something in: what the page shows of others' documents goes."""
        with self._seen:
            self._arrive(captured_at)

    def here_since(self, captured_at: float) -> bool:
        """Whether no guest has left since then."""
        with self._seen:
            return captured_at > self._left_at

    def leave(self) -> None:
        """The guest has gone: nothing of their document is shown to the next one."""
        with self._seen:
            self._current = ""
            self._present = False
            self._left_at = time.time()

    def _arrive(self, captured_at: float) -> None:
        if self._present or captured_at <= self._left_at:
            return
        self._present = True
        if self._current:
            self._show({"type": "left", "document_id": self._current})
            self._current = ""

    def _begin(self, event: Event) -> None:
        # A clock that was set back must not keep the page dark until it has caught up.
        self._left_at = min(self._left_at, time.time())
        self._reading = str(event["document_id"])
        own = bool(event["handed_in"])
        if float(event["captured_at"]) > self._left_at and (own or not self._present):
            self._current = self._reading
            self._present = own

    async def take(self, name: str, data: bytes, captured_at: float | None = None) -> str:
        """Take a photo in; on return it is safe in the outbox. Gives the document's id.

        Args:
            captured_at: Unix time at which the guest handed it in, before its bytes came; now by default.

        Raises:
            StorageFull: There is no room for it.
        """
        shown = name.strip().replace("/", "_")[:200] or "photo.jpg"
        entry = await asyncio.to_thread(
            self._outbox.capture,
            source=f"kiosk|{uuid.uuid4()}",
            file_name=shown,
            data=data,
            captured_at=time.time() if captured_at is None else captured_at,
        )
        if entry is None:
            raise InputError("this photo was taken already", remedy="take another one")
        self._captured()
        return entry.document_id

    async def correct(self, document_id: str, page: int, line_id: str, text: str) -> None:
        """Keep what the guest put right; it is on disk on return.

        Raises:
            InputError: There is no such line in the guest's document, or the text cannot be a line's.
            StorageFull: It cannot be kept.
        """
        text = " ".join(text.split())
        if not 0 < len(text) <= LONGEST_TEXT:
            raise InputError(f"the line has {len(text)} characters", remedy=f"give 1..{LONGEST_TEXT}", field="text")
        if not document_id or document_id != self._current:
            raise NotFound("this document is not before the kiosk any more", remedy="put it down again")
        shown = await asyncio.to_thread(self._shown, document_id)
        place = next((_middle(line) for line in _lines(shown) if (line["page"], line["id"]) == (page, line_id)), None)
        if place is None:
            raise NotFound(f"there is no line {line_id[:64]!r} on page {page + 1}", remedy="load the page again")
        wish = {"document_id": document_id, "page": page, "place": place, "text": text}
        await asyncio.to_thread(self._keep, wish)
        self._show({"type": "corrected", "document_id": document_id, "page": page, "id": line_id, "text": text})

    async def run(self) -> None:
        """Follow the guest's document, and send what was put right, until cancelled.

        No fault here ends it: the agent beside it matters more than its page.
        """
        shown: dict[str, Any] = {}
        pause_s = self._pause_s
        while True:
            current = self._current
            if shown.get("document_id") != current:
                shown = {"document_id": current}
            try:
                if current:
                    await self._follow(current, shown)
                await self._send_corrections()
                pause_s = self._pause_s
            except Unavailable:
                # Without a network the page shows what is known here; the next look is the next try.
                pause_s = self._pause_s
            except DocferryError as error:
                _log.warning("the kiosk's page: %s", error)
            except Exception:  # noqa: BLE001 - a fault of the page must not stop the agent
                pause_s = min(2 * pause_s, max(_LONGEST_PAUSE_S, self._pause_s))
                _log.exception("the kiosk's page: a fault; the next look is in %.1f s", pause_s)
            await asyncio.sleep(pause_s)

    async def _follow(self, document_id: str, shown: dict[str, Any]) -> None:
        """Show what is new about a document; `shown` is what its page has been told."""
        try:
            entry = await asyncio.to_thread(self._outbox.get, document_id)
        except NotFound:
            return
        if document_id != self._current:
            return
        if entry.state is not State.CAPTURED and "answer" not in shown:
            shown["answer"] = 1
            await self._show_answer(document_id)
        if entry.state in _SENT and "sent" not in shown:
            shown["sent"] = True
            self._show({"type": "state", "document_id": document_id, "file": entry.file_name, "state": "sent"})
        if entry.state is State.SETTLED and shown["answer"] == 1:
            shown["answer"] = 2
            await self._show_answer(document_id)
        if entry.handed_in and entry.analysis_id and "link" not in shown and entry.state not in FINAL - {State.SETTLED}:
            await self._show_link(entry, shown)

    async def _show_answer(self, document_id: str) -> None:
        answer = await asyncio.to_thread(self._shown, document_id)
        if answer is not None and document_id == self._current:
            self._show(answer)

    async def _show_link(self, entry: Entry, shown: dict[str, Any]) -> None:
        try:
            link = await self._client.claim(entry.analysis_id, open_within_s=LINK_OPEN_S)
        except Unavailable:
            raise
        except DocferryError as error:
            shown["link"] = ""
            _log.info("no link for document %s: %s", entry.document_id, error)
            return
        shown["link"] = link
        if link and entry.document_id == self._current:
            self._show({"type": "claim", "document_id": entry.document_id, "link": link, **qr_code(link)})

    def _shown(self, document_id: str) -> Event | None:
        """The newest answer that is here, as the page shows it."""
        raw = self._outbox.analysis(document_id)
        if raw is not None:
            analysis = analysis_pb2.Analysis.FromString(raw)
            if not analysis.versions:
                return None
            newest = analysis.versions[-1]
            return answer_of(document_id, newest.version, newest.interpretation)
        raw = self._outbox.edge_answer(document_id)
        return None if raw is None else answer_of(document_id, 1, analysis_pb2.Interpretation.FromString(raw))

    def _keep(self, wish: dict[str, Any]) -> None:
        with self._wishes:
            waiting = self._waiting()
            if len(waiting) >= MAX_CORRECTIONS:
                raise InputError("too many corrections wait for the network", remedy="try again once it is back")
            self._store([*waiting, wish])

    def _waiting(self, mark: str = _CORRECTIONS) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._outbox.mark(mark) or "[]")
        return found

    def _store(self, wishes: list[dict[str, Any]], mark: str = _CORRECTIONS) -> None:
        self._outbox.set_mark(mark, json.dumps(wishes, ensure_ascii=False))

    def _set_aside(self, wish: dict[str, Any]) -> None:
        with self._wishes:
            others = [other for other in self._waiting(_SET_ASIDE) if other != wish]
            self._store([*others, wish][-MAX_CORRECTIONS:], _SET_ASIDE)

    def _done(self, wish: dict[str, Any]) -> None:
        with self._wishes:
            rest = self._waiting()
            if wish in rest:
                rest.remove(wish)
                self._store(rest)

    async def _send_corrections(self) -> None:
        for wish in await asyncio.to_thread(self._waiting):
            document_id = str(wish.get("document_id"))
            try:
                entry = await asyncio.to_thread(self._outbox.get, document_id)
                if entry.state not in FINAL:
                    continue
                if entry.state is State.SETTLED:
                    await self._send(entry, wish)
                else:
                    _log.warning("document %s is %s: a correction is dropped", document_id, entry.state)
            except (Unavailable, sqlite3.Error, OSError):
                # The network's fault or the disk's, not this correction's.
                raise
            except DocferryError as error:
                if error.retryable or isinstance(error, Outdated):
                    continue
                _log.warning("document %s: a correction cannot be sent: %s", document_id, error)
            except Exception:  # noqa: BLE001 - a fault over this correction must not keep the others back
                _log.exception("document %s: a correction is set aside", document_id)
                await asyncio.to_thread(self._set_aside, wish)
            await asyncio.to_thread(self._done, wish)

    async def _send(self, entry: Entry, wish: dict[str, Any]) -> None:
        """Send one correction, for the line that stands there in the newest version."""
        analysis = await self._client.get(entry.analysis_id)
        if not analysis.versions:
            raise NotFound("the cloud has read nothing there", remedy="put it right in the console")
        newest = analysis.versions[-1]
        page = int(wish["page"])
        pages = document_from_proto(newest.interpretation.document).pages
        lines = pages[page].lines if page < len(pages) else ()
        there = _line_at(lines, *wish["place"])
        if there is None:
            raise NotFound("the line is not in the cloud's answer", remedy="put it right in the console")
        change = analysis_service_pb2.LineCorrection(page=page, line_id=there.id, text=str(wish["text"]))
        put_right = await self._client.correct(entry.analysis_id, newest.version, [change])
        version = put_right.versions[-1]
        if entry.document_id == self._current:
            self._show(answer_of(entry.document_id, version.version, version.interpretation))


def answer_of(document_id: str, version: int, content: analysis_pb2.Interpretation) -> Event:
    """An answer as the page shows it: fields, and lines with their places and whether they are in doubt."""
    document: Document = document_from_proto(content.document)
    lines = [
        {
            "page": number,
            "id": line.id,
            "text": line.text,
            "polygon": [[round(value, 4) for value in point] for point in line.polygon],
            "doubtful": line.confidence is not None and line.confidence < _DOUBTFUL,
        }
        for number, page in enumerate(document.pages)
        for line in page.lines
    ]
    return {
        "type": "answer",
        "document_id": document_id,
        "version": version,
        "summary": content.summary,
        "fields": [{"name": field.name, "value": field.value} for field in document.fields[:12]],
        "tables": sum(region.type.value == "table" for page in document.pages for region in page.regions),
        "lines": lines[:_MOST_LINES],
    }


def qr_code(text: str) -> dict[str, Any]:
    """A QR code: `size` is its modules along a side with the quiet zone, `path` the dark ones for an SVG path."""
    import segno

    rows = segno.make(text, error="m", micro=False).matrix
    quiet = 4
    dark = "".join(
        f"M{x + quiet} {y + quiet}h1v1h-1z" for y, row in enumerate(rows) for x, module in enumerate(row) if module
    )
    return {"size": len(rows) + 2 * quiet, "path": dark}


def _lines(answer: Event | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [] if answer is None else answer["lines"]
    return found


def _line_at(lines: Iterable[Line], x: float, y: float) -> Line | None:
    """The line whose middle is within its own height above or below a place; the nearest where there are several.

    Another reader draws its boxes a little differently. But the correction of a line that it has not found at all must
    not land on a neighbour.
    """
    near: list[tuple[float, Line]] = []
    for line in lines:
        across, down = ([point[axis] for point in line.polygon] for axis in (0, 1))
        away = abs((min(down) + max(down)) / 2 - y)
        if min(across) <= x <= max(across) and away <= max(down) - min(down):
            near.append((away, line))
    return min(near, key=lambda one: one[0])[1] if near else None


def _middle(line: dict[str, Any]) -> tuple[float, float]:
    points = line["polygon"]
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
