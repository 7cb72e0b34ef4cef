"""Exceptions of user code as structured errors."""

from __future__ import annotations

import pytest

from servo.execute import errors
from servo.execute.errors import describe


def test_a_long_traceback_keeps_its_last_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Part of a line could be part of a secret, which would not be recognized."""
    monkeypatch.setattr(errors, "_TRACEBACK_CHARS_MAX", 100)
    words = "\n".join(["a line that is cut off"] * 100 + ["the secret is hunter2" + "x" * 30, "z" * 60])
    traceback = describe(ValueError(words)).traceback
    assert traceback == "z" * 60 + "\n"


def test_short_traceback_is_kept_whole() -> None:
    assert describe(ValueError("x" * 100_000)).traceback == f"ValueError: {'x' * 100_000}\n"
