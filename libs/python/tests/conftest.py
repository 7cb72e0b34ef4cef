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
def binaries(repository: Path) -> Path:
    return Path(os.environ.get("SERVO_BIN_DIR", repository / "target/debug"))


@pytest.fixture(scope="session")
def mesh(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """One for all tests; each takes a workspace of its own."""
    with started(binaries, tmp_path_factory.mktemp("mesh")) as running:
        yield running


@pytest.fixture(scope="session")
def quick_mesh(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Workers beat every second there, so that silence is noticed soon."""
    beat, lease = "1s", "3s"
    with started(
        binaries,
        tmp_path_factory.mktemp("quick-mesh"),
        SERVO_CALLBACK__HEARTBEAT_INTERVAL=beat,
        SERVO_DISPATCHER__HEARTBEAT_INTERVAL=beat,
        SERVO_DISPATCHER__LEASE_TTL=lease,
        SERVO_SCHEDULER__LEASE_TTL=lease,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def forgetful_mesh(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Signatures end there with the heartbeat timeout that they are for, and a second later at most."""
    beat, grace = "500ms", "500ms"
    with started(
        binaries,
        tmp_path_factory.mktemp("forgetful-mesh"),
        SERVO_CALLBACK__HEARTBEAT_INTERVAL=beat,
        SERVO_CALLBACK__SIGNATURE_GRACE=grace,
        SERVO_DISPATCHER__HEARTBEAT_INTERVAL=beat,
        SERVO_DISPATCHER__SIGNATURE_GRACE=grace,
    ) as running:
        yield running
