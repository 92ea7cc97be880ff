"""A legend: small keys of colour, each before its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from docferry.document import Box
from docferry_cloud.charts.chart import Label
from docferry_cloud.charts.colours import Mask
from docferry_cloud.pipeline_geometry import within

_ROOM = 4.0
"""A key lies this near before its text, in heights of a line."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a legend says of a colour: its name, and where the key before the name is."""

    label: Label
    box: Box


def legend_of(texts: Sequence[Label], masks: Sequence[Mask]) -> dict[int, Key]:
    """The name of each colour that a key stands before."""
    found: dict[int, Key] = {}
    pieces = [cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)[2][1:].tolist() for mask in masks]
    for label in texts:
        x0, y0, _, y1 = label.box
        room = (x0 - _ROOM * label.size, y0 - 0.3 * label.size, x0, y1 + 0.3 * label.size)
        for colour, boxes in enumerate(pieces):
            keys = [
                (x - 2.0, y - 2.0, x + across + 2.0, y + down + 2.0)
                for x, y, across, down, _ in boxes
                if across >= 0.8 * label.size and within((x, y, x + across, y + down), room, 0)
            ]
            if keys and colour not in found:
                found[colour] = Key(label, keys[0])
                break
    return found
