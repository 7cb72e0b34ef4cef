"""Code by digest: nothing is unpacked before it is verified, and never partially."""

from __future__ import annotations

import asyncio
import hashlib
import io
import shutil
import zipfile
from pathlib import Path

import pytest

from servo.build.archive import archive
from servo.worker.code import BadCode, CodeCache


def get(folder: Path, content: bytes, digest: str = "") -> tuple[Path, int]:
    """Requests the code three times concurrently; returns the folder and the number of downloads."""
    downloads = 0

    async def download(workspace: str, digest: str) -> bytes:
        nonlocal downloads
        assert (workspace, len(digest)) == ("prod", 64)
        downloads += 1
        await asyncio.sleep(0)
        return content

    async def scenario() -> list[Path]:
        cache = CodeCache(folder, download)
        wanted = digest or hashlib.sha256(content).hexdigest()
        return await asyncio.gather(*(cache.get("prod", wanted) for _ in range(3)))

    (found,) = set(asyncio.run(scenario()))
    return found, downloads


def test_code_is_downloaded_once_per_digest(tmp_path: Path) -> None:
    content = archive({"shop/assets.py": b"x = 1\n", "requirements.lock": b""})
    found, downloads = get(tmp_path, content)
    assert (found.name, downloads) == (hashlib.sha256(content).hexdigest(), 1)
    assert (found / "shop/assets.py").read_text() == "x = 1\n"
    assert get(tmp_path, content) == (found, 0)
    other, _ = get(tmp_path, archive({"shop/assets.py": b"x = 2\n"}))
    assert sorted(tmp_path.iterdir()) == sorted([found, other])


def test_deleted_code_is_downloaded_again(tmp_path: Path) -> None:
    content = archive({"a.py": b"x = 1\n"})

    async def download(*_: str) -> bytes:
        return content

    async def scenario() -> str:
        cache = CodeCache(tmp_path, download)
        digest = hashlib.sha256(content).hexdigest()
        shutil.rmtree(await cache.get("prod", digest))
        return (await cache.get("prod", digest) / "a.py").read_text()

    assert asyncio.run(scenario()) == "x = 1\n"


def test_a_wrong_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCode, match="it is not run"):
        get(tmp_path, archive({"a.py": b""}), digest="0" * 64)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../a.py", "/a.py", "x/../../a.py", "..\\a.py"])
def test_archives_with_outside_paths_are_refused(tmp_path: Path, name: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr(name, "x")
    with pytest.raises(BadCode, match="leads out of its folder"):
        get(tmp_path, buffer.getvalue())
    assert list(tmp_path.iterdir()) == []


def test_non_zip_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCode, match="is not a zip"):
        get(tmp_path, b"hello")
