"""What several tests need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from .mesh import Mesh
from .mesh import mesh as started

# A slow machine is no fault of the code.
settings.register_profile("servo", deadline=None)
settings.load_profile("servo")


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def mesh(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """One for all tests; each takes a workspace of its own."""
    binaries = Path(os.environ.get("SERVO_BIN_DIR", repository / "target/debug"))
    with started(binaries, tmp_path_factory.mktemp("mesh")) as running:
        yield running
