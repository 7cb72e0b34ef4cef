"""Maps a function's result to the assets that it makes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
    # The items that downstream tasks are mapped over, as JSON texts; None if the asset yields no items.
    items: tuple[str, ...] | None = None


def outputs(asset: Asset[..., Any], answer: Any) -> Outputs:
    """Raises a :class:`Skip` that was returned, so that returning and raising it mean the same."""
    if isinstance(answer, Skip):
        raise answer
    if asset.settings.yields_items:
        items = _items(asset, answer)
        stored = answer.value if isinstance(answer, Items) and answer.value is not None else list(items)
        return Outputs({str(asset.key): stored}, tuple(_json(asset, at, item) for at, item in enumerate(items)))
    if isinstance(answer, Items):
        raise InvalidValue(f"`{asset.key}` returned items; set yields_items=True in its definition")
    if len(asset.outputs) == 1:
        return Outputs({str(asset.key): answer})
    return Outputs(_several(asset, answer))


def _items(asset: Asset[..., Any], answer: Any) -> tuple[Any, ...]:
    if not isinstance(answer, Items | list | tuple | Iterator):
        kind = type(answer).__name__
        raise InvalidValue(f"`{asset.key}` yields items and returned a {kind}; return servo.Items or a list")
    items = tuple(answer)
    if len(items) > MAPPED_ITEMS_PER_TASK_MAX:
        raise InvalidValue(f"`{asset.key}` yielded {len(items)} items; at most {MAPPED_ITEMS_PER_TASK_MAX} are allowed")
    return items


def _json(asset: Asset[..., Any], at: int, item: Any) -> str:
    """The item as it is sent to its task."""
    try:
        return json.dumps(item)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(
            f"item {at} of `{asset.key}` is not JSON ({error}); yield texts, numbers, bools, lists and mappings, "
            "names of files for instance"
        ) from None


def _several(asset: Asset[..., Any], answer: Any) -> dict[str, Any]:
    keys = [str(output.key) for output in asset.outputs]
    if isinstance(answer, Mapping):
        given = {_key(keys, name): value for name, value in answer.items()}
    elif isinstance(answer, Sequence) and not isinstance(answer, str | bytes) and len(answer) == len(keys):
        given = dict(zip(keys, answer, strict=True))
    else:
        given = {}
    if given.keys() != set(keys):
        raise InvalidValue(
            f"the function of `{asset.key}` makes {', '.join(_display_names(keys))}; return a mapping with a value for "
            "each (None where there is nothing), or the values in this order"
        )
    return {key: given[key] for key in keys}


def _key(keys: Sequence[str], name: object) -> object:
    """The only output of this name; an unknown or ambiguous name is returned unchanged."""
    found = [key for key in keys if name in (key, key.rpartition("/")[2])]
    return found[0] if len(found) == 1 else name


def _display_names(keys: Sequence[str]) -> list[str]:
    """Names without namespace where they are unique."""
    names = [key.rpartition("/")[2] for key in keys]
    return [name if names.count(name) == 1 else key for key, name in zip(keys, names, strict=True)]
