"""What several tests need."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no fault of the code.
settings.register_profile("servo", deadline=None)
settings.load_profile("servo")


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[3]
