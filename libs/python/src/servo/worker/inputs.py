"""The versions that an envelope names, inline or, if there are many, in a separate file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from google.protobuf import json_format

from servo.data.errors import BadFolder
from servo.data.folders import read_file
from servo.errors import ServoError
from servo.v1 import materialization_pb2, worker_pb2


class BadInputs(ServoError):
    """A list of inputs that cannot be read or does not match its digest."""


def read_input_list(uri: str, digest: str) -> list[worker_pb2.ResolvedInput]:
    """The list of inputs in a file."""
    try:
        content = read_file(uri)
    except (OSError, BadFolder) as error:
        raise BadInputs(f"the list of inputs at {uri} cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise BadInputs(f"the list of inputs at {uri} is not the one that the envelope was written for")
    try:
        lines = content.decode().splitlines()
        return [_parse(line) for line in lines if line]
    except (UnicodeDecodeError, json_format.ParseError) as error:
        raise BadInputs(f"the list of inputs at {uri} is malformed: {error}") from error


def _parse(line: str) -> worker_pb2.ResolvedInput:
    """Ignores unknown fields, which a newer dispatcher may send."""
    return json_format.Parse(line, worker_pb2.ResolvedInput(), ignore_unknown_fields=True)


def recorded(inputs: Iterable[worker_pb2.ResolvedInput]) -> list[materialization_pb2.InputVersion]:
    """The input versions that an output reports."""
    return [
        materialization_pb2.InputVersion(
            asset_key=each.asset_key, partition_key=version.partition_key, materialization_id=version.materialization_id
        )
        for each in inputs
        for version in each.versions
        if version.materialization_id
    ]
