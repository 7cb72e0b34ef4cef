"""The generated stubs are current, and importing servo does not load them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def _tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.suffix in {".py", ".pyi"})
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_stubs_are_current(repository: Path, tmp_path: Path) -> None:
    subprocess.run([repository / "scripts/python-stubs", tmp_path], check=True)
    fresh, committed = _tree(tmp_path / "servo/v1"), _tree(repository / "libs/python/src/servo/v1")
    stale = sorted(name for name in fresh.keys() | committed.keys() if fresh.get(name) != committed.get(name))
    assert not stale, f"run `make proto` and commit what changes: {stale}"


def test_importing_servo_does_not_import_grpc() -> None:
    code = "import servo, sys; print([m for m in sys.modules if m.split('.')[0] in ('grpc', 'google')])"
    seen = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert seen.strip() == "[]"
