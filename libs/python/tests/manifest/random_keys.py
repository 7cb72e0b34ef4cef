"""Random partition keys of every type with values that are easily misspelt, and texts that are almost keys."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

from servo.model.partition_value import Value

_CHARACTERS = "aZ09-._~ %,=:[]/\\'\"äß€日\U0001f389\u0301"
_DAYS = date.max.toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def dimensions(random: Random) -> dict[str, Value]:
    """One to three dimensions, not in canonical order."""
    names = random.sample(["zone", "a", "_b", "day2", "x" * 40], random.randint(1, 3))
    return {name: _value(random) for name in names}


def spoiled(text: str, random: Random) -> str:
    """The text with one character inserted, removed or replaced; usually not a valid key."""
    at = random.randrange(len(text))
    other = random.choice("=:,%sidbt0Zz \u00e9\0[]")
    match random.randrange(4):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + other + text[at:]
        case 2:
            return f"{text},{text}"
        case _:
            return text[:at] + other + text[at + 1 :]


def _value(random: Random) -> Value:
    match random.randrange(5):
        case 0:
            return "".join(random.choices(_CHARACTERS, k=random.randint(1, 12)))
        case 1:
            return random.choice([0, -1, 2**63 - 1, -(2**63), random.randint(-(10**6), 10**6)])
        case 2:
            return random.random() < 0.5
        case 3:
            return date.fromordinal(random.randint(1, _DAYS))
        case _:
            return _EPOCH + timedelta(seconds=random.randint(-(10**9), 4 * 10**9))
