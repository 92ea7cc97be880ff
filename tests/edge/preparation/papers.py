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


def on_table(page, corners, width=1600, height=1200, table=60, light=1.0):
    """A photo of the page on a dark, grainy table; `corners` relative, clockwise from the page's top left."""
    grain = np.random.default_rng(5).normal(table, 4, (height, width, 1))
    photo = np.clip(np.repeat(grain, 3, axis=2), 0, 255).astype(np.uint8)
    page_height, page_width = page.shape[:2]
    there = np.float32(corners) * np.float32([width, height])
    here = np.float32([[0, 0], [page_width, 0], [page_width, page_height], [0, page_height]])
    matrix = cv2.getPerspectiveTransform(here, there)
    laid = cv2.warpPerspective(page, matrix, (width, height), flags=cv2.INTER_AREA)
    mask = cv2.warpPerspective(np.full(page.shape[:2], 255, np.uint8), matrix, (width, height)) > 127
    photo[mask] = laid[mask]
    return np.clip(photo * light, 0, 255).astype(np.uint8)
