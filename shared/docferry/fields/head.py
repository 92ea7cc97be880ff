"""Candidates for merchant and address: runs of lines in the head of the paper (or anywhere, where a label says so)."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from docferry.fields import wording
from docferry.fields.amounts import find_amounts
from docferry.fields.candidates import Candidate
from docferry.fields.folding import fold, is_cjk, words
from docferry.fields.rows import Row, Segment

_HEAD_ROWS = 16
"""How far down a merchant or an address is looked for without a label."""

_MAX_ADDRESS_LINES = 7


@dataclass(frozen=True, slots=True)
class Head:
    """The segments that a merchant or an address may stand in, linked downwards.

    Attributes:
        segments: Top to bottom.
        below: For each segment the one that continues it underneath, or None.
        above: The reverse.
        height: Median text height of the whole document, pixels.
        texts: Folded texts of all rows of the document, for repeats.
    """

    segments: tuple[Segment, ...]
    below: tuple[int | None, ...]
    above: tuple[int | None, ...]
    height: float
    texts: tuple[str, ...]


def head_of(rows: tuple[Row, ...], segments: tuple[Segment, ...]) -> Head:
    """The part of the document where merchant and address are looked for."""
    body = next((row.index for row in rows if row.index > 2 and _is_body(row)), len(rows))
    limit = min(max(body, 6), _HEAD_ROWS)
    lower = {row.index for row in rows if row.index >= limit and _is_late_address(row)}
    late = lower | {index + 1 for index in lower}
    kept = tuple(
        segment
        for segment in segments
        if segment.row < limit or segment.row in late or wording.has_company_suffix(segment.text)
    )
    below = tuple(_next_below(kept, index) for index in range(len(kept)))
    above: list[int | None] = [None] * len(kept)
    for index, under in enumerate(below):
        if under is not None and above[under] is None:
            above[under] = index
    height = statistics.median(segment.height for segment in segments) if segments else 1.0
    return Head(kept, below, tuple(above), height, tuple(fold(row.text) for row in rows))


def _is_body(row: Row) -> bool:
    """Whether the row belongs to the list of goods: a price in it, and no address."""
    priced = any(amount.decimals == 2 and amount.value > 0 for amount in find_amounts(row.text))
    return priced and not wording.has_address_word(row.text) and not wording.is_paperwork(row.text)


def _is_late_address(row: Row) -> bool:
    """Whether an address may stand in this row below the head: a label for one, or place words and no price."""
    if wording.has_address_label(row.text):
        return True
    priced = any(amount.decimals == 2 for amount in find_amounts(row.text))
    return (
        not priced
        and _address_like(row.text)
        and (wording.has_postcode(row.text) or wording.starts_like_address(row.text))
    )


def _next_below(segments: Sequence[Segment], index: int) -> int | None:
    """The segment under this one: overlapping sideways, at most two text heights lower, nearest first."""
    me = segments[index]
    for other_index in range(index + 1, len(segments)):
        other = segments[other_index]
        if other.page != me.page or other.row > me.row + 2:
            return None
        shared = min(me.right, other.right) - max(me.left, other.left)
        narrow = min(me.right - me.left, other.right - other.left)
        if other.row > me.row and shared > 0.3 * narrow and other.top - me.bottom < 2.0 * max(me.height, other.height):
            return other_index
    return None


def merchant_candidates(head: Head) -> tuple[Candidate, ...]:
    """Every segment of the head, and every two that follow each other, as a merchant's name."""
    found: list[Candidate] = []
    for index, segment in enumerate(head.segments):
        spans = [(index,)]
        under = head.below[index]
        if under is not None:
            spans.append((index, under))  # type: ignore[arg-type]
        for span in spans:
            value = " ".join(wording.merchant_name(head.segments[at].text) for at in span).strip()
            if sum(glyph.isalpha() for glyph in value) < 2:
                continue
            pieces = tuple(piece for at in span for piece in head.segments[at].pieces)
            found.append(
                Candidate(
                    value, " ".join(value.split()), fold(value), pieces, _merchant_features(head, span, value, segment)
                )
            )
    return tuple(found)


def _merchant_features(head: Head, span: tuple[int, ...], value: str, first: Segment) -> dict[str, float]:
    texts = [head.segments[at].text for at in span]
    under = head.below[span[-1]]
    over = head.above[span[0]]
    below = head.segments[under].text if under is not None else ""
    above = head.segments[over].text if over is not None else ""
    letters = sum(glyph.isalpha() for glyph in value)
    height = statistics.fmean(head.segments[at].height for at in span)
    rank = sum(_may_name(segment.text) for segment in head.segments[: span[0]])
    return {
        "bias": 1.0,
        "first": float(rank == 0),
        "second": float(rank == 1),
        "lower": min(rank, 12) / 12,
        "joined": float(len(span) > 1),
        "joined_suffix_last": float(len(span) > 1 and _company(texts[1]) and not _company(texts[0])),
        "joined_both": float(len(span) > 1 and _company(texts[1]) and _company(texts[0])),
        "joined_uneven": float(len(span) > 1 and _uneven(head.segments[span[0]], head.segments[span[1]])),
        "joined_continues": float(len(span) > 1 and wording.is_generic_name(texts[1])),
        "joined_wide_gap": float(len(span) > 1 and head.segments[span[1]].top - first.bottom > 0.6 * first.height),
        "generic": float(wording.is_generic_name(texts[0])),
        "below_generic": float(bool(below) and wording.is_generic_name(below) and not wording.is_registration(below)),
        "below_plain": float(bool(below) and _person_like([below])),
        "suffix": float(wording.has_company_suffix(value)),
        "suffix_last": float(wording.ends_with_company_suffix(value)),
        "business": float(wording.has_business_word(value)),
        "address": float(any(_address_like(text) for text in texts)),
        "paperwork": float(any(wording.is_paperwork(text) for text in texts)),
        "registration": float(any(wording.is_registration(text) for text in texts)),
        "bracketed": float(any(text.strip()[:1] in "([*" for text in texts)),
        "digits": 1.0 - letters / max(sum(glyph.isalnum() for glyph in value), 1),
        "short": float(letters < 4 and not any(map(is_cjk, value))),
        "tall": min(max(height / head.height - 1.0, 0.0), 1.5),
        "taller_than_below": float(under is not None and height > 1.2 * head.segments[under].height),
        "person": float(_person_like(texts) and rank == 0),
        "below_company": float(_company(below)),
        "below_suffix": float(wording.has_company_suffix(below)),
        "below_address": float(_address_like(below)),
        "below_registration": float(wording.is_registration(below) or bool({"REG", "RFG"} & set(words(below)))),
        "above_company": float(_company(above)),
        "above_suffix": float(wording.has_company_suffix(above)),
        "repeated": float(sum(fold(value) in text for text in head.texts) > 1 and len(span) == 1),
        "seller": float(any(wording.names_seller(text) for text in (*texts, above))),
        "buyer": float(any(wording.names_buyer(text) for text in (*texts, above))),
        "gap_above": float(over is not None and first.top - head.segments[over].bottom > 1.2 * first.height),
    }


def _may_name(text: str) -> bool:
    """Whether a line could be a name at all: some letters, and no telephone, date or document title."""
    return sum(glyph.isalpha() for glyph in text) > 2 and not wording.is_paperwork(text)


def _company(text: str) -> bool:
    return wording.has_company_suffix(text) or wording.has_business_word(text)


def _uneven(upper: Segment, lower: Segment) -> bool:
    ratio = upper.height / lower.height
    return not 0.75 < ratio < 1.33


def _person_like(texts: Sequence[str]) -> bool:
    parts = words(" ".join(texts))
    several = 2 <= len(parts) <= 4 or (len(parts) == 1 and len(parts[0]) >= 9)
    return several and all(part.isalpha() for part in parts) and not _company(" ".join(texts))


def _address_like(text: str) -> bool:
    """Place words, a postcode with a town, or a state."""
    strong = wording.has_address_word(text) or wording.has_postcode(text) or wording.has_region(text)
    return strong and not wording.has_company_suffix(text) and not wording.is_registration(text)


def address_candidates(head: Head) -> tuple[Candidate, ...]:
    """Every run of up to seven lines under each other that may be an address, cut where telephone or tax ids begin."""
    found: list[Candidate] = []
    for start, segment in enumerate(head.segments):
        if not wording.has_address_label(segment.text) and wording.without_contact(segment.text).strip() == "":
            continue
        span: list[int] = []
        texts: list[str] = []
        at: int | None = start
        while at is not None and len(span) < _MAX_ADDRESS_LINES:
            text = head.segments[at].text
            kept = wording.without_contact(wording.without_address_label(text) if not span else text)
            if (
                not kept.strip(" .,:-()")
                or wording.is_registration(kept)
                or (wording.is_paperwork(kept) and not _address_like(kept))
            ):
                break
            span.append(at)
            texts.append(kept.strip())
            if any(map(_address_like, texts)):
                found.append(_address_candidate(head, tuple(span), texts))
            if len(kept) < len(text.rstrip()) - 3 and kept != wording.without_address_label(text):
                break
            at = head.below[at]
    return tuple(found)


def _address_candidate(head: Head, span: tuple[int, ...], texts: Sequence[str]) -> Candidate:
    value = " ".join(texts)
    pieces = tuple(piece for at in span for piece in head.segments[at].pieces)
    return Candidate(value, " ".join(value.split()), fold(value), pieces, _address_features(head, span, texts))


def _address_features(head: Head, span: tuple[int, ...], texts: Sequence[str]) -> dict[str, float]:
    segments = [head.segments[at] for at in span]
    under, over = head.below[span[-1]], head.above[span[0]]
    below = wording.without_contact(head.segments[under].text) if under is not None else ""
    above = head.segments[over].text if over is not None else ""
    like = [_address_like(text) for text in texts]
    gaps = [lower.top - upper.bottom for upper, lower in itertools.pairwise(segments)]
    label = wording.has_address_label(segments[0].text)
    return {
        "bias": 1.0,
        f"lines_{len(span)}": 1.0,
        "label": float(label),
        "start": float(wording.starts_like_address(texts[0])),
        "start_like": float(like[0]),
        "start_company": float(_company(texts[0]) and not wording.starts_like_address(texts[0])),
        "company_lines": float(sum(wording.has_company_suffix(text) for text in texts)),
        "unlike": float(len(like) - sum(like)),
        "inner_unlike": float(sum(not flag for flag in like[1:-1])),
        "last_like": float(like[-1]),
        "postcode": float(any(wording.has_postcode(text) for text in texts)),
        "postcode_late": float(any(wording.has_postcode(text) for text in texts[-2:])),
        "region_last": float(wording.has_region(texts[-1])),
        "comma_last": float(texts[-1].rstrip()[-1:] in ",,-"),
        "stop_last": float(texts[-1].rstrip()[-1:] == "."),
        "bracketed": float(sum(text.startswith("(") for text in texts)),
        "paperwork": float(sum(wording.is_paperwork(text) for text in texts)),
        "second_start": float(sum(wording.starts_like_address(text) for text in texts[1:])),
        "above_like": float(_address_like(above) and not wording.is_paperwork(above)),
        "above_start": float(wording.starts_like_address(above) and _address_like(above)),
        "above_company": float(_company(above)),
        "above_registration": float(wording.is_registration(above)),
        "above_comma": float(above.rstrip()[-1:] in ",,") if above else 0.0,
        "below_like": float(_address_like(below) and not wording.is_paperwork(below)),
        "below_region": float(wording.has_region(below) and not wording.is_paperwork(below)),
        "below_bracketed": float(below.lstrip().startswith("(")),
        "below_paperwork": float(under is not None and (below.strip(" (") == "" or wording.is_paperwork(below))),
        "gap": float(sum(gap > 1.1 * head.height for gap in gaps)),
        "deep": min(segments[0].row, 12) / 12,
        "top": float(segments[0].row == 0),
        "buyer": float(wording.names_buyer(above) or wording.names_buyer(texts[0])),
    }
