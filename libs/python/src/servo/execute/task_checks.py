"""The checks of a task: those of its asset, and those of its further outputs.

A task has one list of checks. The check of a further output has the output's name and a dot as
prefix, as in ``high.row_count``, by which the output is found when the check runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from servo.define.asset import Asset, Output
from servo.define.checks import Check, CheckFunction, RowCount
from servo.define.validation import listed
from servo.errors import InvalidValue


def attached(functions: Iterable[CheckFunction[..., Any]]) -> dict[str, list[Check]]:
    """Checks by the key of their target asset."""
    found: dict[str, list[Check]] = {}
    for function in functions:
        for target in function.targets:
            found.setdefault(target, []).append(function.check)
    return found


def checks_of(asset: Asset[..., Any], others: Mapping[str, Sequence[Check]]) -> list[Check]:
    """``others`` are the attached checks."""
    first = asset.outputs[0]
    own = _joined([*_listed(asset.settings.checks), *_listed(first.checks)], others.get(str(asset.key), ()))
    for output in asset.outputs[1:]:
        own += [_named(check, output) for check in _joined(_listed(output.checks), others.get(str(output.key), ()))]
    return own


def checked_output(asset: Asset[..., Any], check: Check) -> str:
    """The key of the output that a check is about."""
    name, dot, _ = check.name.partition(".")
    further = {output.key.name: str(output.key) for output in asset.outputs[1:]}
    return further.get(name, str(asset.key)) if dot else str(asset.key)


def _listed(given: object) -> tuple[Check | CheckFunction[..., Any], ...]:
    return listed("checks", given, (Check, CheckFunction), "checks and functions with @check")


def _joined(given: Iterable[Check | CheckFunction[..., Any]], others: Iterable[Check]) -> list[Check]:
    """A check that is both listed and attached counts once."""
    own = [each.check if isinstance(each, CheckFunction) else each for each in given]
    return [*own, *(each for each in others if each not in own)]


def _named(check: Check, output: Output) -> Check:
    what = f"the check `{check.name}` of the output `{output.key.name}`"
    if check.phase == "pre":
        raise InvalidValue(f"{what} checks inputs (phase pre), which are the function's; name it in checks=[…] there")
    if isinstance(check.spec, RowCount) and check.spec.share_of_previous_ppm is not None:
        raise InvalidValue(f"{what} compares with the version before, which only a task's first output does")
    return replace(check, name=f"{output.key.name}.{check.name}")
