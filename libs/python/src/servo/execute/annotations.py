"""The kinds of frames that a function's annotations name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from . import tables


def wanted_frame(function: Callable[..., Any], parameter: str) -> tables.Kind | None:
    """The kind of frame that the parameter is annotated with."""
    signature = _signature(function)
    return None if signature is None else tables.kind_of_class(signature.parameters[parameter].annotation)


def returned_frame(function: Callable[..., Any]) -> tables.Kind | None:
    """The kind of frame that the function is annotated to return."""
    signature = _signature(function)
    return None if signature is None else tables.kind_of_class(signature.return_annotation)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function, eval_str=True)
    # Annotations may use names that only a type checker can resolve.
    except Exception:
        return None
