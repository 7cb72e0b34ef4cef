"""Dependency graphs with one order: topological, ties broken by key. Nothing here recurses."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import NoReturn

from servo.errors import InvalidValue


class Cycle(InvalidValue):
    """Cyclic dependencies."""

    def __init__(self, path: list[str]) -> None:
        # The first node is repeated at the end; each is upstream of the next.
        self.path = path
        super().__init__(f"the dependencies form a cycle: {' -> '.join(path)}; drop one of them")


def order(upstream: Mapping[str, Iterable[str]]) -> list[str]:
    """Every node after the nodes it depends on. Each named dependency must be a node."""
    before = {node: set(upstream[node]) for node in sorted(upstream)}
    after: dict[str, list[str]] = {node: [] for node in before}
    for node, names in before.items():
        for name in sorted(names):
            if name not in after:
                raise InvalidValue(f"`{node}` depends on `{name}`, which is not there; add it or drop the dependency")
            after[name].append(node)
    waiting = {node: len(names) for node, names in before.items()}
    ready = [node for node, count in waiting.items() if count == 0]
    done: list[str] = []
    while ready:
        node = heapq.heappop(ready)
        done.append(node)
        for follower in after[node]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, follower)
    if len(done) < len(before):
        _find_cycle(before, waiting)
    return done


def _find_cycle(before: Mapping[str, set[str]], waiting: Mapping[str, int]) -> NoReturn:
    """Every remaining node has a remaining dependency, so walking upstream must reach a node twice."""
    node = next(name for name in before if waiting[name])
    walk: list[str] = []
    while node not in walk:
        walk.append(node)
        node = min(name for name in before[node] if waiting[name])
    circle = walk[walk.index(node) :][::-1]
    start = circle.index(min(circle))
    raise Cycle([*circle[start:], *circle[: start + 1]])
