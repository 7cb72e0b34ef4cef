"""Minimal wheels, so that tests install packages without an index."""

from __future__ import annotations

import zipfile
from pathlib import Path


def wheel(folder: Path, name: str, version: str) -> Path:
    """A package whose module has its version."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f'VERSION = "{version}"\n',
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{each},,\n" for each in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(path, "w") as zipped:
        for each, text in files.items():
            zipped.writestr(each, text)
    return path
