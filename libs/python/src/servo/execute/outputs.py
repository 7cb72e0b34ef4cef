"""What a function answered, as values of the assets it makes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servo.define.asset import Asset
from servo.define.results import Items, Skip
from servo.errors import InvalidValue
from servo.model.limits import MAPPED_ITEMS_PER_TASK_MAX


@dataclass(frozen=True, slots=True)
class Outputs:
    # By asset key.
    values: Mapping[str, Any]
    # What a mapped downstream runs over, as JSON texts; None when the asset yields no items.
    items: tuple[str, ...] | None = None


def outputs(asset: Asset[..., Any], answer: Any) -> Outputs:
    """Raises the :class:`Skip` that was answered: it means the same whichever way it leaves the function."""
    if isinstance(answer, Skip):
        raise answer
    if asset.settings.yields_items:
        items = _items(asset, answer)
        stored = answer.value if isinstance(answer, Items) and answer.value is not None else list(items)
        return Outputs({str(asset.key): stored}, tuple(json.dumps(item) for item in items))
    if isinstance(answer, Items):
        raise InvalidValue(f"`{asset.key}` answered items; say yields_items=True in its definition")
    if len(asset.outputs) == 1:
        return Outputs({str(asset.key): answer})
    return Outputs(_several(asset, answer))


def _items(asset: Asset[..., Any], answer: Any) -> tuple[Any, ...]:
    if not isinstance(answer, Items | list | tuple):
        kind = type(answer).__name__
        raise InvalidValue(f"`{asset.key}` yields items and answered a {kind}; answer servo.Items or a list")
    items = tuple(answer)
    if len(items) > MAPPED_ITEMS_PER_TASK_MAX:
        raise InvalidValue(f"`{asset.key}` yielded {len(items)} items; at most {MAPPED_ITEMS_PER_TASK_MAX} are allowed")
    return items


def _several(asset: Asset[..., Any], answer: Any) -> dict[str, Any]:
    names = [output.key.name for output in asset.outputs]
    if isinstance(answer, Mapping):
        given = {key.rpartition("/")[2]: value for key, value in answer.items()}
    elif isinstance(answer, Sequence) and not isinstance(answer, str) and len(answer) == len(names):
        given = dict(zip(names, answer, strict=True))
    else:
        given = {}
    if given.keys() != set(names):
        raise InvalidValue(
            f"the function of `{asset.key}` makes {', '.join(names)}; answer a mapping with a value for each, or the "
            "values in this order"
        )
    return {str(output.key): given[output.key.name] for output in asset.outputs}
