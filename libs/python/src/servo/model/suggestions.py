"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable

# Names that differ by more edits are not suggested.
_EDITS_MAX = 3
_OFFERED_MAX = 3
_LENGTH_MAX = 256


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """``; did you mean …?`` with the nearest names, or nothing."""
    if len(given) > _LENGTH_MAX:
        return ""
    near = ((_edits(given, name), name) for name in known if abs(len(name) - len(given)) <= _EDITS_MAX)
    offers = [f"`{name}`" for edits, name in sorted(near) if edits <= _EDITS_MAX][:_OFFERED_MAX]
    return f"; did you mean {' or '.join(offers)}?" if offers else ""


def _edits(one: str, other: str) -> int:
    """Edit distance: insertions, deletions, replacements, and swaps of neighbours."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        oldest, before, row = before, row, [at]
        for place, wanted in enumerate(other, 1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != wanted))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == wanted:
                cost = min(cost, oldest[place - 2] + 1)
            row.append(cost)
    return row[-1]
