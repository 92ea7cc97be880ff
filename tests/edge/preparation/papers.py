"""Rendered pages for the tests of preparation."""

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont


def letter(width=900, height=1200, size=24, lines=30, left=70, paper=255, ink=0):
    """A page of text, BGR; the same one every time."""
    page = Image.new("RGB", (width, height), (paper,) * 3)
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(size)
    words = ("invoice", "delivery", "twelve", "boxes", "paper", "Friday", "due", "total", "amount", "kindly")
    for number in range(lines):
        text = " ".join(words[(number * 3 + place) % len(words)] for place in range(7))
        pen.text((left, 60 + number * int(size * 1.45)), text, (ink,) * 3, font)
    return np.asarray(page)[:, :, ::-1].copy()


def leaning(page, degrees):
    """The page turned clockwise on a canvas of its own paper that holds all of it."""
    height, width = page.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), -degrees, 1.0)
    cosine, sine = abs(matrix[0, 0]), abs(matrix[0, 1])
    size = (int(width * cosine + height * sine), int(width * sine + height * cosine))
    matrix[:, 2] += (size[0] / 2 - width / 2, size[1] / 2 - height / 2)
    paper = page[0, 0].tolist()
    return cv2.warpAffine(page, matrix, size, flags=cv2.INTER_CUBIC, borderValue=paper)
