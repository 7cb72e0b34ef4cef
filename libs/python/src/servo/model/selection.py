"""Selections of assets: ``ns/a``, ``+ns/a``, ``ns/a+``, ``2+ns/a``, ``tag:x``, ``tag:k=v``,
``ns.*``, ``*``.

Several expressions mean their union; ``-`` before one removes its assets, regardless of the order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from servo.errors import InvalidValue

from .asset_key import AssetKey
from .suggestions import did_you_mean
from .text import excerpt, is_name

# Unlimited steps.
_EVERYTHING = 2**32 - 1
_PLAIN = re.compile(r"(?:(?P<up>[0-9]*)\+)?(?P<base>[^+]*)(?:\+(?P<down>[0-9]*))?")
_TAG = re.compile(r"(?:(?P<up>[0-9]*)\+)?tag:(?P<base>.*?)(?P<down>\+)?", re.DOTALL)


class NoSelection(InvalidValue):
    """The fault of the expression at ``index``."""

    def __init__(self, index: int, sentence: str, unknown: str = "") -> None:
        super().__init__(sentence)
        self.index, self.unknown = index, unknown


@dataclass(frozen=True, slots=True)
class Term:
    excludes: bool
    # Steps to follow from the matched assets.
    upstream: int
    downstream: int
    asset: str = ""
    tag: str = ""
    tag_value: str | None = None
    # Empty for all namespaces.
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """The assets as selections need them."""

    tags: Mapping[str, Mapping[str, str]]
    upstream: Mapping[str, Iterable[str]]
    downstream: Mapping[str, Iterable[str]]


def parse(expressions: Sequence[str]) -> list[Term]:
    terms = [_parse_term(index, text) for index, text in enumerate(expressions)]
    if terms and all(term.excludes for term in terms):
        raise NoSelection(0, "only excludes assets; add what to select, such as `*`")
    return terms


def select(terms: Sequence[Term], graph: Graph) -> set[str]:
    """The keys of the selected assets. A named asset must exist, even if it is excluded."""
    chosen: set[str] = set()
    dropped: set[str] = set()
    for index, term in enumerate(terms):
        (dropped if term.excludes else chosen).update(_found(index, term, graph))
    return chosen - dropped


def _found(index: int, term: Term, graph: Graph) -> set[str]:
    if term.asset and term.asset not in graph.tags:
        offer = did_you_mean(term.asset, graph.tags)
        raise NoSelection(index, f"the deployment has no asset `{term.asset}`{offer}", unknown=term.asset)
    base = {key for key in graph.tags if _fits(term, key, graph.tags[key])}
    return _spread(base, graph.upstream, term.upstream) | _spread(base, graph.downstream, term.downstream)


def _fits(term: Term, key: str, tags: Mapping[str, str]) -> bool:
    if term.asset:
        return key == term.asset
    if term.tag:
        return term.tag in tags and term.tag_value in (None, tags[term.tag])
    return not term.namespace or key.startswith(f"{term.namespace}/")


def _spread(base: set[str], neighbours: Mapping[str, Iterable[str]], steps: int) -> set[str]:
    """Everything within ``steps`` steps, including the start."""
    found, edge = set(base), set(base)
    while steps > 0 and edge:
        edge = {neighbour for key in edge for neighbour in neighbours[key]} - found
        found |= edge
        steps -= 1
    return found


def _parse_term(index: int, text: str) -> Term:
    excludes = text.startswith("-")
    rest = text.removeprefix("-")
    found = (_TAG if "tag:" in rest else _PLAIN).fullmatch(rest)
    base = _base(rest, found["base"]) if found else None
    far = found is not None and max(_steps(found["up"]), _steps(found["down"])) > _EVERYTHING
    if found is None or base is None or far:
        raise NoSelection(
            index,
            f"`{excerpt(text)}` is not a selection: write ns/name, tag:x or ns.*, with + or n+ around it for "
            "neighbours and - before it to leave it out",
        )
    return Term(excludes, _steps(found["up"]), _steps(found["down"]), **base)


def _steps(count: str | None) -> int:
    """A missing number means unlimited."""
    if count is None:
        return 0
    return int(count) if count.isdigit() else _EVERYTHING


def _base(whole: str, text: str) -> dict[str, str] | None:
    if "tag:" in whole:
        key, equals, value = text.partition("=")
        return ({"tag": key, "tag_value": value} if equals else {"tag": key}) if key else None
    if text == "*":
        return {}
    if text.endswith((".*", "/*")):
        return {"namespace": text[:-2]} if is_name(text[:-2]) else None
    for read in (AssetKey.parse, AssetKey.parse_display):
        try:
            return {"asset": str(read(text))}
        except InvalidValue:
            continue
    return None
