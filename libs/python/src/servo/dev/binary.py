"""Finds the server's binary: part of the wheel, or built in a checkout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from servo.errors import ServoError

NAME = "servo-standalone"
VARIABLE = "SERVO_STANDALONE"
_PACKAGE = Path(__file__).resolve().parent.parent


class NoBinary(ServoError):
    """There is no server binary to start."""


def standalone() -> Path:
    named = os.environ.get(VARIABLE)
    if named and not os.access(named, os.X_OK):
        raise NoBinary(f"{VARIABLE} names {named}, which cannot be run: correct or unset it")
    for found in (_PACKAGE / "bin" / NAME, named, shutil.which(NAME), *_built()):
        if found and os.access(found, os.X_OK):
            return Path(found)
    raise NoBinary(
        f"there is no {NAME}: install a wheel that contains it (`make wheel` builds one), build it in a checkout with "
        f"`cargo build --workspace --bins`, or set {VARIABLE} to its path"
    )


def _built() -> list[Path]:
    """Binaries of the checkout that contains this package, newest first."""
    targets = [parent / "target" for parent in _PACKAGE.parents if (parent / "Cargo.toml").is_file()]
    built = [target / profile / NAME for target in targets for profile in ("debug", "release")]
    return sorted((path for path in built if path.is_file()), key=lambda path: -path.stat().st_mtime)
