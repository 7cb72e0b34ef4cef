"""Finds all faults that the planner would report about a manifest, in one pass, each with its path.

The same rules and texts as ``services/planner/src/core/check``, file by file: a manifest that
passes here passes there.
"""

from __future__ import annotations

from servo.model.limits import ASSETS_PER_MANIFEST_MAX
from servo.v1 import manifest_pb2

from . import assets, graph, links, partitionings, rest
from .context import Checked, Faults, Link

__all__ = ["Checked", "Link", "check"]

# The only format so far.
_FORMAT = 1


def check(manifest: manifest_pb2.Manifest) -> tuple[Checked | None, list[tuple[str, str]]]:
    """The checked assets, or all faults as (path, text)."""
    faults = Faults()
    if manifest.format != _FORMAT:
        faults.add("format", f"is {manifest.format}; the only format is {_FORMAT}")
    count = len(manifest.assets)
    if count > ASSETS_PER_MANIFEST_MAX:
        faults.add("assets", f"has {count} assets, more than the {ASSETS_PER_MANIFEST_MAX} of one manifest; split it")
        return None, faults.found
    names = assets.check(manifest, faults)
    all_cuts = partitionings.check(manifest, faults)
    makers, all_links = links.check(manifest, names, all_cuts, faults)
    rest.check(manifest, names, faults)
    graph.check(manifest, names, faults)
    if faults.found:
        return None, faults.found
    return Checked(manifest, names, all_cuts, all_links, makers), []
