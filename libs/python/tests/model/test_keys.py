"""Keys have one spelling, and refusals name the reason."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servo.errors import InvalidValue
from servo.model import ids, run_key
from servo.model.asset_key import AssetKey
from servo.model.partition_key import PartitionKey
from servo.model.task_key import TaskKey

_INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
    lambda at: at.replace(microsecond=0, tzinfo=UTC)
)
_VALUES = (
    st.text(st.characters(codec="utf-8"), max_size=20)
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.dates()
    | _INSTANTS
)
_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
_PARTITIONS = st.dictionaries(_NAMES, _VALUES, min_size=1, max_size=3).map(PartitionKey)


@given(_PARTITIONS)
def test_partition_keys_round_trip(key: PartitionKey) -> None:
    assert PartitionKey.parse(str(key)) == key


@given(st.from_regex(r"[ab]=[sidbt]:[-+0-9A-Fa-f%TZ:.~,=]{0,12}", fullmatch=True))
def test_parsed_keys_are_canonical(text: str) -> None:
    try:
        key = PartitionKey.parse(text)
    except InvalidValue:
        return
    assert str(key) == text


@given(st.none() | _PARTITIONS, st.none() | st.integers(0, 2**32 - 1))
def test_task_keys_round_trip(partition: PartitionKey | None, index: int | None) -> None:
    key = TaskKey(AssetKey("raw", "events"), partition, map_index=index)
    assert TaskKey.parse(str(key)) == key


@pytest.mark.parametrize(
    "text",
    [
        *("a=i:+1", "a=i:-0", "a=i:9223372036854775808", "a=i:", "a=i:\u0661"),
        *("a=d:20250115", "a=d:2025-1-15", "a=d:0000-01-01", "a=d:2025-01-15T00:00"),
        *("a=t:2025-01-01T00:00:00z", "a=t:2025-01-01 00:00:00Z", "a=t:2025-01-01T00:00:00+00:00"),
        *("a=t:2025-01-01T00:00:00.5Z", "a=t:2016-12-31T23:59:60Z", "a=t:2025-01-01T00:00Z"),
        *("a=s:%41", "a=s:%", "a=s:%4", "a=s:%C3", "a=s:ü", "a=s:a:b", "a=s:a=b", "a=b:1"),
        *("=i:1", "1a=i:1", "a=i:1,", ",a=i:1", " a=i:1", "a=i:1, b=i:2", "_map=i:1", "a\n=i:1"),
    ],
)
def test_non_canonical_spellings_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        PartitionKey.parse(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("b=i:1,a=i:2", "dimensions are sorted by name: write `a` before `b`"),
        ("a=i:1,a=i:2", "the dimension `a` appears twice; keep one"),
        ("_map=i:1", "the dimension name `_map` is reserved for mapped tasks; choose another"),
        (
            "day=d:2025-02-30",
            "the value of dimension `day` is refused: `2025-02-30` is not a date: write YYYY-MM-DD, from year 0001 on",
        ),
    ],
)
def test_refusals_have_the_same_text_as_rust(text: str, sentence: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        PartitionKey.parse(text)
    assert str(raised.value) == sentence


def test_unrepresentable_values_are_refused() -> None:
    for wrong in (
        datetime(2025, 1, 1),
        datetime(2025, 1, 1, microsecond=5, tzinfo=UTC),
        2**63,
        "\ud800",
        1.5,
    ):
        with pytest.raises(InvalidValue, match="the value of dimension `a` is refused"):
            PartitionKey(a=wrong)  # type: ignore[arg-type]
    elsewhere = datetime(2025, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert str(PartitionKey(a=elsewhere, b=date(2025, 1, 1))) == "a=t:2025-01-01T00:00:00Z,b=d:2025-01-01"


def test_sizes_are_limited() -> None:
    assert PartitionKey(a="x" * (1024 - len("a=s:")))
    for wrong in ({"a": "x" * 1021}, {f"d{n}": True for n in range(9)}, {}):
        with pytest.raises(InvalidValue):
            PartitionKey(wrong)


def test_child_keys_contain_the_map_index() -> None:
    child = TaskKey.parse("raw/files[_a=b:true,day=d:2025-01-01]:check").child(3)
    assert str(child) == "raw/files[_a=b:true,_map=i:3,day=d:2025-01-01]:check"


@pytest.mark.parametrize(
    "text",
    [
        *("raw/events", "raw/events:", "raw/events:Check", "raw.events:check", "raw/events[]:check", ""),
        *(
            "raw/events[a=i:1:check",
            "raw/eventsa=i:1]:check",
            "raw/events[a=i:1]x:check",
            "raw/events:backfill",
        ),
        *("raw/events[_map=s:1]:check", "raw/events[_map=i:-1]:check", "raw/events[_map=i:4294967296]:check"),
        "raw/events[_map=b:true]:check",
    ],
)
def test_invalid_task_keys_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        TaskKey.parse(text)


@pytest.mark.parametrize("text", ["raw", "raw.events", "/events", "raw/", "raw/2nd", "Raw/e", "raw/a/b", "raw/a-b"])
def test_invalid_asset_keys_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        AssetKey.parse(text)


def test_attempt_ids_are_derived() -> None:
    dispatch = ids.dispatch_id("run_" + "a" * 26, "raw/events[day=d:2025-01-01]:materialize", 1)
    # sha256 of the dispatch id, cut to 16 bytes: computed with coreutils' sha256sum.
    assert ids.attempt_bytes(ids.attempt_id(dispatch)).hex() == "c4afa175143d437e1d5b71ebd3d5bbab"


def test_ulids_sort_by_time_and_have_one_spelling() -> None:
    # The example of the ULID specification: 1469918176385 ms is 01ARYZ6S41.
    assert ids.ulid(1_469_918_176_385, bytes(10)) == "01ARYZ6S410000000000000000"
    for wrong in ("01aryz6s410000000000000000", "8" + "0" * 25, "0" * 25, "U" * 26):
        with pytest.raises(InvalidValue):
            ids.attempt_bytes(wrong)


@pytest.mark.parametrize("wrong", ["", "a#2", "a\n", "manual:x", "sched:x", "k" * 513])
def test_reserved_run_keys_are_refused(wrong: str) -> None:
    with pytest.raises(InvalidValue):
        run_key.check_chosen(wrong)


def test_run_keys_count_generations() -> None:
    key = run_key.check_chosen("nightly")
    assert [run_key.generation(key, n) for n in (1, 2, 3)] == ["nightly", "nightly#2", "nightly#3"]
    assert run_key.manual("req-1") == "manual:req-1"
