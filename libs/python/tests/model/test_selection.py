"""Selection expressions, with the same table as in Rust."""

from __future__ import annotations

import pytest

from servo.model import selection
from servo.model.suggestions import did_you_mean

# a -> b -> c -> d, x/e alone; b has the tag team=core, c the tag hot.
_WORLD = selection.Graph(
    tags={"n/a": {}, "n/b": {"team": "core"}, "n/c": {"hot": ""}, "n/d": {}, "x/e": {}},
    upstream={"n/a": [], "n/b": ["n/a"], "n/c": ["n/b"], "n/d": ["n/c"], "x/e": []},
    downstream={"n/a": ["n/b"], "n/b": ["n/c"], "n/c": ["n/d"], "n/d": [], "x/e": []},
)


def select(*expressions: str) -> str:
    return "".join(sorted(key[-1] for key in selection.select(selection.parse(expressions), _WORLD)))


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ("n/b", "b"),
        ("n.b", "b"),
        ("+n/c", "abc"),
        ("n/c+", "cd"),
        ("+n/b+", "abcd"),
        ("1+n/c", "bc"),
        ("n/a+2", "abc"),
        ("1+n/c+1", "bcd"),
        ("0+n/c", "c"),
        ("tag:hot", "c"),
        ("tag:team", "b"),
        ("tag:team=core", "b"),
        ("tag:team=other", ""),
        ("+tag:hot", "abc"),
        ("1+tag:hot+", "bcd"),
        ("n.*", "abcd"),
        ("x/*", "e"),
        ("*", "abcde"),
        ("n/a x.e", "ae"),
        ("-n/b +n/c", "ac"),
        ("n.* -n/c+", "ab"),
        ("", ""),
    ],
)
def test_every_kind_of_expression(expressions: str, expected: str) -> None:
    assert select(*expressions.split()) == expected
    assert select(*reversed(expressions.split())) == expected


@pytest.mark.parametrize(
    ("expressions", "index", "part"),
    [
        (["n/a", "n/z"], 1, "the deployment has no asset `n/z`; did you mean `n/a` or `n/b` or `n/c`?"),
        (["-n/z", "n/a"], 0, "has no asset `n/z`"),
        (["-n/a"], 0, "only excludes assets"),
        *(
            (["n/a", shape], 1, "is not a selection")
            for shape in ["", "a", "+", "n/a+x", "x+n/a", "n/a++", "tag:", "N.*", "--n/a", "99999999999+n/a", "atag:x"]
        ),
    ],
)
def test_wrong_expressions_are_reported_by_index(expressions: list[str], index: int, part: str) -> None:
    with pytest.raises(selection.NoSelection) as raised:
        select(*expressions)
    assert raised.value.index == index
    assert part in str(raised.value)


def test_suggestions_begin_with_the_nearest_name() -> None:
    known = ["raw/orders", "raw/order", "raw/users", "x/y"]
    assert did_you_mean("raw/ordres", known) == "; did you mean `raw/orders` or `raw/order`?"
    assert did_you_mean("something/else", known) == ""
    assert did_you_mean("x" * 1_000_000, known) == ""
