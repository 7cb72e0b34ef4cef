"""Fixtures and settings of all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from .mesh import Mesh
from .mesh import mesh as started

# Examples may be slow on a busy machine.
settings.register_profile("servo", deadline=None)
settings.load_profile("servo")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # With `-n 2` all tests of the mesh run in one process, because each process would start meshes of its own.
        if item.get_closest_marker("mesh"):
            item.add_marker(pytest.mark.xdist_group("mesh"))
        # The long variants take as long as their settings say.
        if os.environ.get("SERVO_FULL"):
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def binaries(repository: Path) -> Path:
    return Path(os.environ.get("SERVO_BIN_DIR", repository / "target/debug"))


@pytest.fixture(scope="session")
def mesh(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """One mesh for all tests; each test uses its own workspace."""
    with started(binaries, tmp_path_factory.mktemp("mesh")) as running:
        yield running


@pytest.fixture(scope="session")
def quick_mesh(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """A mesh with heartbeats every second, where lost workers are detected soon."""
    beat, lease = "1s", "3s"
    with started(
        binaries,
        tmp_path_factory.mktemp("quick-mesh"),
        SERVO_ATTEMPTS__HEARTBEAT_INTERVAL=beat,
        SERVO_DISPATCHER__LEASE_TTL=lease,
        SERVO_SCHEDULER__LEASE_TTL=lease,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def forgetful_mesh(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """A mesh whose signatures expire at most one second after the heartbeat timeout that they cover."""
    beat, grace = "500ms", "500ms"
    with started(
        binaries,
        tmp_path_factory.mktemp("forgetful-mesh"),
        SERVO_ATTEMPTS__HEARTBEAT_INTERVAL=beat,
        SERVO_ATTEMPTS__SIGNATURE_GRACE=grace,
    ) as running:
        yield running
