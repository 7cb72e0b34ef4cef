"""The normalized order of a manifest, and the canonical JSON of messages.

The canonical form of a message is its proto3 JSON with the field names of the proto files and
without defaults, written as canonical JSON. The planner computes the same bytes and the same
digest.
"""

from __future__ import annotations

import hashlib

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from servo.model import canonical
from servo.v1 import manifest_pb2


def text(message: Message) -> str:
    return canonical.canonical(MessageToDict(message, preserving_proto_field_name=True))


def digest(message: Message) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(text(message).encode()).hexdigest()


def normalise(manifest: manifest_pb2.Manifest) -> None:
    """Sorts every list whose order has no meaning, so that equal content has one digest."""
    manifest.assets.sort(key=lambda asset: asset.key)
    manifest.schedules.sort(key=lambda schedule: schedule.name)
    manifest.sensors.sort(key=lambda sensor: sensor.name)
    for asset in manifest.assets:
        _normalise_asset(asset)


def _normalise_asset(asset: manifest_pb2.AssetDefinition) -> None:
    asset.owners.sort()
    asset.dependencies.sort(key=lambda dependency: (dependency.upstream, dependency.parameter))
    asset.checks.sort(key=lambda check: check.name)
    asset.secrets.sort(key=lambda secret: secret.name)
    # Guarded, because accessing a missing submessage would create it.
    if asset.HasField("partitions"):
        asset.partitions.dimensions.sort(key=lambda dimension: dimension.name)
    for dependency in asset.dependencies:
        if dependency.HasField("mapping"):
            dependency.mapping.dimensions.sort(key=lambda rule: rule.upstream)
    if asset.HasField("resources"):
        asset.resources.capabilities.sort()
    if asset.HasField("retry"):
        asset.retry.retry_on_categories.sort()
        asset.retry.retry_on_types.sort()
        asset.retry.never_on_types.sort()
