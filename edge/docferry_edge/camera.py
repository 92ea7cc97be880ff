"""Capture from a camera: a page that is laid down and comes to rest is taken once, in the best of several shots.

`Camera` is the port; behind it stand V4L2 devices (through OpenCV) and the Raspberry Pi's own camera (through the
program `rpicam-still`). Nothing is opened before the first shot.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from docferry.errors import ConfigurationError, UnreadableImage
from docferry.vision.images import Pixels, decode
from docferry_edge.preparation.quality import blur, grey_at
from docferry_edge.preparation.skew import count_letters

RPICAM = "rpicam"
_RPICAM_PROGRAMS = ("rpicam-still", "libcamera-still")
_RPICAM_S = 15.0
"""A still takes about a second; a program that needs this long hangs."""

_JPEG_QUALITY = 90


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """One shot.

    Attributes:
        pixels: `(height, width, 3)` uint8 BGR.
        data: The image file it came as; empty if the camera gives bare pixels.
    """

    pixels: Pixels
    data: bytes = b""

    def file(self) -> bytes:
        """The shot as an image file: the camera's own, or a full-size JPEG of quality 90 without any metadata."""
        if self.data:
            return self.data
        _, encoded = cv2.imencode(".jpg", self.pixels, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
        return encoded.tobytes()


class Camera(Protocol):
    """What takes shots. `name` is shown to people."""

    name: str

    def shoot(self) -> Picture:
        """The next shot.

        Raises:
            ConfigurationError: The camera is not there, or gives no picture.
        """

    def close(self) -> None:
        """Let go of the device; a later `shoot` opens it again."""


class V4l2Camera:
    """A USB or CSI camera as Linux shows it, such as `/dev/video0`.

    Args:
        device: The device file.
        width, height: The wanted size in pixels; the camera takes the nearest it knows.
    """

    def __init__(self, device: str, width: int, height: int) -> None:
        self.name = device
        self._size = (width, height)
        self._open: cv2.VideoCapture | None = None

    def shoot(self) -> Picture:
        """See `Camera`."""
        if self._open is None:
            self._open = self._opened()
        good, pixels = self._open.read()
        if not good or pixels is None:
            self.close()
            raise ConfigurationError(
                f"{self.name}: the camera gives no picture", remedy="check the cable, plug it in again"
            )
        return Picture(np.asarray(pixels, dtype=np.uint8))

    def close(self) -> None:
        """See `Camera`."""
        if self._open is not None:
            self._open.release()
            self._open = None

    def _opened(self) -> cv2.VideoCapture:
        capture = cv2.VideoCapture(self.name, cv2.CAP_V4L2)
        if not capture.isOpened():
            capture.release()
            raise ConfigurationError(
                f"{self.name}: the camera cannot be opened",
                remedy="check camera.source, the cable, and that the user is in the group video",
            )
        # Compressed frames: uncompressed ones of a page's size come at one or two a second over USB 2.
        capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*"MJPG"))
        capture.set(cv2.CAP_PROP_FRAME_WIDTH, self._size[0])
        capture.set(cv2.CAP_PROP_FRAME_HEIGHT, self._size[1])
        # An old frame from the queue would show the hand that is no longer there.
        capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
        return capture


class RpicamCamera:
    """The Raspberry Pi's camera, a process of `rpicam-still` a shot."""

    name = RPICAM

    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)

    def shoot(self) -> Picture:
        """See `Camera`."""
        program = next((found for name in _RPICAM_PROGRAMS if (found := shutil.which(name))), None)
        if program is None:
            raise ConfigurationError(
                "rpicam-still: no such program",
                remedy="install rpicam-apps, or set camera.source to a /dev/video device",
            )
        width, height = (str(side) for side in self._size)
        command = [program, "--nopreview", "--timeout", "400", "--encoding", "jpg", "--quality", str(_JPEG_QUALITY)]
        try:
            done = subprocess.run(
                [*command, "--width", width, "--height", height, "--output", "-"],
                capture_output=True,
                timeout=_RPICAM_S,
                check=True,
            )
            return Picture(decode(done.stdout, name=self.name), done.stdout)
        except subprocess.TimeoutExpired:
            raise ConfigurationError(
                f"{program}: no picture within {_RPICAM_S:g} s", remedy="check the ribbon cable, restart the device"
            ) from None
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing"]
            raise ConfigurationError(
                f"{program} ended with status {error.returncode} and said: {said[-1]}", remedy="check the ribbon cable"
            ) from None
        except UnreadableImage as error:
            raise ConfigurationError(f"{program} gave no picture: {error}", remedy="update rpicam-apps") from None

    def close(self) -> None:
        """See `Camera`; every shot has ended with its process."""


def open_camera(source: str, width: int, height: int) -> Camera:
    """The camera that `camera.source` names: `rpicam`, or a device file."""
    return RpicamCamera(width, height) if source == RPICAM else V4l2Camera(source, width, height)


def best(pictures: Iterable[Picture]) -> Picture:
    """The sharpest shot that is neither blown out nor black; no shot after a good one is looked at, or even taken.

    Args:
        pictures: At least one; an iterator that shoots only when asked saves the shots that are not needed.
    """
    chosen: Picture | None = None
    least = float("inf")
    for picture in pictures:
        fault = _fault(picture.pixels)
        if fault < least:
            chosen, least = picture, fault
        if least <= _GOOD:
            break
    if chosen is None:
        raise ValueError("best() needs at least one picture")
    return chosen


_GOOD = 1.1
"""Blur in pixels at 1000 px, plus ten times the clipped share, up to which a shot cannot be told from a better one."""


def _fault(pixels: Pixels) -> float:
    grey = grey_at(pixels, 1000)
    width = blur(grey)
    clipped = float(((grey >= 254) | (grey <= 1)).mean())
    # Without an edge there is no blur to be measured, and nothing to be read either.
    return (width if width > 0 else 100.0) + 10 * clipped


@dataclass(slots=True)
class Trigger:
    """Tells when a page has been laid down and has come to rest; each page once.

    Attributes:
        moving: Mean change of grey between two looks, above which something moves.
        other: The same against the page taken last, above which it is another scene.
        still: Looks in a row without movement before a page is taken.
        letters: Fewest letters in view; an empty table is not taken.
    """

    moving: float = 2.5
    other: float = 6.0
    still: int = 3
    letters: int = 30
    _before: npt.NDArray[np.float32] | None = None
    _taken: npt.NDArray[np.float32] | None = None
    _calm: int = 0

    def look(self, pixels: Pixels) -> bool:
        """Whether the scene in this shot is to be taken now."""
        now = cv2.resize(pixels, (64, 48), interpolation=cv2.INTER_AREA).mean(axis=2).astype(np.float32)
        calm = self._before is not None and float(np.abs(now - self._before).mean()) <= self.moving
        self._before = now
        self._calm = self._calm + 1 if calm else 0
        if self._calm < self.still:
            return False
        if self._taken is not None and float(np.abs(now - self._taken).mean()) <= self.other:
            return False
        # From here on this scene is known, be there a page in it or not: it is looked at closely only once.
        self._taken = now
        return count_letters(pixels) >= self.letters

    def forget(self) -> None:
        """The page could not be taken in after all: take it at the next look."""
        self._taken = None


@dataclass(slots=True)
class Watch:
    """A camera and its trigger: looks, and gives the best shot of each new page.

    Attributes:
        shots: At most this many are taken of a page to choose from.
        show: Is handed every look, for a preview.
    """

    camera: Camera
    shots: int = 5
    show: Callable[[Pixels], None] | None = None
    trigger: Trigger = field(default_factory=Trigger)

    def look(self) -> Picture | None:
        """One look; the page's best shot when one has come to rest, else None.

        Raises:
            ConfigurationError: The camera gives no picture.
        """
        first = self.camera.shoot()
        if self.show is not None:
            self.show(first.pixels)
        if not self.trigger.look(first.pixels):
            return None
        return best(first if number == 0 else self.camera.shoot() for number in range(self.shots))
