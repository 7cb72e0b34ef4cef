"""One virtual environment per list of locked requirements, created once and shared by all code with
the same list.

Code whose requirements the worker's own environment satisfies runs there. Other environments fall
back to the worker's packages for everything that their list does not name, including Servo.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from importlib import metadata
from pathlib import Path

import servo
from servo.build.build import REQUIREMENTS_NAME
from servo.errors import ServoError

_SERVO_PARENT = Path(servo.__file__).resolve().parents[1]
_COMPLETE = "complete"
_INSTALL_SECONDS_MAX = 900.0
_LOOK_AGAIN = 0.2
_LINES_SHOWN_MAX = 15
# Messages of pip for transient failures of network or disk.
_PASSING = re.compile(
    r"NewConnectionError|ConnectTimeout|Read timed out|ReadTimeoutError|Connection (refused|reset|aborted)"
    r"|Temporary failure in name resolution|HTTP error 5\d\d|5\d\d Server Error|IncompleteRead"
    r"|No space left|Disk quota exceeded"
)
# Credentials in the URL of an index.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")


class BadEnvironment(ServoError):
    """The requirements cannot be installed here."""


class EnvironmentUnavailable(ServoError):
    """The requirements could not be installed now; a retry may succeed."""


class Environments:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[Path, str] = {}
        # Environments in progress, shared by all waiters; one waiter's cancellation does not stop
        # them.
        self._making: dict[str, asyncio.Task[str]] = {}

    async def python_for(self, code: Path) -> str:
        """The interpreter for the code in this folder. Raises one of the errors above."""
        # Checked every time, because somebody may clean up the disk.
        if code not in self._found or not Path(self._found[code]).exists():
            file = code / REQUIREMENTS_NAME
            locked = file.read_text() if file.exists() else ""
            self._found[code] = sys.executable if not missing(locked) else await self._made(locked)
        return self._found[code]

    async def _made(self, locked: str) -> str:
        digest = _digest(locked)
        making = self._making.get(digest)
        if making is None:
            making = self._making[digest] = asyncio.create_task(_make(self._folder / digest, locked))
            making.add_done_callback(lambda _: self._making.pop(digest))
        return await asyncio.shield(making)

    async def close(self) -> None:
        for making in self._making.values():
            making.cancel()
        await asyncio.gather(*self._making.values(), return_exceptions=True)


def missing(locked: str) -> list[str]:
    """The requirements that this environment does not satisfy."""
    return [line for line in locked.splitlines() if not _is_here(line)]


def _is_here(line: str) -> bool:
    if ";" in line:
        # A marker may exclude this machine; pip decides that.
        return False
    name, _, version = line.split(" --hash")[0].replace(" ", "").partition("==")
    try:
        return metadata.version(name.partition("[")[0]) == version
    except metadata.PackageNotFoundError:
        return False


def _digest(locked: str) -> str:
    facts = [sys.implementation.cache_tag, sys.prefix, str(_SERVO_PARENT), locked]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


async def _make(folder: Path, locked: str) -> str:
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with _exclusive_lock(folder.with_suffix(".lock")):
        if not ((folder / _COMPLETE).exists() and python.exists()):
            # Left by a process that died halfway, or deleted in part.
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            await _run("-m", "venv", "--without-pip", str(folder))
            (folder / REQUIREMENTS_NAME).write_text(locked)
            await _run(
                *("-m", "pip", "--python", str(python), "install", "--quiet", "--no-input"),
                *("--disable-pip-version-check", "--requirement", str(folder / REQUIREMENTS_NAME)),
            )
            _add_servo(folder)
            (folder / _COMPLETE).touch()
    return str(python)


def _add_servo(folder: Path) -> None:
    """After the installed packages, so that the lock takes precedence."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "lib" / version / "site-packages" / "servo.pth").write_text(f"{_SERVO_PARENT}\n{_packages()}\n")


def _packages() -> str:
    """The folder of the worker's own packages."""
    import sysconfig

    return sysconfig.get_path("purelib")


async def _run(*command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SERVO_API_KEY"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_INSTALL_SECONDS_MAX):
            output, _ = await process.communicate()
    except TimeoutError:
        raise EnvironmentUnavailable(f"its requirements were not installed in {_INSTALL_SECONDS_MAX:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        _refuse(output.decode(errors="replace"))


def _refuse(output: str) -> None:
    lines = [_CREDENTIALS.sub("***@", line) for line in output.splitlines() if line.strip()]
    words = "its requirements cannot be installed here; pip reports:\n" + "\n".join(lines[-_LINES_SHOWN_MAX:])
    raise EnvironmentUnavailable(words) if _PASSING.search(output) else BadEnvironment(words)


@contextlib.asynccontextmanager
async def _exclusive_lock(lock: Path) -> AsyncIterator[None]:
    """A lock between all workers that share the folder."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOOK_AGAIN)
        yield
    finally:
        os.close(handle)
