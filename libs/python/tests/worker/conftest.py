"""Fixtures of the worker's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from .child_jobs import CODE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the user code of :mod:`tests.worker.child_jobs`."""
    (tmp_path / "work.py").write_text(CODE)
    return tmp_path
