"""Which characters of two readings of one line are the same print."""

from __future__ import annotations

from itertools import takewhile

Match = tuple[int, int]
"""Index in the first text, index in the second; the characters there are equal."""


def matches(one: str, other: str) -> list[Match]:
    """The equal characters on a cheapest path from one text to the other (Wagner and Fischer, 1974), rising.

    Inserting, leaving out and replacing a character cost one each.
    """
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    rest = min(len(one), len(other)) - head
    backwards = zip(reversed(one), reversed(other), strict=False)
    tail = min(rest, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], backwards)))
    middle = _traced(one[head : len(one) - tail], other[head : len(other) - tail])
    return [
        *((at, at) for at in range(head)),
        *((head + a, head + b) for a, b in middle),
        *((len(one) - back, len(other) - back) for back in range(tail, 0, -1)),
    ]


def _traced(one: str, other: str) -> list[Match]:
    table = _distances(one, other)
    a, b = len(one), len(other)
    found: list[Match] = []
    while a and b:
        same = one[a - 1] == other[b - 1]
        if table[a][b] == table[a - 1][b - 1] + (not same):
            a, b = a - 1, b - 1
            if same:
                found.append((a, b))
        elif table[a][b] == table[a - 1][b] + 1:
            a -= 1
        else:
            b -= 1
    return found[::-1]


def _distances(one: str, other: str) -> list[list[int]]:
    """Edit distances between all prefixes, `(len(one) + 1) x (len(other) + 1)`."""
    table = [list(range(len(other) + 1))]
    for row, letter in enumerate(one, start=1):
        above, current = table[-1], [row]
        for column, counterpart in enumerate(other, start=1):
            replaced = above[column - 1] + (letter != counterpart)
            current.append(min(replaced, above[column] + 1, current[-1] + 1))
        table.append(current)
    return table
