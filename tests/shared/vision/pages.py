"""Pages drawn for the tests, with the font that Pillow carries."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LETTER = (
    "Dear Sir or Madam,",
    "we thank you for your order of 14 March 2025",
    "and are pleased to confirm its delivery.",
    "Invoice number 20250314-7",
    "Total amount due 1,204.50",
    "Please pay within thirty days.",
    "Yours sincerely, Harbour Books Ltd",
)


def drawn(lines, *, width=900, size=30, left=60, top=60, pitch=60, height=None):
    """A white page with black lines of text; BGR."""
    page = Image.new("RGB", (width, height or top * 2 + pitch * len(lines)), "white")
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(size)
    for number, text in enumerate(lines):
        pen.text((left, top + pitch * number), text, "black", font)
    return np.ascontiguousarray(np.asarray(page)[:, :, ::-1])


def columns(left, right, *, width=1240, size=26, top=200, pitch=48, title="A Title Across The Whole Page"):
    """A page of two columns of running text under one heading; BGR."""
    page = Image.new("RGB", (width, top * 2 + pitch * max(len(left), len(right))), "white")
    pen = ImageDraw.Draw(page)
    pen.text((width // 4, 80), title, "black", ImageFont.load_default(size + 16))
    font = ImageFont.load_default(size)
    for x, texts in ((60, left), (width // 2 + 40, right)):
        for number, text in enumerate(texts):
            pen.text((x, top + pitch * number), text, "black", font)
    return np.ascontiguousarray(np.asarray(page)[:, :, ::-1])
