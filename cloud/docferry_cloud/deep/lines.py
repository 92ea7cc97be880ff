"""From what two detectors and several recognisers saw to the lines of a page. Pure; no pixels here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from docferry.vision.quads import Quad
from docferry.vision.recogniser import Recognised
from docferry_cloud.deep.groups import Group, reaches_further
from docferry_cloud.deep.vote import Voted, Witness, vote


@dataclass(frozen=True, slots=True)
class Rules:
    """What is believed; measured on 20 receipts, 20 forms and generated documents (benchmarks/deep_reading.py).

    Attributes:
        least_score: What the main recogniser scores lower is noise that a detector took for text.
        sure: Two readings that agree are believed without further witnesses from this score on, the lower of both.
        share, short_share: A line is noise when its letters have less of the votes than this; the second for lines of
            one or two letters, as specks and strokes are read.
        hopeless: A longer line that both detectors saw is noise below this only, ...
        legible: ... and never if the main recogniser scored it this high.
    """

    least_score: float = 0.5
    sure: float = 0.97
    share: float = 0.62
    short_share: float = 0.75
    hopeless: float = 0.5
    legible: float = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """One detector's line: where it is, what the main recogniser read there, and what the helpers read."""

    quad: Quad
    main: Recognised
    helpers: tuple[Witness, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class DeepLine:
    """One line as it was settled.

    Attributes:
        text: Not empty.
        quad: In pixels, from the detector whose cut was believed.
        score: The main recogniser's, 0..1.
        voted: The vote behind `text`, before numbers were checked.
        confidence: Calibrated probability that `text` is exactly right, 0..1, or None where nothing was voted on.
    """

    text: str
    quad: Quad
    score: float
    voted: Voted
    confidence: float | None = None


def witness(read: Recognised, weight: float = 1.0, *, spaces: bool = True) -> Witness:
    """A recogniser's reading as a witness; where folding changed the number of characters all get the mean score."""
    scores = read.scores if len(read.scores) == len(read.text) else (read.score,) * len(read.text)
    return Witness(read.text, scores, weight, spaces)


def doubtful(
    groups: Iterable[Group], first: Sequence[Sighting], second: Sequence[Sighting], rules: Rules
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which sightings of either detector the helpers should read: all but pairs that agree at a high score."""
    ones: list[int] = []
    others: list[int] = []
    for group in groups:
        if not _agreed(group, first, second, rules):
            ones += group.first
            others += group.second
    return tuple(ones), tuple(others)


def settle(
    groups: Iterable[Group], first: Sequence[Sighting], second: Sequence[Sighting], rules: Rules
) -> list[DeepLine]:
    """The lines of a page: pairs by their votes, other groups by the side whose votes hold more letters."""
    lines: list[DeepLine] = []
    for group in groups:
        ones, others = [first[n] for n in group.first], [second[n] for n in group.second]
        if group.paired:
            lines += _kept([paired(ones[0], others[0])], rules, alone=False)
        elif ones and others:
            one_way, other_way = ([paired(sighting) for sighting in side] for side in (ones, others))
            first_wins = _letters_believed(one_way) >= _letters_believed(other_way)
            lines += _kept(one_way if first_wins else other_way, rules, alone=False)
        else:
            # The second detector is only asked for what the first one cannot see: never for specks.
            seen = ones or [other for other in others if len(other.main.text) > 2]
            lines += _kept([paired(sighting) for sighting in seen], rules, alone=True)
    return lines


def paired(one: Sighting, *others: Sighting, extra: Sequence[Witness] = ()) -> DeepLine:
    """The vote of all who saw one print; those who cut it short are not heard. The first one's place is kept."""
    seen = (one, *others)
    whole = tuple(each for each in seen if not any(_cut_short(each, other) for other in seen))
    share = 1 / len(whole)
    helpers = [replace(each, weight=each.weight * share) for sighting in whole for each in sighting.helpers]
    voted = vote([*(witness(sighting.main) for sighting in whole), *extra, *helpers])
    return DeepLine(voted.text, whole[0].quad, max(sighting.main.score for sighting in whole), voted)


def _cut_short(sighting: Sighting, other: Sighting) -> bool:
    shorter = "".join(sighting.main.text.split())
    longer = "".join(other.main.text.split())
    return reaches_further(other.quad, sighting.quad) and len(longer) > len(shorter) + 1


def _agreed(group: Group, first: Sequence[Sighting], second: Sequence[Sighting], rules: Rules) -> bool:
    if not group.paired:
        return False
    one, other = first[group.first[0]].main, second[group.second[0]].main
    same = "".join(one.text.split()) == "".join(other.text.split())
    return same and min(one.score, other.score) >= rules.sure


def _letters_believed(lines: Sequence[DeepLine]) -> float:
    """A reading is worth its letters times how far they are believed more than not."""
    return sum(line.voted.letters * (line.voted.mean_share - 0.5) for line in lines)


def _kept(lines: Iterable[DeepLine], rules: Rules, *, alone: bool) -> list[DeepLine]:
    return [line for line in lines if line.voted.letters and not _is_noise(line, rules, alone=alone)]


def _is_noise(line: DeepLine, rules: Rules, *, alone: bool) -> bool:
    share = line.voted.mean_share
    if line.voted.letters <= 2:
        return share < rules.short_share
    if alone:
        return share < rules.share
    return share < rules.hopeless and line.score < rules.legible
