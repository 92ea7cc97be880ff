"""The calibration artefact: from what networks say to probabilities, with the sample it was fitted on.

Version 1 is a map from the recogniser's score alone. Version 2 adds the weights of all signals, a map for every head,
and thresholds with the claim each of them bears. Both are plain JSON and stay readable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from docferry.confidence.curves import Knots, Sum, read_off, rises
from docferry.confidence.guarantees import Threshold
from docferry.confidence.signals import NAMES
from docferry.errors import ConfigurationError, TooFewLabels

VERSION = 2


@dataclass(frozen=True, slots=True)
class LineHead:
    """From a line's signals to what is expected of it.

    Attributes:
        sum: Log-odds that the line is right, before calibration.
        right: Rising map from those to the probability that it is exactly right.
        wrong: Falling map from those to the share of its characters that are wrong.
    """

    sum: Sum
    right: Knots
    wrong: Knots


@dataclass(frozen=True, slots=True)
class Calibration:
    """Maps from scores and signals to probabilities.

    Attributes:
        knots: Pairs (score, P(line is exactly right)), both rising, each 0..1: the map for a score alone.
        reader: The reader whose scores it is for.
        documents, lines: The size of the sample it was fitted on.
        data: What that sample was, in words.
        data_sha256: Hash of the sample's labels.
        date: When it was fitted, ISO 8601.
        line: The head over all signals; None in an artefact of version 1.
        layout: Rising map from the layout network's score to P(box and type are right); empty if unknown.
        page: Log-odds of the share of a page's printed lines that are read right, over `PAGE_SIGNALS`.
        fields: Log-odds that a field is right, by field name and "" for any other, over `FIELD_SIGNALS`.
        thresholds: What each target risk costs, on documents that nothing else was fitted on.
        version: Of the artefact's form.
    """

    knots: Knots
    reader: str
    documents: int
    lines: int
    data: str
    data_sha256: str
    date: str
    line: LineHead | None = None
    layout: Knots = ()
    page: Sum | None = None
    fields: Mapping[str, Sum] = field(default_factory=dict)
    thresholds: tuple[Threshold, ...] = ()
    version: int = 1

    def confidence(self, score: float) -> float:
        """Probability for a `score` alone; 0 for a score no network should give (NaN, outside 0..1)."""
        if math.isnan(score) or not 0.0 <= score <= 1.0:
            return 0.0
        return read_off(self.knots, score)

    def threshold(self, target_risk: float, confidence: float | None = None) -> Threshold:
        """The threshold fitted for a target, or for the next lower one.

        Raises:
            TooFewLabels: None was fitted for so low a risk with that assurance.
        """
        fitting = [
            found
            for found in self.thresholds
            if found.target_risk <= target_risk + 1e-12
            and (confidence is None or (found.confidence is not None and found.confidence >= confidence - 1e-12))
        ]
        if not fitting:
            claim = f"{target_risk:g}" + ("" if confidence is None else f" with probability {confidence:g}")
            raise TooFewLabels(
                f"the calibration of {self.date} for {self.reader} holds no threshold for a risk of {claim}",
                remedy="fit one with `docferry calibrate`",
                target_risk=str(target_risk),
            )
        return min(fitting, key=lambda found: found.least)


def load_calibration(text: str, source: str) -> Calibration:
    """A calibration from its JSON artefact.

    Raises:
        ConfigurationError: It is not one, or a map is not monotone; `source` names it in the error.
    """
    try:
        calibration = _calibration(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(
            f"{source}: not a calibration: {error}", remedy="use one that `docferry calibrate` has written"
        ) from None
    if not _sound(calibration):
        raise ConfigurationError(f"{source}: a map is not monotone within 0..1", remedy="fit it again")
    line = calibration.line
    if line is not None and line.sum.signals != NAMES:
        raise ConfigurationError(
            f"{source}: fitted over other signals than this version of Docferry measures",
            remedy="fit it again with `docferry calibrate`",
        )
    return calibration


def dump_calibration(calibration: Calibration) -> str:
    """The JSON artefact, one knot and one weight a line so that two of them can be compared."""
    return json.dumps(asdict(calibration), indent=1) + "\n"


def _calibration(tree: dict[str, Any]) -> Calibration:
    version = tree.get("version", 1)
    if version > VERSION:
        raise ValueError(f"version {version}, and this program knows {VERSION}")
    line, page = tree.pop("line", None), tree.pop("page", None)
    thresholds = tuple(Threshold(**threshold) for threshold in tree.pop("thresholds", ()))
    return Calibration(
        knots=_knots(tree.pop("knots")),
        line=None if line is None else LineHead(_sum(line["sum"]), _knots(line["right"]), _knots(line["wrong"])),
        layout=_knots(tree.pop("layout", ())),
        page=None if page is None else _sum(page),
        fields={name: _sum(head) for name, head in tree.pop("fields", {}).items()},
        thresholds=thresholds,
        **tree,
    )


def _knots(pairs: Any) -> Knots:
    return tuple((float(x), float(y)) for x, y in pairs)


def _sum(tree: dict[str, Any]) -> Sum:
    names, weights = tuple(map(str, tree["signals"])), tuple(map(float, tree["weights"]))
    if len(names) != len(weights) or not all(map(math.isfinite, (*weights, float(tree["bias"])))):
        raise ValueError("a sum needs one finite weight for each signal")
    return Sum(names, weights, float(tree["bias"]))


def _sound(calibration: Calibration) -> bool:
    curves = [calibration.knots, *([calibration.layout] if calibration.layout else [])]
    falling: list[Knots] = []
    if calibration.line is not None:
        curves.append(calibration.line.right)
        falling.append(calibration.line.wrong)
    within = all(0.0 <= y <= 1.0 for curve in curves for _, y in curve) and all(
        0.0 <= x <= 1.0 for x, _ in calibration.knots
    )
    # More wrong characters than a line has are possible where a line was read into nothing like it.
    return within and all(map(rises, curves)) and all(rises(curve, falling=True) for curve in falling)
