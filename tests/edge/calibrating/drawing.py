"""Labels drawn at random, with signals that really tell right from wrong."""

import random

from docferry.confidence.signals import NAMES
from docferry_edge.calibrating.labels import LabelledDocument, LabelledField, LabelledLine

WORST, PAGE_DOUBT, SUMS = (NAMES.index(name) for name in ("doubt_worst", "page_doubt", "amount_sums"))


def document(name: str, generator: random.Random, *, reader: str = "reader@1", shift: float = 0.0) -> LabelledDocument:
    """One document of 25 lines, about one in twelve wrong."""
    hardness = generator.gauss(0, 0.7)
    lines = []
    for _ in range(25):
        signals = [0.0] * len(NAMES)
        signals[WORST] = generator.gauss(-5, 2)
        signals[PAGE_DOUBT] = -4 + hardness
        signals[SUMS] = float(generator.random() < 0.2)
        odds = -1.6 - 0.8 * signals[WORST] + 1.0 * signals[SUMS] - 1.2 * hardness - shift
        right = generator.random() < 1 / (1 + 2.718281828**-odds)
        score = min(1.0, max(0.5, 1 - 2.718281828 ** signals[WORST]))
        lines.append(LabelledLine(tuple(signals), score, right, 0 if right else generator.randint(1, 4), 12))
    right_lines = sum(line.right for line in lines)
    fields = tuple(
        LabelledField("total", generator.uniform(0.5, 1), (number,), False, backed, lines[number].right or backed)
        for number, backed in ((3, generator.random() < 0.5), (7, False))
    )
    quality = (max(0.0, generator.gauss(0, 0.3)), 0.0, 0.0, 0.0, 0.02, 0.0)
    layout = tuple((score, generator.random() < score) for score in (generator.random() for _ in range(4)))
    return LabelledDocument(name, reader, tuple(lines), 26, right_lines, quality, layout, fields)


def documents(count: int, seed: int = 0, **options) -> list[LabelledDocument]:
    generator = random.Random(seed)
    return [document(f"{seed}-{n}", generator, **options) for n in range(count)]
