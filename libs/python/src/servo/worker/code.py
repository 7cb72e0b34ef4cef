"""User code by digest: downloaded once, verified before anything is imported; versions coexist."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath

from servo.errors import ServoError

_UNPACKED_BYTES_MAX = 256 * 1024 * 1024


class BadCode(ServoError):
    """An archive that must not be run, or cannot be run here."""


class CodeCache:
    def __init__(self, folder: Path, download: Callable[[str, str], Awaitable[bytes]]) -> None:
        """``download`` gets a workspace and a digest."""
        self._folder = folder
        self._download = download
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, workspace: str, digest: str) -> Path:
        """The folder with the unpacked sources, created atomically."""
        folder = self._folder / digest
        # Checked every time, because somebody may clean up the disk.
        if folder.exists():
            return folder
        async with self._locks.setdefault(digest, asyncio.Lock()):
            if not folder.exists():
                content = await self._download(workspace, digest)
                await asyncio.to_thread(_unpack, content, digest, folder)
        return folder


def _unpack(content: bytes, digest: str, folder: Path) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise BadCode(f"the archive has the sha256 {found}, not {digest}; it is not run")
    partial = folder.with_name(f".{digest}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            _check(zipped)
            zipped.extractall(partial)
        partial.replace(folder)
    except zipfile.BadZipFile as error:
        raise BadCode(f"the archive {digest} is not a zip: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check(zipped: zipfile.ZipFile) -> None:
    size = sum(entry.file_size for entry in zipped.infolist())
    if size > _UNPACKED_BYTES_MAX:
        raise BadCode(f"the archive unpacks to {size} bytes, more than {_UNPACKED_BYTES_MAX}")
    for entry in zipped.infolist():
        path = PurePosixPath(entry.filename)
        is_link = entry.external_attr >> 28 == 0xA
        if path.is_absolute() or ".." in path.parts or "\\" in entry.filename or is_link:
            raise BadCode(f"the archive holds `{entry.filename}`, which leads out of its folder")
