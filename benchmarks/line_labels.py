"""Which lines of a reading are right, by the truth that stands at the same place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from benchmarks.metrics import Polygon, TextLine, line_groups, words

_LOOSE_POINT = re.compile(r"(?<!\d)\.|\.(?!\d)")


def right_lines(truth: Sequence[TextLine], read: Mapping[str, TextLine], *, exact: bool = False) -> dict[str, bool]:
    """For each read line by id, whether it is right; lines with nothing to compare by are left out.

    Truth and readers cut rows differently: what covers one another is compared as one text, and where that differs a
    line is still right if one of the printed ones reads like it.

    Args:
        truth: Places in any unit, texts.
        read: Places in the same unit, texts.
        exact: Every character but space counts; otherwise letters, digits and decimal points, case folded.
    """
    key = _exact if exact else _plain
    names = {id(shape): name for name, shape in read.items()}
    found: dict[str, bool] = {}
    for printed, got in line_groups(truth, list(read.values())):
        whole = key(" ".join(text for _, text in _across(printed)))
        same = whole == key(" ".join(text for _, text in _across(got)))
        alone = {key(text) for _, text in printed}
        for line in got:
            own = key(line[1])
            if whole or own:
                found[names[id(line)]] = same or (len(printed) + len(got) > 2 and own in alone)
    return found


def _plain(text: str) -> str:
    return _LOOSE_POINT.sub("", "".join(words(text)))


def _exact(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def _across(lines: Sequence[TextLine]) -> list[TextLine]:
    return sorted(lines, key=lambda line: _left(line[0]))


def _left(polygon: Polygon) -> float:
    return min(x for x, _ in polygon)
