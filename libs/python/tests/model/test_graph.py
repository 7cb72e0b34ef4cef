"""Topological order and cycles."""

from __future__ import annotations

import pytest

from servo.errors import InvalidValue
from servo.model import presign, request
from servo.model.graph import Cycle, order


def test_ties_are_broken_by_key() -> None:
    assert order({"d": ["b", "c"], "c": ["a"], "b": ["a"], "a": [], "z": []}) == ["a", "b", "c", "d", "z"]


def test_cycle_shows_its_path() -> None:
    with pytest.raises(Cycle) as raised:
        order({"a": ["c"], "b": ["a"], "c": ["b"], "x": ["c"]})
    assert raised.value.path == ["a", "b", "c", "a"]
    with pytest.raises(Cycle) as raised:
        order({"d": ["d"]})
    assert raised.value.path == ["d", "d"]


def test_missing_node_is_named() -> None:
    with pytest.raises(InvalidValue, match="`a` depends on `b`, which is not there"):
        order({"a": ["b"]})


def test_deep_chain_does_not_recurse() -> None:
    names = [f"n{number:06}" for number in range(20_000)]
    assert order({name: names[max(at - 1, 0) : at] for at, name in enumerate(names)}) == names


def test_request_fingerprints_ignore_order_and_see_configuration() -> None:
    # sha256 of {"config_sha256":null,"labels":{"team":"core"},"partitions":["day=d:2025-01-01"],
    # "selection":["+raw.a","raw.b"]}, by coreutils' sha256sum.
    expected = "b7027de94f3449bdc44166df346b05a28cdd77915803cee7f36a6a4f3d4067cc"
    day = ["day=d:2025-01-01"]
    assert request.fingerprint(["raw.b", "+raw.a"], day, {"team": "core"}) == expected
    assert request.fingerprint(["+raw.a", "raw.b"], day, {"team": "core"}) == expected
    assert len({request.fingerprint([], config=config) for config in (None, "rate: 0.5", "rate: 0.50")}) == 3


def test_invalid_signatures_are_refused() -> None:
    key = b"k" * 32
    signed = presign.sign(key, "POST", "/v1/x/start", 100, "k1")
    assert presign.verify({"k1": key}, "POST", signed, 160).path == "/v1/x/start"
    for keys, method, text, now, part in [
        ({"k1": key}, "POST", signed, 161, "expired"),
        ({"k2": key}, "POST", signed, 100, "unknown or retired key"),
        ({"k1": b"x" * 32}, "POST", signed, 100, "does not belong"),
        ({"k1": key}, "GET", signed, 100, "does not belong"),
        ({"k1": key}, "POST", signed.replace("start", "finished"), 100, "does not belong"),
        ({"k1": key}, "POST", signed.replace("expires=100", "expires=0100"), 100, "malformed"),
        ({"k1": key}, "POST", signed + "x", 100, "malformed"),
    ]:
        with pytest.raises(InvalidValue, match=part):
            presign.verify(keys, method, text, now)
    for path in ("x", "/a?b", "/a#b", "/ü", "/a b", "/" + "a" * 1024):
        with pytest.raises(InvalidValue, match="cannot be signed"):
            presign.sign(key, "POST", path, 1, "k1")
