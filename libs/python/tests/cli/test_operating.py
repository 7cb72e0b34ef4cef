"""Operations: limits, workers, pauses, partitions and quarantine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from servo.cli.server import Server
from servo.v1 import materialization_pb2, quota_model_pb2, quota_pb2, scheduler_data_pb2, state_pb2

from ..mesh import Mesh
from .shop import CALM_DAY, Shop, shop_on


@pytest.fixture(scope="module")
def shop(mesh: Mesh, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    made = shop_on(mesh, "operating", tmp_path_factory.mktemp("shop"))
    made.change('asset(namespace="shop", partitions=DAYS)', 'asset(namespace="shop", partitions=DAYS, quarantine=True)')
    made.change("@check(daily_revenue)", '@check(daily_revenue, severity="critical")')
    made.change("== set(PRODUCTS)", '== {"nothing"}')
    made.ok("deploy", "--yes")
    with made.worker("--workspace", "operating"):
        # Waits until the worker has run a task.
        made.ok("run", "shop/raw_orders", "-p", "day=2025-03-05", "--wait")
        yield made


@pytest.mark.mesh
def test_limits_are_set_individually_and_shown_with_usage(shop: Shop, mesh: Mesh) -> None:
    refused = shop.servo("quota", "set", "max_queued_runs=900")
    assert "only the platform operator holds it" in refused.stderr
    key = (mesh.folder / "keys/platform-operator").read_text().strip()
    shop = dataclasses.replace(shop, environment={**shop.environment, "SERVO_API_KEY": key})
    shop.ok("quota", "set", "max_queued_runs=900", "max_run_duration=2h")
    shop.ok("quota", "set", "max_queued_runs=800")
    answer = json.loads(shop.ok("quota", "show", "--json"))
    assert (answer["limits"]["max_queued_runs"], answer["limits"]["max_run_duration"]) == (800, "7200s")
    rows = {line.split()[0]: line.split()[1:] for line in shop.ok("quota", "show").splitlines()}
    assert rows["max_queued_runs"] == ["0", "/", "800", "set"]
    assert rows["max_concurrent_tasks"][1:] == ["/", "no", "cap", "default"]
    assert rows["weight_millis"] == ["1000", "default"]
    assert answer["used"]["queued_runs"] == 0
    shop.ok("quota", "set", "max_queued_runs=default", "max_run_duration=default")
    assert "limits" not in (quota := json.loads(shop.ok("quota", "show", "--json"))) or not quota["limits"]
    wrong = shop.servo("quota", "set", "max_queued_run=1")
    assert (wrong.returncode, "did you mean `max_queued_runs`" in wrong.stderr) == (2, True)
    assert shop.servo("quota", "set", "max_queued_runs=many").returncode == 2


@pytest.mark.mesh
def test_pools_are_created_changed_and_deleted(shop: Shop) -> None:
    assert "narrow has 1 slot\n" in shop.ok("quota", "set-pool", "narrow", "1", "--description", "a licence")
    assert json.loads(shop.ok("quota", "set-pool", "narrow", "2", "--json"))["description"] == "a licence"
    assert lines_of(shop.ok("quota", "pools"))["narrow"] == "0 / 2 a licence"
    assert shop.ok("quota", "pool", "narrow") == "narrow: 0 / 2 slots used\n"
    assert "gone" in shop.ok("quota", "delete-pool", "narrow")
    assert "narrow" not in [each["pool"] for each in json.loads(shop.ok("quota", "pools", "--json"))]
    assert shop.servo("quota", "delete-pool", "narrow").returncode == 3


@pytest.mark.mesh
def test_usage_costs_and_budgets_are_reported(shop: Shop) -> None:
    assert shop.ok("quota", "usage", "--by", "workspace").startswith("FROM")
    assert shop.ok("quota", "costs", "--grain", "total").startswith("FROM")
    assert json.loads(shop.ok("quota", "budgets", "--json")) == []
    assert shop.servo("quota", "usage", "--grain", "year").returncode == 2


@pytest.mark.mesh
def test_dispatch_is_paused_and_resumed(shop: Shop) -> None:
    pause = json.loads(shop.ok("admin", "pause", "--pool", "nobody", "--comment", "a rest", "--json"))["pause"]
    assert "a rest" in shop.ok("admin", "pauses")
    assert shop.ok("admin", "resume", pause["pause_id"]) == "resumed\n"
    assert pause["pause_id"] not in shop.ok("admin", "pauses")
    workers = [each for each in json.loads(shop.ok("admin", "workers", "--json")) if each["state"].endswith("ACTIVE")]
    assert any(each["info"].get("workspaces") == ["operating"] for each in workers)
    assert "ACTIVE" in shop.ok("admin", "workers")
    assert shop.servo("admin", "drain", "0" * 26).returncode == 3
    assert shop.servo("admin", "kill", "0" * 26).returncode == 3
    assert shop.ok("admin", "deployments").splitlines()[1].startswith("1 ")


@pytest.mark.mesh
def test_dynamic_sets_grow_and_shrink(shop: Shop) -> None:
    assert shop.ok("partitions", "add", "customers", "ann", "bob") == "2 added\n"
    assert shop.ok("partitions", "add", "customers", "bob") == "0 added\n"
    assert shop.ok("partitions", "values", "customers").split() == ["ann", "bob"]
    assert shop.ok("partitions", "remove", "customers", "ann") == "1 removed\n"
    assert [each["value"] for each in json.loads(shop.ok("partitions", "values", "customers", "--json"))] == ["bob"]


@pytest.mark.mesh
def test_failed_critical_check_leads_to_quarantine(shop: Shop) -> None:
    assert "nothing is in quarantine" in shop.ok("quarantine", "list")
    output = shop.servo("run", "+shop/daily_revenue", "-p", f"day={CALM_DAY}", "--wait").stdout
    [waiting] = json.loads(shop.ok("quarantine", "list", "--json"))
    assert f"shop/daily_revenue[day=d:{CALM_DAY}]  is in quarantine" in output
    assert f"servo quarantine approve {waiting['materialization_id']}" in output
    assert (waiting["output"]["asset_key"], waiting["gating"]) == ("shop/daily_revenue", "GATING_QUARANTINE")
    assert waiting["materialization_id"] in shop.ok("quarantine", "list")


class Answers:
    """A server that answers one call and records its request."""

    def __init__(self, **answers: Message) -> None:
        self.request: list[Any] = []
        calls = {name: self._answering(answer) for name, answer in answers.items()}
        self.scheduler = self.quota = SimpleNamespace(**calls)

    def _answering(self, answer: Message) -> Any:
        def call(request: Message) -> Message:
            self.request.append(request)
            return answer

        return call


@pytest.fixture
def nowhere(tmp_path: Path) -> Shop:
    return Shop(tmp_path, {"SERVO_URL": "https://nowhere", "SERVO_TENANT": "t", "SERVO_WORKSPACE": "w"})


def answering(monkeypatch: pytest.MonkeyPatch, **answers: Message) -> Answers:
    server = Answers(**answers)
    monkeypatch.setattr(Server, "client", lambda _: contextlib.nullcontext(server))
    return server


def partition(state: str, *causes: materialization_pb2.StaleCause) -> materialization_pb2.Partition:
    return materialization_pb2.Partition(
        asset_key="n/a",
        partition_key="day=d:2026-01-31",
        state=f"PARTITION_STATE_{state}",
        materialize_time=Timestamp(seconds=1) if causes else None,
        stale_causes=causes,
    )


def test_stale_partitions_are_listed_with_causes(nowhere: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = materialization_pb2.StaleCause(
        reason="STALE_REASON_UPSTREAM_CHANGED", asset_key="n/b", partition_key="day=d:2026-01-31"
    )
    old = materialization_pb2.StaleCause(reason="STALE_REASON_TOO_OLD")
    found = [partition("MISSING"), partition("STALE", changed, old)]
    server = answering(
        monkeypatch,
        ListPartitions=scheduler_data_pb2.ListPartitionsResponse(partitions=found),
        ListStalePartitions=scheduler_data_pb2.ListStalePartitionsResponse(partitions=found[1:]),
    )
    lines = nowhere.ok("partitions", "list", "n/a", "--filter", "state = STALE").splitlines()
    assert lines[1].split() == ["n/a", "day=d:2026-01-31", "MISSING", "-"]
    assert lines[2].endswith("upstream changed n/b[day=d:2026-01-31]; too old")
    assert (server.request[0].namespace, server.request[0].name, server.request[0].filter) == (
        "n",
        "a",
        "state = STALE",
    )
    assert json.loads(nowhere.ok("partitions", "stale", "n/a+", "--json"))[0]["state"] == "PARTITION_STATE_STALE"
    assert list(server.request[1].selection) == ["n/a+"]


def test_partition_summary_shows_ranges(nowhere: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [scheduler_data_pb2.PartitionStateCount(state="PARTITION_STATE_MISSING", count=2)]
    stretch = scheduler_data_pb2.PartitionStretch(
        first_key="day=d:2026-01-30", last_key="day=d:2026-01-31", counts=counts
    )
    answer = scheduler_data_pb2.GetPartitionSummaryResponse(total=2, counts=counts, stretches=[stretch])
    answering(monkeypatch, GetPartitionSummary=answer)
    assert nowhere.ok("partitions", "summary", "n/a").splitlines() == [
        "2 partitions: 2 MISSING",
        "  day=d:2026-01-30 … day=d:2026-01-31  2 MISSING",
    ]


def lines_of(text: str) -> dict[str, str]:
    """The rows of a table by their first column."""
    return {name: " ".join(rest) for name, *rest in map(str.split, text.splitlines()[1:])}


def test_usage_is_shown_with_its_limit(nowhere: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = quota_model_pb2.QuotaLimits(max_concurrent_tasks=50, max_backfill_concurrency=5, weight_millis=1000)
    used = quota_pb2.QuotaUse(concurrent_tasks=12, backfill_runs=2)
    answering(monkeypatch, GetQuota=quota_pb2.GetQuotaResponse(effective=limits, used=used))
    rows = lines_of(nowhere.ok("quota", "show"))
    assert (rows["max_concurrent_tasks"], rows["max_backfill_concurrency"]) == ("12 / 50 default", "2 / 5 default")
    assert (rows["max_daily_runs"], rows["weight_millis"]) == ("0 / no cap default", "1000 default")
    used_json = json.loads(nowhere.ok("quota", "show", "--json"))["used"]
    assert (used_json["concurrent_tasks"], used_json["daily_runs"]) == (12, 0)


def test_used_slots_are_shown_with_a_pool(nowhere: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    pools = [quota_model_pb2.Pool(pool="api", slots=3), quota_model_pb2.Pool(pool="db", slots=2, used_slots=2)]
    answering(monkeypatch, ListPools=quota_pb2.ListPoolsResponse(pools=pools))
    assert lines_of(nowhere.ok("quota", "pools")) == {"api": "0 / 3", "db": "2 / 2"}
    assert [each["used_slots"] for each in json.loads(nowhere.ok("quota", "pools", "--json"))] == [0, 2]


def test_holders_of_a_pool_are_listed(nowhere: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = quota_model_pb2.Pool(pool="db", slots=2, used_slots=1)
    since = Timestamp(seconds=1_767_225_600)
    holder = quota_model_pb2.SlotHolder(workspace="prod", run_id="run_a", task_id="task_b", since_time=since)
    answering(monkeypatch, GetPool=quota_pb2.GetPoolResponse(pool=pool, holders=[holder]))
    output = nowhere.ok("quota", "pool", "db")
    assert output.startswith("db: 1 / 2 slots used\n")
    assert "run_a" in lines_of(output)["prod"]
    held = json.loads(nowhere.ok("quota", "pool", "db", "--json"))
    assert (held["pool"]["used_slots"], held["holders"][0]["task_id"]) == (1, "task_b")


def test_unknown_usage_is_not_shown_as_zero(nowhere: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = quota_model_pb2.QuotaLimits(max_concurrent_tasks=50)
    pools = [quota_model_pb2.Pool(pool="db", slots=2, use_unknown=True)]
    answering(
        monkeypatch,
        GetQuota=quota_pb2.GetQuotaResponse(effective=limits),
        ListPools=quota_pb2.ListPoolsResponse(pools=pools),
    )
    assert lines_of(nowhere.ok("quota", "show"))["max_concurrent_tasks"] == "? / 50 default"
    assert "used" not in json.loads(nowhere.ok("quota", "show", "--json"))
    assert lines_of(nowhere.ok("quota", "pools")) == {"db": "? / 2"}
    assert "used_slots" not in json.loads(nowhere.ok("quota", "pools", "--json"))[0]


def test_ctrl_c_does_not_cancel_the_run(nowhere: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def watch(self, _: str, **__: Any) -> Iterator[Message]:
            raise KeyboardInterrupt

    monkeypatch.setattr(Server, "client", lambda _: contextlib.nullcontext(Interrupted()))
    left = nowhere.servo("runs", "watch", "run_x")
    assert (left.returncode, "`servo runs cancel run_x` ends it" in left.stdout) == (130, True)


@pytest.mark.parametrize(("word", "state"), [("approve", "PROMOTED"), ("reject", "REJECTED")])
def test_quarantine_decision_is_sent_to_the_server(
    nowhere: Shop, monkeypatch: pytest.MonkeyPatch, word: str, state: str
) -> None:
    made = materialization_pb2.Materialization(state=f"MATERIALIZATION_STATE_{state}")
    answer = scheduler_data_pb2.ResolveQuarantineResponse(materialization=made)
    server = answering(monkeypatch, ResolveQuarantine=answer)
    assert nowhere.ok("quarantine", word, "V", "--comment", "looked at it") == f"V {state}\n"
    [request] = server.request
    assert (request.materialization_id, request.comment) == ("V", "looked at it")
    assert request.decision == getattr(state_pb2, f"QUARANTINE_DECISION_{word.upper()}")
