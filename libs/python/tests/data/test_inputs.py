"""Inputs of a function from the versions of its envelope."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servo import In
from servo.data.commit import OutputIdentity, commit
from servo.data.folders import open_folder
from servo.data.inputs import Reader, ResolvedInput, Shape, Version
from servo.execute.errors import InputMissing
from servo.model.partition_key import PartitionKey
from servo.worker.inputs import BadInputs, read_input_list, recorded


def stored(folder: Path, name: str, value: Any) -> Version:
    output = commit(open_folder(f"file://{folder}/{name}/"), value, "", OutputIdentity("r", name, "n/a", ""), [])
    return Version(f"part=s:{name}", name, output["uri"])


def test_several_partitions_are_a_mapping_and_missing_ones_raise(tmp_path: Path) -> None:
    versions = [stored(tmp_path, "a", [1]), Version("part=s:b", "B", ""), Version("part=s:c", "", "")]
    reader = Reader()
    found = reader.read(ResolvedInput("n/a", "parts", versions), In("n/a", optional=True), None)
    keys = [PartitionKey(part="a"), PartitionKey(part="b")]
    assert (found.several, found.value) == (True, {keys[0]: [1], keys[1]: None})
    assert reader.read_bytes == len("[1]")
    with pytest.raises(InputMissing, match="the partition part=s:c of `n/a` has no version for the parameter `parts`"):
        reader.read(ResolvedInput("n/a", "parts", versions), In("n/a"), None)
    assert reader.read(ResolvedInput("n/a", "a", []), In("n/a", optional=True), None).value is None


def test_shape_decides_between_one_value_and_a_mapping(tmp_path: Path) -> None:
    one = [stored(tmp_path, "a", [1])]

    def read(shape: Shape, versions: list[Version], *, optional: bool = False) -> tuple[bool, Any]:
        loaded = []

        def load(partition: PartitionKey | None) -> str:
            loaded.append(partition)
            return "loaded"

        found = Reader().read(
            ResolvedInput("n/a", "a", versions, shape=shape), In("n/a", optional=optional), None, load
        )
        assert not loaded or shape is Shape.WHOLE
        return found.several, found.value

    assert read(Shape.ONE, one) == (False, [1])
    assert read(Shape.SEVERAL, one) == (True, {PartitionKey(part="a"): [1]})
    # No existing partition is different from an unpartitioned asset, which a source would load.
    assert read(Shape.SEVERAL, []) == (True, {})
    assert read(Shape.ONE, [], optional=True) == (False, None)
    with pytest.raises(InputMissing, match="`n/a` has no partition that matches this one for the parameter `a`"):
        read(Shape.ONE, [])
    assert read(Shape.WHOLE, []) == (False, "loaded")


def test_mapped_asset_is_a_list_in_item_order(tmp_path: Path) -> None:
    made = {index: stored(tmp_path, f"item{index}", index) for index in (10, 2, 0)}
    versions = [replace(made[index], partition=f"_map=i:{index}") for index in made]
    assert Reader().read(ResolvedInput("n/a", "a", versions), In("n/a"), None).value == [0, 2, 10]
    # One item made nothing, and another has no version.
    sparse = [*versions, Version("_map=i:1", "B", ""), Version("_map=i:3", "", "")]
    assert Reader().read(ResolvedInput("n/a", "a", sparse), In("n/a"), None).value == [0, None, 2, None, 10]
    # Without items there is nothing to read, and nothing is missing.
    none = ResolvedInput("n/a", "a", [Version("", "01J0000000000000000000000A", "")], mapped=True)
    assert Reader().read(none, In("n/a"), None).value == []
    # A mapping by partition if there may be several.
    several = [
        *(replace(made[index], partition=f"_map=i:{index},part=s:x") for index in (2, 0)),
        replace(made[10], partition="_map=i:0,part=s:y"),
    ]
    found = Reader().read(ResolvedInput("n/a", "a", several), In("n/a"), None)
    assert found.value == {PartitionKey(part="x"): [0, 2], PartitionKey(part="y"): [10]}
    own = Reader().read(ResolvedInput("n/a", "a", several[:2], shape=Shape.ONE), In("n/a"), None)
    assert (own.several, own.value) == (False, [0, 2])


LINE = b'{"assetKey":"n/a","parameter":"a","versions":[{"partitionKey":"k=s:1","materializationId":"M","uri":"file:///x"}]}'


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_input_list_is_verified_by_its_digest(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/A.jsonl"
    (tmp_path / "A.jsonl").write_bytes(LINE + b"\n")
    (found,) = read_input_list(uri, digest(LINE + b"\n"))
    assert (found.asset_key, found.versions[0].uri) == ("n/a", "file:///x")
    (version,) = recorded([found])
    assert (version.asset_key, version.partition_key, version.materialization_id) == ("n/a", "k=s:1", "M")
    (tmp_path / "A.jsonl").write_bytes(LINE)
    with pytest.raises(BadInputs, match="is not the one that the envelope was written for"):
        read_input_list(uri, digest(LINE + b"\n"))
    (tmp_path / "A.jsonl").write_bytes(b"no json")
    with pytest.raises(BadInputs, match="is malformed"):
        read_input_list(uri, digest(b"no json"))
    (tmp_path / "A.jsonl").unlink()
    with pytest.raises(BadInputs, match="cannot be read"):
        read_input_list(uri, digest(LINE))


def test_unknown_fields_of_a_newer_dispatcher_are_ignored(tmp_path: Path) -> None:
    line = LINE.replace(b'"parameter"', b'"mood":"good","parameter"').replace(b'"uri"', b'"colour":[1],"uri"')
    (tmp_path / "A.jsonl").write_bytes(line)
    (found,) = read_input_list(f"file://{tmp_path}/A.jsonl", digest(line))
    assert (found.parameter, found.versions[0].uri) == ("a", "file:///x")
