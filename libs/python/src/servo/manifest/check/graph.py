"""Cyclic dependencies. Assets that are made together count as one."""

from __future__ import annotations

from servo.model.graph import Cycle, order
from servo.v1 import manifest_pb2

from .context import Faults, Names

# Further cycles are reported once these are fixed.
_CYCLES_REPORTED_MAX = 8


def check(manifest: manifest_pb2.Manifest, names: Names, faults: Faults) -> None:
    upstream = _tasks(manifest, names, faults)
    for _ in range(_CYCLES_REPORTED_MAX):
        try:
            order(upstream)
        except Cycle as cycle:
            last, first = cycle.path[-2:]
            faults.add(_path_of(manifest, names, first, last), str(cycle))
            # Removing this edge reveals the next cycle.
            upstream[first] = [node for node in upstream[first] if node != last]
        else:
            return


def _tasks(manifest: manifest_pb2.Manifest, names: Names, faults: Faults) -> dict[str, list[str]]:
    """The dependencies of each task, by the keys of the assets that have one."""

    def task_of(key: str) -> str | None:
        if key not in names:
            return None
        maker = manifest.assets[names[key]].made_by
        return maker if maker in names else key

    upstream: dict[str, list[str]] = {}
    for index, asset in enumerate(manifest.assets):
        task = task_of(asset.key)
        # Of duplicate keys only the first counts.
        if task is None or names[asset.key] != index:
            continue
        waits = upstream.setdefault(task, [])
        for place, dependency in enumerate(asset.dependencies):
            before = task_of(dependency.upstream)
            if before == task and dependency.upstream != asset.key:
                path = f"assets[{index}].dependencies[{place}].upstream"
                faults.add(path, f"`{dependency.upstream}` is made by the same task; drop the dependency")
            elif before is not None:
                upstream.setdefault(before, [])
                waits.append(before)
    return upstream


def _path_of(manifest: manifest_pb2.Manifest, names: Names, node: str, upstream: str) -> str:
    """The path of the dependency that closes the cycle."""

    def made_here(key: str, task: str) -> bool:
        return key == task or (key in names and manifest.assets[names[key]].made_by == task)

    for index, asset in enumerate(manifest.assets):
        for place, dependency in enumerate(asset.dependencies):
            if made_here(asset.key, node) and made_here(dependency.upstream, upstream):
                return f"assets[{index}].dependencies[{place}].upstream"
    return "assets"
