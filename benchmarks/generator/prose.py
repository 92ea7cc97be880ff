"""Sentences without end, made from a split's nouns, adjectives and verbs."""

from __future__ import annotations

import random

from benchmarks.generator.truth import Language
from benchmarks.generator.words import Words

ENGLISH = (
    "The {a} {n} {v} the {n2}.",
    "In {y} the {n} {v} every {a} {n2}, and the {n3} {v2} it.",
    "A {n} that {v} the {n2} is seldom {a}.",
    "When the {n} {v} the {a} {n2}, the {n3} {v2} about {p} per cent of it.",
    "Most of the {n} stands beside the {a} {n2}; only the {n3} {v2} the rest.",
    "Each {n} {v} {p} of the {a} parts, as table {k} shows.",
    "Nobody knew why the {a} {n} {v} the {n2} in {y}.",
)
CHINESE = (
    "{a}{n}{v}了{n2}。",
    "在{y}年，{n}{v}{a}{n2}，同时也{v2}{n3}。",
    "{n}与{n2}之间的关系是{a}。",
    "大约百分之{p}的{n}可以{v}{n2}。",
    "人们常说，{a}{n}会{v}每一个{n2}，而{n3}{v2}其余的部分。",
    "如表{k}所示，{n}的数量逐年增加，{a}{n2}却在减少。",
)


def sentence(rng: random.Random, table: Words, language: Language) -> str:
    """One sentence."""
    nouns, verbs = rng.sample(table["nouns"], 3), rng.sample(table["verbs"], 2)
    pattern = rng.choice(ENGLISH if language is Language.EN else CHINESE)
    return pattern.format(
        a=rng.choice(table["adjectives"]),
        n=nouns[0],
        n2=nouns[1],
        n3=nouns[2],
        v=verbs[0],
        v2=verbs[1],
        y=rng.randint(1850, 2020),
        p=rng.randint(3, 97),
        k=rng.randint(1, 9),
    )


def paragraph(rng: random.Random, table: Words, language: Language, sentences: int) -> str:
    """Several sentences."""
    return ("" if language is Language.ZH else " ").join(sentence(rng, table, language) for _ in range(sentences))


def heading(rng: random.Random, table: Words, language: Language) -> str:
    """A short title."""
    if language is Language.ZH:
        return f"{rng.choice(table['adjectives'])}{rng.choice(table['nouns'])}"
    return f"The {rng.choice(table['adjectives'])} {rng.choice(table['nouns'])}".title()
