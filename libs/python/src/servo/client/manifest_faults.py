"""Collects all faults of a manifest, because a refusal carries only the first ones and a response carries all."""

from __future__ import annotations

from dataclasses import replace

from servo.v1 import planner_pb2

from .errors import CallFailed, Violation, failure


def are_truncated(refused: CallFailed) -> bool:
    """Whether there are more faults than the refusal names; it then has a violation without a field."""
    return bool(refused.violations) and not refused.violations[-1].field


def with_all_faults(refused: CallFailed, answer: planner_pb2.DeployResponse) -> CallFailed:
    violations = [Violation(each.field, each.description) for each in answer.faults]
    return failure(replace(refused.details, violations=violations)) if violations else refused
