"""The networks of deep reading, run on a page or on a crop that an edge has sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources

import numpy as np

from docferry.calibration import Calibration, load_calibration
from docferry.model_store import ModelStore
from docferry.vision.detector import Detector
from docferry.vision.images import Pixels
from docferry.vision.quads import Quad
from docferry.vision.recogniser import Recogniser, RecogniserSettings
from docferry.vision.sessions import open_network
from docferry_cloud.deep.groups import SAME_PRINT, Group, group, overlaps
from docferry_cloud.deep.lines import DeepLine, Rules, Sighting, doubtful, paired, settle, witness
from docferry_cloud.deep.numbers import with_points
from docferry_cloud.deep.vote import Witness
from docferry_cloud.engine import Cancelled, check

FIRST_DETECTOR = "ppocrv6-det-small"
SECOND_DETECTOR = "ppocrv5-det"
MAIN = "ppocrv6-rec-small"
MODELS = (FIRST_DETECTOR, SECOND_DETECTOR, MAIN, "ppocrv4-rec", "ppocrv5-rec", "ppocrv5-keys")
"""What deep reading needs, by name in the model store."""

_HASH_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Helper:
    """A weaker recogniser that errs differently from the main one, and what its word is worth beside that one's."""

    recogniser: Recogniser
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A line that somebody has read before: its quad in pixels of the crop, and that reading as one witness more."""

    quad: Quad
    reading: Witness


@dataclass(frozen=True, slots=True, eq=False)
class Reread:
    """What a crop shows: each known line as voted, in their order, and the lines that are none of them."""

    known: tuple[DeepLine, ...]
    found: tuple[DeepLine, ...]


@dataclass(frozen=True, slots=True)
class DeepReader:
    """Two detectors, the main recogniser and its helpers. Safe to use from several threads; holds no state.

    A page costs both detectors and, for each detector's lines, one pass of the main recogniser; the helpers read only
    what is in doubt after that.
    """

    first: Detector
    second: Detector
    main: Recogniser
    helpers: tuple[Helper, ...]
    provenance: str
    calibration: Calibration
    rules: Rules = field(default_factory=Rules)

    @classmethod
    def load(cls, store: ModelStore, *, threads: int) -> DeepReader:
        """Load all networks and run each once.

        Args:
            store: Has the models of `MODELS` already; nothing is fetched.
            threads: Threads one page may use, at least 1.

        Raises:
            ModelError: A model is missing or cannot be loaded.
        """
        settings = RecogniserSettings(lanes=threads)
        older = open_network(store.path("ppocrv5-rec"), threads=1)
        listed = store.path("ppocrv5-keys").read_text(encoding="utf-8")
        reader = cls(
            first=Detector(open_network(store.path(FIRST_DETECTOR), threads=threads)),
            second=Detector(open_network(store.path(SECOND_DETECTOR), threads=threads)),
            main=Recogniser.of(open_network(store.path(MAIN), threads=1), settings),
            helpers=(
                Helper(Recogniser.of(open_network(store.path("ppocrv4-rec"), threads=1), settings), 0.6),
                Helper(Recogniser(older, alphabet(listed), settings), 0.5),
            ),
            provenance=f"cloud:deep-{MAIN}@{store.sha256(MAIN)[:_HASH_DIGITS]}",
            calibration=default_calibration(),
        )
        reader.warm_up()
        return reader

    def warm_up(self) -> None:
        """Run every network once, so that the first page pays for no lazy set-up."""
        blank = np.full((64, 320, 3), 255, dtype=np.uint8)
        line = np.array([[0, 0], [320, 0], [320, 64], [0, 64]], dtype=np.float32)
        self.first.detect(blank)
        self.second.detect(blank)
        for recogniser in (self.main, *(helper.recogniser for helper in self.helpers)):
            recogniser.read(blank, [line])

    def skim(self, image: Pixels, cancelled: Cancelled) -> list[DeepLine]:
        """The cheap reading: one detector, one recogniser, no vote, so no confidence.

        Raises:
            EngineError: `cancelled` said True.
        """
        sightings = self._sightings(image, list(self.first.detect(image).quads), cancelled)
        return [paired(sighting) for sighting in sightings]

    def read(self, image: Pixels, cancelled: Cancelled, *, everything: bool = False) -> list[DeepLine]:
        """The lines of a page `(height, width, 3)`, BGR, in no particular order.

        Args:
            everything: Let the helpers read every line, not only those in doubt.

        Raises:
            EngineError: `cancelled` said True.
        """
        of_first, of_second = list(self.first.detect(image).quads), list(self.second.detect(image).quads)
        check(cancelled)
        first, second = self._both(image, of_first, of_second, cancelled)
        lines = self._settled(image, first, second, cancelled, everything=everything)
        texts = with_points([(line.text, line.quad) for line in lines])
        return [replace(line, text=text) for line, text in zip(lines, texts, strict=True)]

    def reread(self, image: Pixels, known: Sequence[Known], sure: Sequence[Quad], cancelled: Cancelled) -> Reread:
        """Read a crop: the lines it was sent for, each voted on together with its first reading, and what is new.

        Args:
            known: Lines in doubt.
            sure: Quads of lines that need no second reading; print under them is left alone.

        Raises:
            EngineError: `cancelled` said True.
        """
        quads = [each.quad for each in known]
        of_first = _uncovered(self.first.detect(image).quads, sure)
        of_second = _uncovered(self.second.detect(image).quads, sure)
        check(cancelled)
        own = self._read(image, quads, cancelled)
        first, second = self._both(image, of_first, of_second, cancelled)
        beside = [_companions(quads, side) for side in (first, second)]
        lines = []
        for number, sighting in enumerate(own):
            others = [side[at[number]] for side, at in zip((first, second), beside, strict=True) if number in at]
            lines.append((sighting, others, known[number].reading))
        voted = self._voted(image, lines, cancelled)
        rest_of_first, rest_of_second = (
            [sighting for number, sighting in enumerate(side) if number not in set(at.values())]
            for side, at in zip((first, second), beside, strict=True)
        )
        return Reread(voted, tuple(self._settled(image, rest_of_first, rest_of_second, cancelled)))

    def _voted(
        self, image: Pixels, lines: Sequence[tuple[Sighting, list[Sighting], Witness]], cancelled: Cancelled
    ) -> tuple[DeepLine, ...]:
        contested = [
            number
            for number, (own, others, reading) in enumerate(lines)
            if len({_letters(text) for text in (reading.text, own.main.text, *(o.main.text for o in others))}) > 1
            or own.main.score < self.rules.sure
        ]
        helped = self._helped(image, [own for own, _, _ in lines], contested, cancelled)
        return tuple(
            self._calibrated(paired(own, *others, extra=(reading,)))
            for own, (_, others, reading) in zip(helped, lines, strict=True)
        )

    def _settled(
        self,
        image: Pixels,
        first: Sequence[Sighting],
        second: Sequence[Sighting],
        cancelled: Cancelled,
        *,
        everything: bool = False,
    ) -> list[DeepLine]:
        groups = group([one.quad for one in first], [other.quad for other in second])
        ones, others = _all(groups) if everything else doubtful(groups, first, second, self.rules)
        helped = self._helped(image, [*first, *second], [*ones, *(len(first) + number for number in others)], cancelled)
        settled = settle(groups, helped[: len(first)], helped[len(first) :], self.rules)
        return [self._calibrated(line) for line in settled]

    def _calibrated(self, line: DeepLine) -> DeepLine:
        return replace(line, confidence=self.calibration.confidence(line.voted.belief))

    def _both(
        self, image: Pixels, first: Sequence[Quad], second: Sequence[Quad], cancelled: Cancelled
    ) -> tuple[list[Sighting], list[Sighting]]:
        """What the main recogniser reads under both detectors' quads, in one go so that batches are full."""
        read = self._read(image, [*first, *second], cancelled)
        return self._legible(read[: len(first)]), self._legible(read[len(first) :])

    def _sightings(self, image: Pixels, quads: Sequence[Quad], cancelled: Cancelled) -> list[Sighting]:
        return self._legible(self._read(image, quads, cancelled))

    def _read(self, image: Pixels, quads: Sequence[Quad], cancelled: Cancelled) -> list[Sighting]:
        sightings = [Sighting(read.quad, read) for read in self.main.read(image, quads)]
        check(cancelled)
        return sightings

    def _legible(self, sightings: Sequence[Sighting]) -> list[Sighting]:
        return [each for each in sightings if each.main.text and each.main.score >= self.rules.least_score]

    def _helped(
        self, image: Pixels, sightings: Sequence[Sighting], numbers: Sequence[int], cancelled: Cancelled
    ) -> list[Sighting]:
        """The sightings, those with the given numbers with what the helpers read."""
        helped = list(sightings)
        for helper in self.helpers:
            read = helper.recogniser.read(image, [sightings[number].quad for number in numbers])
            check(cancelled)
            for number, answer in zip(numbers, read, strict=True):
                word = witness(answer, helper.weight, spaces=False)
                helped[number] = replace(helped[number], helpers=(*helped[number].helpers, word))
        return helped


def default_calibration() -> Calibration:
    """From a vote's belief to P(line is exactly right): the map that ships with the package.

    Fitted on generated documents only, by benchmarks/fit_deep_calibration.py.
    """
    file = resources.files("docferry_cloud.deep") / "calibration.json"
    return load_calibration(file.read_text(encoding="utf-8"), "the shipped calibration of deep reading")


def alphabet(listed: str) -> tuple[str, ...]:
    """A recogniser's classes from PaddleOCR's list of characters: CTC's blank first, the space last."""
    letters = listed.removesuffix("\n").split("\n")
    letters = letters[1:] if letters[0] == "blank" else letters
    letters = letters[:-1] if letters[-1] == " " else letters
    return ("", *letters, " ")


def _all(groups: Sequence[Group]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(n for each in groups for n in each.first), tuple(n for each in groups for n in each.second)


def _uncovered(quads: Sequence[Quad], sure: Sequence[Quad]) -> list[Quad]:
    shared = overlaps(quads, sure)
    return [quad for quad, under in zip(quads, shared, strict=True) if not (under >= SAME_PRINT).any()]


def _companions(quads: Sequence[Quad], sightings: Sequence[Sighting]) -> dict[int, int]:
    """For known lines, by number, the one sighting that shows the same print and no other known line's."""
    same = overlaps(quads, [sighting.quad for sighting in sightings]) >= SAME_PRINT
    alone = (same.sum(axis=1) == 1)[:, None] & (same.sum(axis=0) == 1)[None, :] & same
    return {int(line): int(sighting) for line, sighting in np.argwhere(alone)}


def _letters(text: str) -> str:
    return "".join(text.split())
