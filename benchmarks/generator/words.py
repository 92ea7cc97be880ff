"""The word lists of each split, read from `wordlists/<split>.toml`."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.generator.truth import Language, Split

Words = dict[str, Any]
"""Nested tables whose leaves are lists of strings."""


@lru_cache(maxsize=8)
def words(split: Split, language: Language) -> Words:
    """The words of one split and language."""
    path = Path(__file__).with_name("wordlists") / f"{split.value}.toml"
    table: Words = tomllib.loads(path.read_text(encoding="utf-8"))[language.value]
    return table


def entries(table: Any) -> set[str]:
    """Every string in a nested table."""
    if isinstance(table, str):
        return {table}
    return set().union(*(entries(value) for value in (table.values() if isinstance(table, dict) else table)))
