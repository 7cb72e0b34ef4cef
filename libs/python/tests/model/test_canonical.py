"""Canonical JSON beyond the vectors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servo.model.canonical import NotCanonical, canonical, parse

_CHARACTERS = st.characters(codec="utf-8")
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(_CHARACTERS, max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(_CHARACTERS, max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(_VALUES)
def test_what_is_written_reads_back(value: Any) -> None:
    assert parse(canonical(value)) == value
    assert canonical(parse(canonical(value))) == canonical(value)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [0, 1.0]}, "at .a[1]: floats"),
        ({"a": 2**64}, "at .a: the integer is outside"),
        ({"a": "\ud800"}, "at .a: a surrogate"),
        ({1: 2}, "at the root: an object's keys are strings"),
        ({"a": {1, 2}}, "at .a: a value of type set has no canonical form"),
    ],
)
def test_faults_name_their_position(value: Any, where: str) -> None:
    with pytest.raises(NotCanonical) as raised:
        canonical(value)
    assert str(raised.value).startswith(where)


def test_nesting_is_limited_to_64() -> None:
    assert parse("[" * 64 + "]" * 64)
    for depth in (65, 100_000):
        with pytest.raises(NotCanonical, match="at most 64 deep"):
            parse("[" * depth + "]" * depth)
