"""Cameras behind their port, by recorded doubles; and a page is taken once, at rest, in its best shot."""

import io
import os
import stat
from typing import ClassVar

import cv2
import numpy as np
import pytest
from PIL import Image

from docferry.errors import ConfigurationError
from docferry.vision.images import decode
from docferry_edge.camera import Picture, RpicamCamera, Trigger, V4l2Camera, Watch, best, open_camera
from tests.edge.preparation.papers import letter, on_table

PLACE = [[0.25, 0.05], [0.75, 0.05], [0.75, 0.95], [0.25, 0.95]]
OTHER = [[0.2, 0.15], [0.6, 0.1], [0.65, 0.9], [0.22, 0.97]]
PAGE = on_table(letter(paper=235), PLACE)
SECOND = on_table(letter(paper=235, lines=12, size=40), OTHER)
TABLE = on_table(np.full((100, 80, 3), 60, np.uint8), PLACE)
HAND = np.roll(PAGE, 150, axis=1)


class Recorded:
    """A camera that plays frames and counts how many were asked for."""

    name = "recorded"

    def __init__(self, frames):
        self.frames = list(frames)
        self.shots = 0

    def shoot(self):
        self.shots += 1
        if not self.frames:
            raise ConfigurationError("recorded: the camera gives no picture", remedy="-")
        return Picture(self.frames.pop(0))

    def close(self):
        pass


class FakeCapture:
    """What `cv2.VideoCapture` is to us."""

    opens = True
    made: ClassVar[list] = []

    def __init__(self, device, backend):
        self.device, self.backend, self.settings, self.released = device, backend, {}, False
        self.frames = [(True, PAGE), (False, None)]
        FakeCapture.made.append(self)

    def isOpened(self):
        return self.opens

    def set(self, name, value):
        self.settings[name] = value
        return True

    def read(self):
        return self.frames.pop(0)

    def release(self):
        self.released = True


@pytest.fixture
def capture(monkeypatch):
    monkeypatch.setattr(FakeCapture, "made", [])
    monkeypatch.setattr(cv2, "VideoCapture", FakeCapture)
    return FakeCapture


def test_a_v4l2_camera_is_opened_at_the_first_shot_only(capture):
    camera = open_camera("/dev/video7", 1920, 1080)
    assert isinstance(camera, V4l2Camera)
    assert not capture.made
    assert (camera.shoot().pixels == PAGE).all()
    (device,) = capture.made
    assert (device.device, device.backend) == ("/dev/video7", cv2.CAP_V4L2)
    assert device.settings[cv2.CAP_PROP_FRAME_WIDTH] == 1920
    assert device.settings[cv2.CAP_PROP_BUFFERSIZE] == 1


def test_a_camera_that_was_unplugged_is_named_let_go_and_opened_again(capture):
    camera = V4l2Camera("/dev/video0", 640, 480)
    camera.shoot()
    with pytest.raises(ConfigurationError, match=r"/dev/video0: the camera gives no picture"):
        camera.shoot()
    assert capture.made[0].released
    camera.shoot()
    assert len(capture.made) == 2
    camera.close()
    assert capture.made[1].released


def test_a_camera_that_is_not_there_is_named_with_the_remedy(capture, monkeypatch):
    monkeypatch.setattr(FakeCapture, "opens", False)
    with pytest.raises(ConfigurationError, match=r"/dev/video0: the camera cannot be opened") as error:
        V4l2Camera("/dev/video0", 640, 480).shoot()
    assert "camera.source" in error.value.remedy
    assert capture.made[0].released


def program(folder, monkeypatch, script):
    """A `rpicam-still` of our own, first on the PATH."""
    file = folder / "rpicam-still"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def jpeg(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels[:, :, ::-1]).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def test_the_pi_s_camera_is_asked_for_one_still(tmp_path, monkeypatch):
    recorded = jpeg(PAGE)
    (tmp_path / "still.jpg").write_bytes(recorded)
    program(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/asked; cat {tmp_path}/still.jpg')
    camera = open_camera("rpicam", 4608, 2592)
    assert isinstance(camera, RpicamCamera)
    picture = camera.shoot()
    assert picture.file() == recorded
    assert (picture.pixels == decode(recorded)).all()
    asked = (tmp_path / "asked").read_text()
    assert "--width 4608 --height 2592 --output -" in asked
    assert "--nopreview" in asked
    camera.close()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'ERROR: *** no cameras available ***' >&2; exit 255", "no cameras available"),
        ("exit 0", "gave no picture"),
        ("printf '\\377\\330\\377broken'", "gave no picture"),
    ],
)
def test_what_the_pi_s_program_says_is_passed_on(tmp_path, monkeypatch, script, reason):
    program(tmp_path, monkeypatch, script)
    with pytest.raises(ConfigurationError, match=reason):
        RpicamCamera(640, 480).shoot()


def test_a_missing_program_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="rpicam-still: no such program"):
        RpicamCamera(640, 480).shoot()


def blurred(sigma):
    return Picture(cv2.GaussianBlur(PAGE, (0, 0), sigma))


def test_the_sharpest_shot_is_kept():
    shots = [blurred(6), blurred(3), blurred(4.5)]
    assert best(shots) is shots[1]


def test_no_shot_is_taken_after_a_good_one():
    camera = Recorded([blurred(4).pixels, PAGE, PAGE, PAGE])
    chosen = best(camera.shoot() for _ in range(4))
    assert (chosen.pixels == PAGE).all()
    assert camera.shots == 2


def test_a_blown_out_shot_is_not_kept():
    blown = Picture(np.clip(PAGE.astype(np.int16) + 120, 0, 255).astype(np.uint8))
    good = blurred(1.5)
    assert best([blown, good]) is good
    assert best([good, blown]) is good


def test_there_is_no_best_of_nothing():
    with pytest.raises(ValueError, match="at least one"):
        best([])


def looks(watch):
    taken = []
    while watch.camera.frames:
        picture = watch.look()
        taken.append(picture is not None)
    return taken


def test_a_page_is_taken_once_it_rests_and_only_once():
    watch = Watch(Recorded([TABLE] * 6 + [HAND] + [PAGE] * 12), shots=1)
    taken = looks(watch)
    assert sum(taken) == 1
    assert taken.index(True) == 6 + 1 + 3


def test_the_next_page_is_taken_and_so_is_the_same_page_laid_down_again():
    watch = Watch(Recorded([PAGE] * 8 + [TABLE] * 8 + [SECOND] * 8 + [TABLE] * 8 + [PAGE] * 8), shots=1)
    assert sum(looks(watch)) == 3


def test_an_empty_table_and_a_moving_page_are_never_taken():
    assert not any(looks(Watch(Recorded([TABLE] * 10))))
    moving = [np.roll(PAGE, 40 * step, axis=1) for step in range(12)]
    assert not any(looks(Watch(Recorded(moving))))


def test_a_page_that_could_not_be_kept_is_taken_at_the_next_look():
    trigger = Trigger()
    assert [trigger.look(PAGE) for _ in range(5)].count(True) == 1
    trigger.forget()
    assert trigger.look(PAGE)


def test_a_frame_without_a_file_becomes_a_full_size_jpeg_without_metadata():
    data = Picture(PAGE).file()
    with Image.open(io.BytesIO(data)) as image:
        assert image.format == "JPEG"
        assert image.size == (PAGE.shape[1], PAGE.shape[0])
        assert not image.getexif()
