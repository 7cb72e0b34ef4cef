"""What a function says about its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from . import tables


def wanted_frame(function: Callable[..., Any], parameter: str) -> tables.Kind | None:
    """The kind of frame that the parameter is annotated with."""
    try:
        annotation = inspect.signature(function, eval_str=True).parameters[parameter].annotation
    # Annotations may name what only a type checker knows.
    except Exception:
        return None
    return tables.kind_of_class(annotation)
