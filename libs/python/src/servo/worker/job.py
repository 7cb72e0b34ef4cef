"""The job that a child process gets for an attempt."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from servo.v1 import common_pb2, worker_pb2

from . import checks


def job_of(
    envelope: worker_pb2.TaskEnvelope, inputs: Iterable[worker_pb2.ResolvedInput], secrets: dict[str, str]
) -> dict[str, Any]:
    config = {**_json(envelope.asset_config_json), **_json(envelope.run_config_json)}
    return {
        "module": envelope.code.entry_point.module,
        "function": envelope.code.entry_point.function,
        "inputs": [
            {
                "asset_key": each.asset_key,
                "parameter": each.parameter,
                "versions": [[v.partition_key, v.materialization_id, v.uri] for v in each.versions],
                "mapped": each.mapped,
                "shape": each.shape,
            }
            for each in inputs
        ],
        "output_uri": envelope.output_uri,
        "item_json": envelope.item_json,
        "asset_key": envelope.asset_key,
        "partition": envelope.partition_key,
        "run_id": envelope.run_id,
        "attempt_id": envelope.attempt_id,
        "attempt": envelope.attempt,
        "idempotency_key": envelope.idempotency_key,
        "fencing_token": envelope.fencing_token,
        "map_index": envelope.task.map_index if envelope.task.HasField("map_index") else None,
        "config": config,
        "secrets": secrets,
        "quarantine": envelope.quarantine,
        "checks": [checks.to_job(check) for check in envelope.checks],
        # The location of the previous version; empty without one, or if no check compares with
        # it.
        "previous": envelope.previous.uri,
        "trace": _trace(envelope.trace),
    }


def _trace(trace: common_pb2.TraceContext) -> dict[str, str]:
    """As environment variables with OpenTelemetry's names."""
    named = {"TRACEPARENT": trace.traceparent, "TRACESTATE": trace.tracestate}
    return {name: value for name, value in named.items() if value}


def _json(text: str) -> dict[str, Any]:
    read: Any = json.loads(text) if text else {}
    return read if isinstance(read, dict) else {"config": read}
