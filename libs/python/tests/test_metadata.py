"""The metadata of the installed package."""

from __future__ import annotations

from importlib.metadata import metadata
from pathlib import Path

from servo import __version__


def test_version_matches_the_package() -> None:
    assert metadata("servo-orchestrator")["Version"] == __version__


def test_license_matches_the_repository(repository: Path) -> None:
    about = metadata("servo-orchestrator")
    assert (about["License-Expression"], about["License-File"]) == ("Apache-2.0", "LICENSE")
    assert (repository / "libs/python/LICENSE").read_bytes() == (repository / "LICENSE").read_bytes()
