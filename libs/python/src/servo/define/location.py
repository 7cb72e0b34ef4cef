"""Source locations of definitions, for error messages with ``file:line``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Location(NamedTuple):
    file: str
    line: int

    def __str__(self) -> str:
        relative = os.path.relpath(self.file)
        return f"{self.file if relative.startswith('..') else relative}:{self.line}"


def of_function(function: Callable[..., Any]) -> Location:
    code = getattr(function, "__code__", None)
    if code is None:
        return of_caller()
    return Location(code.co_filename, code.co_firstlineno)


def of_caller() -> Location:
    """The nearest line outside this package and outside generated ``__init__`` methods of dataclasses."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, "<string>")):
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno)
