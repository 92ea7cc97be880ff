"""Keys and values of forms: `Date: 3 May`, a box beside its label, a line under its heading. Rules only.

A key is what stands before a colon, a word that forms print as one, or the first of two pieces that have a row to
themselves. Its value stands behind it, else beside it on the row, else right below it. A key without a value gives no
pair: absent stays absent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from docferry.document import Document, Field
from docferry.fields.rows import Piece, Row, find_rows

_LONGEST_KEY = 60
_PROSE = 60
_LEAST_PAIRS = 2
"""A page with fewer keys is no form: one "Note:" in running text makes none."""

# A colon that is no part of a time, a ratio or an address on the web.
_COLON = re.compile(r"(?<!\d)\s*[:：](?!//)(?!\d\d\b(?<=\d:\d\d))\s*|\s*[:：](?!//)(?=\s|$)\s*|[?](?=\s|$)\s*")
_BARE_KEYS = frozenset(
    """
    to|from|date|subject|re|cc|name|title|address|city|state|zip|country|phone|telephone|fax|email|company|department
    |division|project|project no|number|no|type|brand|quantity|amount|total|price|comments|remarks|description|signature
    |signed|approved|approved by|prepared by|submitted by|requested by|received by|sent by|position|account|account no
    |reference|purpose|location|telephone no|fax no|phone no|date of birth|invoice no|order no|page|pages|time|region
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
"""What forms print as keys without a colon; only where nothing else stands in the same piece."""

_LEADER = re.compile(r"[._\-–…·]{3,}")
_NUMBERING = re.compile(r"^\(?(?:\d{1,2}|[A-Za-z])[.)]\s+")


@dataclass(frozen=True, slots=True)
class Pair:
    """A key and its value with the pieces they were read from."""

    key: str
    value: str
    pieces: tuple[Piece, ...]


@dataclass(slots=True)
class _Atom:
    """A run of text that is a key (it ended with a colon) or may be a value."""

    text: str
    is_key: bool
    piece: Piece
    left: float
    right: float
    used: bool = False


def form_fields(document: Document) -> tuple[Field, ...]:
    """The key-value pairs of a form as fields named by their keys as printed; empty for a page that is no form."""
    rows = find_rows(document)
    pieces = [piece.line.text for row in rows for piece in row.pieces]
    labelled = sum(text.rstrip().endswith((":", "：")) or _COLON.search(text) is not None for text in pieces)
    prose = sum(len(text) >= _PROSE for text in pieces)
    # Running text has colons as well, and two columns of it stand beside one another.
    if labelled < _LEAST_PAIRS or prose > 0.3 * len(pieces):
        return ()
    found = find_pairs(rows)
    return tuple(
        Field(pair.key, pair.value, pair.value, _confidence(pair), tuple(piece.evidence for piece in pair.pieces))
        for pair in found
    )


def find_pairs(rows: Sequence[Row]) -> tuple[Pair, ...]:
    """All pairs, in the order of their keys; a value belongs to one key only."""
    lines = [_atoms(row) for row in rows]
    pairs: list[Pair] = []
    for number, line in enumerate(lines):
        for at, atom in enumerate(line):
            if not atom.is_key or not _is_key(atom.text):
                continue
            value = _beside(line, at) or _below(lines, number, atom)
            if value:
                for each in value:
                    each.used = True
                text = " ".join(each.text for each in value)
                pairs.append(Pair(_plain_key(atom.text), text, (atom.piece, *(each.piece for each in value))))
    return tuple(pairs)


def _atoms(row: Row) -> list[_Atom]:
    """The row's pieces, each cut behind its colons."""
    atoms: list[_Atom] = []
    for piece in row.pieces:
        text = _LEADER.sub(" ", piece.line.text)
        width = (piece.right - piece.left) / max(1, len(text))
        start = 0
        for colon in _COLON.finditer(text):
            before = text[start : colon.start()].strip()
            if not before:
                continue
            words = _key_words(before) if start else before
            lead = before[: len(before) - len(words)].strip()
            where = piece.left + width * (start + len(before) - len(words))
            if lead:
                atoms.append(_Atom(lead, False, piece, piece.left + width * start, where))
            atoms.append(_Atom(words, True, piece, where, piece.left + width * colon.end()))
            start = colon.end()
        if rest := text[start:].strip():
            bare = " ".join(rest.casefold().rstrip(".#").split()) in _BARE_KEYS
            atoms.append(_Atom(rest, bare, piece, piece.left + width * start, piece.right))
    if len(atoms) in {2, 4} and not any(atom.is_key for atom in atoms):
        for left, right in zip(atoms[::2], atoms[1::2], strict=True):
            left.is_key = _names(left, right)
    for left, right in pairwise(atoms):
        digits = any(letter.isdigit() for letter in right.text) and not any(letter.isdigit() for letter in left.text)
        left.is_key = left.is_key or (digits and not right.is_key and _names(left, right))
    return atoms


def _names(left: _Atom, right: _Atom) -> bool:
    """Whether the first of two pieces that stand alone on a row names the second: short words, wide apart."""
    words = left.text.split()
    return len(words) <= 5 and left.text[:1].isupper() and right.left - left.right > 0.5 * left.piece.height


def _key_words(text: str) -> str:
    """Of what stands between two colons the part that is the next key: its last words that begin with capitals."""
    words = text.split(" ")
    at = len(words) - 1
    while at > 0 and words[at - 1][:1].isupper() and not words[at - 1].rstrip().endswith((",", ".", ";")):
        at -= 1
    return " ".join(words[at:])


def _beside(line: Sequence[_Atom], at: int) -> list[_Atom]:
    """What stands to the right of a key, up to the next key and as far as gaps are no wider than the first one."""
    found: list[_Atom] = []
    end = line[at].right
    height = line[at].piece.height
    for atom in line[at + 1 :]:
        gap = atom.left - end
        if atom.is_key or atom.used or gap > (12 if not found else 2.5) * height:
            break
        found.append(atom)
        end = atom.right
    return found


def _below(lines: Sequence[Sequence[_Atom]], number: int, key: _Atom) -> list[_Atom]:
    """The line right under a key, and those that go on under it, where they begin at about the key's left edge."""
    found: list[_Atom] = []
    above = key.piece
    for line in lines[number + 1 : number + 6]:
        under = [
            atom
            for atom in line
            if atom.left < key.right + key.piece.height and atom.right > key.left and atom.piece.page == key.piece.page
        ]
        if not under:
            continue
        first = under[0]
        if first.is_key or first.used or first.piece.top - above.bottom > 1.2 * above.height:
            break
        if abs(first.left - key.left) > 4 * key.piece.height:
            break
        found.append(first)
        above = first.piece
    return found


def _is_key(text: str) -> bool:
    letters = sum(letter.isalpha() for letter in text)
    return letters >= 2 and len(text) <= _LONGEST_KEY and letters >= 0.5 * len(text.replace(" ", ""))


def _plain_key(text: str) -> str:
    return " ".join(_NUMBERING.sub("", text).split())


_SHARE = 0.5
"""Of pairs found on scanned forms about so many were right in both parts (benchmarks.understanding, funsd)."""


def _confidence(pair: Pair) -> float:
    scores = [piece.line.score if piece.line.confidence is None else piece.line.confidence for piece in pair.pieces]
    return _SHARE * min(scores)
