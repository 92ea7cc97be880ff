"""What people add to a printed page: a stamp, a ring around the total."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from benchmarks.generator.fonts import FONTS, Face, load
from benchmarks.generator.truth import Truth, TruthLine

Pixels = NDArray[np.uint8]
STAMPS = {"en": ("PAID", "RECEIVED", "COPY", "CHECKED"), "zh": ("已付款", "现金收讫", "已核对")}
STAMP_COLOURS = ((40, 40, 190), (150, 60, 40), (120, 40, 110))  # BGR: red, blue, violet


def stamp(page: Pixels, truth: Truth, rng: np.random.Generator) -> tuple[Pixels, Truth]:
    """A rubber stamp in a frame, a little turned; its word joins the truth as the last line."""
    words = STAMPS[truth.language.value]
    text = words[int(rng.integers(len(words)))]
    face = Face.CHINESE if truth.language == "zh" else Face.SANS
    font = load(FONTS[truth.split][face][0].path(bold=True), max(14, round(page.shape[1] * 0.055)))
    x0, y0, x1, y1 = (round(value) for value in font.getbbox(text, anchor="ls"))
    pad = (y1 - y0) // 2
    plate = Image.new("L", (x1 - x0 + 2 * pad, y1 - y0 + 2 * pad))
    pen = ImageDraw.Draw(plate)
    pen.text((pad - x0, pad - y0), text, font=font, fill=255, anchor="ls")
    pen.rectangle((1, 1, plate.width - 2, plate.height - 2), outline=255, width=max(2, pad // 5))
    angle = np.deg2rad(float(rng.uniform(-18, 18)))
    height, width = page.shape[:2]
    centre = np.array([float(rng.uniform(0.25, 0.75)) * width, float(rng.uniform(0.55, 0.9)) * height])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    middle = np.array([plate.width / 2, plate.height / 2])
    matrix = np.concatenate([turn, (centre - turn @ middle)[:, None]], axis=1)
    mask = cv2.warpAffine(np.asarray(plate), matrix, (width, height)).astype(np.float32)[:, :, None] / 255
    worn = 0.55 + 0.4 * rng.random((height, width, 1)).astype(np.float32)
    colour = np.array(STAMP_COLOURS[int(rng.integers(len(STAMP_COLOURS)))], np.float32) / 255
    share = mask * worn
    inked = page.astype(np.float32) * (1 - share * (1 - colour))
    box = np.array([[pad, pad], [pad + x1 - x0, pad], [pad + x1 - x0, pad + y1 - y0], [pad, pad + y1 - y0]], np.float64)
    polygon = box @ turn.T + (centre - turn @ middle)
    line = TruthLine(polygon, text)
    return np.rint(inked).astype(np.uint8), replace(truth, lines=(*truth.lines, line))


def circle_total(page: Pixels, truth: Truth, rng: np.random.Generator) -> Pixels:
    """A ring of ball-pen ink around the printed total."""
    total = next((line for line in truth.lines if line.text == truth.fields.get("total")), None)
    if total is None:
        return page
    low, high = total.polygon.min(axis=0), total.polygon.max(axis=0)
    centre, size = (low + high) / 2, (high - low) / 2
    axes = size[0] * float(rng.uniform(1.2, 1.5)) + 8, size[1] * float(rng.uniform(1.9, 2.8)) + 4
    turns = np.linspace(0, 2 * np.pi * 1.06, 90)
    wobble = 1 + 0.05 * np.sin(3 * turns + float(rng.uniform(0, 6)))
    points = np.stack(
        [centre[0] + axes[0] * wobble * np.cos(turns), centre[1] + axes[1] * wobble * np.sin(turns)], axis=1
    )
    layer = page.copy()
    thickness = max(2, round(page.shape[1] / 320))
    cv2.polylines(layer, [np.rint(points * 16).astype(np.int32)], False, (160, 70, 40), thickness, cv2.LINE_AA, shift=4)
    return np.minimum(page, layer)
