"""Packages of the extra ``tables``, which the base installation does not have.

DuckDB and pyarrow are large, and a worker or client that handles plain values needs neither. Code that does need one
calls :func:`require` first, so that the error names the command that installs it.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from servo.errors import ServoError

if TYPE_CHECKING:
    from servo.define.asset import Asset

_EXTRA_OF = {"pyarrow": "tables", "duckdb": "tables"}


class PackageMissing(ServoError):
    """An optional package is needed and not installed."""


def require(package: str, purpose: str) -> None:
    """Raises :class:`PackageMissing` if the package is not installed; ``purpose`` begins the message."""
    if importlib.util.find_spec(package) is None:
        raise PackageMissing(f"{purpose} needs {package}, which is not installed: {install_command(package)}")


def install_command(package: str) -> str:
    extra = _EXTRA_OF.get(package)
    return f"pip install 'servo-orchestrator[{extra}]'" if extra else f"pip install {package}"


def missing_extra(error: BaseException) -> str:
    """A remedy to append to the message of a failed import, for packages that an extra installs."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return f": {install_command(package)}" if package in _EXTRA_OF else ""


def missing_tables() -> list[str]:
    """The packages of the extra ``tables`` that are not installed."""
    return [package for package in _EXTRA_OF if importlib.util.find_spec(package) is None]


def require_for_outputs(asset: Asset[..., Any]) -> None:
    """Fails before user code runs if the asset's outputs are stored as Parquet and pyarrow is not installed.

    Parquet is certain when ``io`` says so, or when ``io`` is left out and the function is annotated to return a frame.
    A frame from a function without annotation fails when it is stored.
    """
    from .annotations import returned_frame

    for output in asset.outputs:
        io = output.io or asset.settings.io
        if io == "parquet" or (not io and len(asset.outputs) == 1 and returned_frame(asset.function) is not None):
            require("pyarrow", f"storing `{output.key}` as Parquet")
