"""Cross checks: what the amounts of a receipt must add up to."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from docferry.fields.labels import Label

_SUM_LABELS = frozenset({Label.PAYABLE, Label.TOTAL, Label.INCLUSIVE, Label.SUBTOTAL, Label.AMOUNT, Label.QUANTITY})
_MAX_ROUNDING = Decimal("0.05")


@dataclass(frozen=True, slots=True)
class Sums:
    """The amounts that a check arrives at; an amount in one of these sets has that check on its side.

    Attributes:
        paid_minus_change: Cash handed over less the change given, where both are printed.
        with_tax: Subtotal plus tax, plus service charge and rounding where printed, less a discount where printed.
        rounded: A printed sum plus the printed rounding (not 0).
        unrounded: The printed sum that the rounding was applied to.
        items: Running sums of the prices above the first printed sum, at least two prices.
    """

    paid_minus_change: frozenset[Decimal]
    with_tax: frozenset[Decimal]
    rounded: frozenset[Decimal]
    unrounded: frozenset[Decimal]
    items: frozenset[Decimal]


def sums_of(labelled: Sequence[tuple[Label, Decimal]], column: Sequence[tuple[Label, Decimal]]) -> Sums:
    """Everything the amounts add up to.

    Args:
        labelled: All amounts with their labels.
        column: The last amount of each row, top to bottom, with its label.
    """
    by_label: dict[Label, list[Decimal]] = {}
    for label, value in labelled:
        by_label.setdefault(label, []).append(value if label is Label.ROUNDING else abs(value))
    sums = {value for label in _SUM_LABELS - {Label.QUANTITY} for value in by_label.get(label, [])}
    # A rounding may have lost its label; its size gives it away.
    small = by_label.get(Label.ROUNDING, []) + by_label.get(Label.NONE, [])
    roundings = {value for value in small if 0 < abs(value) <= _MAX_ROUNDING}
    # The sign of a printed rounding is often lost: both are tried, and only a printed sum counts.
    values = [value for _, value in labelled]
    present = frozenset(values)
    shifted = ((a, a + shift) for a in sums for r in roundings for shift in (r, -r))
    pairs = {(a, b) for a, b in shifted if b in present}
    rounded, unrounded = _split_rounding(pairs, values)
    return Sums(
        frozenset(c - r for c in by_label.get(Label.CASH, []) for r in by_label.get(Label.CHANGE, []) if c > r > 0),
        frozenset(_with_tax(by_label, roundings)),
        rounded,
        unrounded,
        frozenset(_running_sums(column)),
    )


def adds_up(subtotal: Decimal, tax: Decimal, total: Decimal) -> bool:
    """Whether subtotal and tax make the total, within the rounding of cash payments (five cents)."""
    return abs(subtotal + tax - total) <= _MAX_ROUNDING


def _split_rounding(
    pairs: Iterable[tuple[Decimal, Decimal]], in_order: Sequence[Decimal]
) -> tuple[frozenset[Decimal], frozenset[Decimal]]:
    """Which of two sums that differ by the rounding is rounded: the one in whole five cents, else the later one."""
    rounded: set[Decimal] = set()
    unrounded: set[Decimal] = set()
    for a, b in pairs:
        whole_a, whole_b = (a * 20 % 1 == 0), (b * 20 % 1 == 0)
        if whole_a == whole_b:
            later, earlier = (a, b) if _place(in_order, a) > _place(in_order, b) else (b, a)
        else:
            later, earlier = (a, b) if whole_a else (b, a)
        rounded.add(later)
        unrounded.add(earlier)
    return frozenset(rounded), frozenset(unrounded - rounded)


def _place(values: Sequence[Decimal], value: Decimal) -> int:
    """Where `value` or its negative stands first; the end if nowhere."""
    return next((at for at, other in enumerate(values) if abs(other) == abs(value)), len(values))


def _with_tax(by_label: dict[Label, list[Decimal]], roundings: set[Decimal]) -> set[Decimal]:
    subtotals = by_label.get(Label.SUBTOTAL, []) + by_label.get(Label.TOTAL, []) + by_label.get(Label.AMOUNT, [])
    taxes = [value for value in by_label.get(Label.TAX, []) if value > 0]
    services = [Decimal(0), *by_label.get(Label.SERVICE, [])[:2]]
    discounts = [Decimal(0), *by_label.get(Label.DISCOUNT, [])[:2]]
    shifts = [Decimal(0), *sorted(roundings), *(-value for value in sorted(roundings))]
    return {
        subtotal + tax + service - discount + shift
        for subtotal in subtotals[:6]
        for tax in taxes[:6]
        if tax < subtotal
        for service in services
        for discount in discounts
        for shift in shifts[:5]
    }


def _running_sums(column: Sequence[tuple[Label, Decimal]]) -> list[Decimal]:
    """The sums of the first two, three, ... prices above the first printed sum."""
    prices = [value for _, value in itertools.takewhile(lambda item: item[0] not in _SUM_LABELS, column)]
    return list(itertools.accumulate(prices))[1:]
