"""The metadata of the installed package."""

from __future__ import annotations

from importlib.metadata import metadata
from pathlib import Path

from servo import __version__


def test_the_version_is_the_packages() -> None:
    assert metadata("servo-orchestrator")["Version"] == __version__


def test_the_license_is_named_and_is_the_repositorys(repository: Path) -> None:
    about = metadata("servo-orchestrator")
    assert (about["License-Expression"], about["License-File"]) == ("Apache-2.0", "LICENSE")
    assert (repository / "libs/python/LICENSE").read_bytes() == (repository / "LICENSE").read_bytes()
