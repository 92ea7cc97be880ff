"""What the page shows: the newest camera frame, and the story of the document being read.

Frames and events come from the agent's threads and go to any number of listeners in the event loop. Nothing here ever
waits for a listener: one that is too slow misses frames, and loses its stream of events, which it then asks for anew.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from docferry.errors import Overloaded

if TYPE_CHECKING:
    from docferry.vision.images import Pixels

Event = dict[str, Any]
"""A JSON object with a `type`; see `docferry_edge.work.hint_of` and `docferry_edge.agent`."""

MAX_LISTENERS = 8
"""Streams of events, and as many previews, at the same time."""

_BEHIND = 512
"""Events a listener may lag behind."""
_STORY = 4096
"""Events kept of one document; a page has at most 2,000 lines."""


class Frames:
    """One looker at the preview. `close` it."""

    def __init__(self, close: Callable[[Frames], None]) -> None:
        self._close = close
        self._held: bytes | None = None
        self._there = asyncio.Event()

    async def get(self) -> bytes | None:
        """The newest frame that was not given yet, once there is one; None at the end."""
        await self._there.wait()
        if self._held is not None:
            self._there.clear()
        return self._held

    def put(self, frame: bytes | None) -> None:
        """A newer frame takes the place of one that nobody has fetched; None ends it."""
        self._held = frame
        self._there.set()

    def close(self) -> None:
        """No more, please."""
        self._close(self)


class Events:
    """One listener: the story so far, and what comes after it. `close` it."""

    def __init__(self, story: list[Event], close: Callable[[Events], None]) -> None:
        self.story = story
        self._close = close
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue(_BEHIND)

    async def get(self) -> Event | None:
        """The next event, once there is one; None at the end, or when this listener fell too far behind."""
        return await self._queue.get()

    def put(self, event: Event) -> bool:
        """Whether there was room."""
        with contextlib.suppress(asyncio.QueueFull):
            self._queue.put_nowait(event)
            return True
        return False

    def end(self) -> None:
        """What was not fetched is dropped, and None follows."""
        self._queue = asyncio.Queue(_BEHIND) if self._queue.full() else self._queue
        self._queue.put_nowait(None)

    def close(self) -> None:
        """No more, please."""
        self._close(self)


class Hub:
    """Between the agent and whoever looks.

    Args:
        loop: The event loop in which listeners live.
        encode: Makes a small JPEG of a frame; called only while somebody looks at the preview.
        has_camera: Whether frames will ever come.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        encode: Callable[[Pixels], bytes] | None = None,
        *,
        has_camera: bool = False,
    ) -> None:
        self.has_camera = has_camera
        self._loop = loop
        self._encode = encode or preview
        self._lookers: set[Frames] = set()
        self._listeners: set[Events] = set()
        self._story: list[Event] = []
        self._guest = 0
        self._closed = False

    def show(self, pixels: Pixels) -> None:
        """A frame from the camera, from any thread. Without anyone looking it costs nothing."""
        if self._lookers and not self._closed:
            self._loop.call_soon_threadsafe(self._spread, self._encode(pixels))

    def tell(self, event: Event) -> None:
        """An event, from any thread. One of type `document` begins a new story, one of type `left` ends it."""
        if not self._closed:
            self._loop.call_soon_threadsafe(self._hear, event, self._guest)

    def forget(self) -> None:
        """The guest has gone: nothing of the story is told to who comes next. Call it within the loop."""
        self._guest += 1
        self._append({"type": "left"})

    def look(self) -> Frames:
        """Frames from now on.

        Raises:
            Overloaded: `MAX_LISTENERS` are looking already.
        """
        _check_room(len(self._lookers))
        looker = Frames(self._lookers.discard)
        self._lookers.add(looker)
        if self._closed:
            looker.put(None)
        return looker

    def listen(self) -> Events:
        """The story so far, then every event as it comes.

        Raises:
            Overloaded: `MAX_LISTENERS` are listening already.
        """
        _check_room(len(self._listeners))
        listener = Events([{"type": "camera", "present": self.has_camera}, *self._story], self._listeners.discard)
        self._listeners.add(listener)
        if self._closed:
            listener.end()
        return listener

    def close(self) -> None:
        """End every stream, now and in future."""
        self._closed = True
        for looker in self._lookers:
            looker.put(None)
        for listener in self._listeners:
            listener.end()

    def _spread(self, frame: bytes) -> None:
        if not self._closed:
            for looker in self._lookers:
                looker.put(frame)

    def _hear(self, event: Event, guest: int) -> None:
        # What was on its way here while the guest left is theirs, too.
        if guest == self._guest or event["type"] == "camera":
            self._append(event)

    def _append(self, event: Event) -> None:
        if self._closed:
            return
        left = event["type"] == "left"
        if left or event["type"] == "document":
            self._story.clear()
        if not left and len(self._story) < _STORY:
            self._story.append(event)
        for listener in list(self._listeners):
            if not listener.put(event):
                self._listeners.discard(listener)
                listener.end()


def preview(pixels: Pixels) -> bytes:
    """A small JPEG of a camera's frame, without metadata: 640 pixels on its long side."""
    import cv2
    import numpy as np

    # Every so manyth pixel first: averaging all of twelve megapixels would cost more than everything else here.
    skipped = max(1, max(pixels.shape[:2]) // (2 * _PREVIEW_SIDE))
    small = pixels[::skipped, ::skipped]
    scale = min(1.0, _PREVIEW_SIDE / max(small.shape[:2]))
    size = (max(1, round(small.shape[1] * scale)), max(1, round(small.shape[0] * scale)))
    _, encoded = cv2.imencode(
        ".jpg", cv2.resize(small, size, interpolation=cv2.INTER_AREA), [cv2.IMWRITE_JPEG_QUALITY, 60]
    )
    return np.asarray(encoded).tobytes()


_PREVIEW_SIDE = 640


def _check_room(count: int) -> None:
    if count >= MAX_LISTENERS:
        raise Overloaded(f"{count} pages are open already", retry_after=5.0, remedy="close one of them")
