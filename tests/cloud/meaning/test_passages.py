"""Passages found by meaning: other words than the question's, other languages, and nothing where nothing is said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from docferry.document import Document, Line, Page, Region, RegionType
from docferry_cloud.meaning import answer
from docferry_cloud.meaning.embeddings import E5Embedder, Embedder, Vector, Vectors

pytestmark = pytest.mark.xdist_group("engine")

TEXTS = (
    "The lease ends on the last day of June and is not renewed by itself.",
    "Pets are not allowed in the flats, guide dogs excepted.",
    "The tenant pays a deposit of three monthly rents before moving in.",
    "Repairs up to 80 euros are borne by the tenant.",
    "Washing machines in the cellar may be used between 8 and 20 o'clock.",
    "房东应在退租后三十天内退还押金。",
    "Keys that are lost must be reported to the office at once.",
)
PARAPHRASED = {
    "Can I keep a cat in my apartment?": 1,
    "When does the rental contract run out?": 0,
    "At what time may I do my laundry?": 4,
    "Who covers the cost of small fixes?": 3,
    "How much security must I hand over at the start?": 2,
    "多久之后能拿回押金?": 5,
    "What do I do if my key is gone?": 6,
}
UNANSWERABLE = (
    "Who won the football match?",
    "What is the capital of Peru?",
    "How fast does the train go?",
    "Which medicine should the patient take?",
    "Who painted the picture in the museum?",
    "What is the boiling point of ethanol?",
    "谁是公司的总裁?",
    "Which version of the software is needed?",
    "What did the chef cook for dinner?",
    "How many goals did the team score?",
)


def document(texts: Sequence[str] = TEXTS) -> Document:
    corners = ((0.0, 0.0), (1.0, 0.0), (1.0, 0.1), (0.0, 0.1))
    regions = tuple(
        Region(f"r{n}", RegionType.TEXT, (0.0, 0.0, 1.0, 0.1), n, lines=(Line(f"r{n}.l1", text, corners, 1.0),))
        for n, text in enumerate(texts)
    )
    return Document((Page(1000, 1400, regions),))


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return E5Embedder()


def test_a_question_in_other_words_finds_its_passage(embedder: Embedder) -> None:
    found = {question: answer(document(), question, embedder) for question in PARAPHRASED}
    right = {question: one for question, one in found.items() if one.answer == TEXTS[PARAPHRASED[question]]}
    # Nothing was adjusted to these questions; the rest is refused rather than answered wrongly.
    assert len(right) >= 3
    assert sum(bool(one.answer) for one in found.values()) - len(right) <= 1
    for question, one in right.items():
        assert [place.line for place in one.evidence] == [f"r{PARAPHRASED[question]}.l1"]
        assert 0 < one.confidence < 0.5
        assert answer(document(), question).answer == ""


def test_what_no_passage_says_is_refused(embedder: Embedder) -> None:
    answered = [question for question in UNANSWERABLE if answer(document(), question, embedder).answer]
    assert len(answered) <= 1, answered


def test_of_a_passage_the_sentence_that_answers_is_given(embedder: Embedder) -> None:
    whole = document([" ".join(TEXTS[:4]), TEXTS[4]])
    assert answer(whole, "Who covers the cost of small fixes?", embedder).answer == TEXTS[3]


class Near:
    """Holds every passage for the answer to everything, and texts that are none of the document's for nothing."""

    def question(self, text: str) -> Vector:
        return np.array([1.0, 0.0], np.float32)

    def passages(self, texts: Sequence[str]) -> Vectors:
        return np.array([[1.0, 0.0] if text in TEXTS else [0.0, 1.0] for text in texts], np.float32)


def test_sums_and_empty_questions_are_not_answered_by_a_passage() -> None:
    assert answer(document(), "Who keeps a cat?", Near()).answer == TEXTS[0]
    assert answer(document(), "What is the sum of the cats?", Near()).answer == ""
    assert answer(document(), "", Near()).answer == ""
    assert answer(Document(()), "Who keeps a cat?", Near()).answer == ""


def test_vectors_that_are_kept_are_those_that_were_made_and_hold_no_text(embedder: E5Embedder) -> None:
    made = embedder.passages([TEXTS[0], TEXTS[1], TEXTS[0]])
    again = embedder.passages([TEXTS[1], "something new", TEXTS[0]])
    assert np.array_equal(made[0], made[2])
    assert np.array_equal(again[[0, 2]], made[[1, 0]])
    assert all(isinstance(key, bytes) and len(key) == 32 for key in embedder._kept)


def test_a_zero_or_half_a_pair_in_a_text_is_no_matter(embedder: Embedder) -> None:
    assert embedder.passages(["a\0b", "\ud800"]).shape == (2, 384)
    assert embedder.question("\udc00\0").shape == (384,)
