"""Environments by requirements: created once and atomically, with pip's output on failure."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from servo.worker import environments
from servo.worker.environments import BadEnvironment, Environments, EnvironmentUnavailable, missing

from .wheels import wheel


@pytest.fixture(autouse=True)
def no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


def code(tmp_path: Path, name: str, locked: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "requirements.lock").write_text(locked)
    return folder


def get(tmp_path: Path, *folders: Path) -> list[str]:
    async def scenario() -> list[str]:
        made = Environments(tmp_path / "environments")
        return await asyncio.gather(*(made.python_for(folder) for folder in folders))

    return asyncio.run(scenario())


def version_in(python: str, module: str = "tiny") -> str:
    command = [python, "-c", f"import servo, {module}; print({module}.VERSION)"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def test_satisfied_requirements_need_no_environment() -> None:
    here = f"pytest=={metadata.version('pytest')} --hash=sha256:aa\n"
    assert missing("") == missing(here) == []
    assert missing(f"{here}pytest==1.0\nnot-here==1\n") == ["pytest==1.0", "not-here==1"]


def test_environments_of_two_versions_coexist(tmp_path: Path, no_index: Path) -> None:
    for version in ("1.0", "2.0"):
        wheel(no_index, "tiny", version)
    old, new = code(tmp_path, "old", "tiny==1.0\n"), code(tmp_path, "new", "tiny==2.0\n")
    same, bare = code(tmp_path, "same", "tiny==1.0\n"), code(tmp_path, "bare", "")
    pythons = get(tmp_path, old, new, same, bare)
    assert [version_in(python) for python in pythons[:2]] == ["1.0", "2.0"]
    assert (pythons[2], pythons[3]) == (pythons[0], sys.executable)
    # Another process finds the environment; nothing is installed again.
    (no_index / "tiny-1.0-py3-none-any.whl").unlink()
    assert get(tmp_path, old) == [pythons[0]]


def test_locked_version_takes_precedence_over_the_workers(tmp_path: Path, no_index: Path) -> None:
    wheel(no_index, "rich", "0.0.1")
    (python,) = get(tmp_path, code(tmp_path, "own", "rich==0.0.1\n"))
    assert version_in(python, "rich") == "0.0.1"


def test_incomplete_environment_is_recreated(tmp_path: Path, no_index: Path) -> None:
    wheel(no_index, "tiny", "1.0")
    folder = code(tmp_path, "old", "tiny==1.0\n")
    (python,) = get(tmp_path, folder)
    home = Path(python).parents[1]
    (home / "complete").unlink()
    (home / "bin" / "python").unlink()
    assert get(tmp_path, folder) == [python]
    assert version_in(python) == "1.0"


@pytest.mark.parametrize("deleted", ["", "bin"])
def test_deleted_environment_is_recreated(tmp_path: Path, no_index: Path, deleted: str) -> None:
    wheel(no_index, "tiny", "1.0")
    folder = code(tmp_path, "old", "tiny==1.0\n")

    async def scenario() -> tuple[str, str]:
        made = Environments(tmp_path / "environments")
        python = await made.python_for(folder)
        shutil.rmtree(Path(python).parents[1] / deleted)
        return python, await made.python_for(folder)

    before, after = asyncio.run(scenario())
    assert (before, version_in(after)) == (after, "1.0")


def test_concurrent_processes_create_one_environment(tmp_path: Path, no_index: Path) -> None:
    wheel(no_index, "tiny", "1.0")
    folder = code(tmp_path, "old", "tiny==1.0\n")
    script = (
        "import asyncio, sys; from pathlib import Path; from servo.worker.environments import Environments; "
        "print(asyncio.run(Environments(Path(sys.argv[1])).python_for(Path(sys.argv[2]))))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "environments"), str(folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    (python,) = {process.communicate()[0].strip() for process in running}
    assert version_in(python) == "1.0"


def test_failed_installation_shows_pips_output(tmp_path: Path) -> None:
    folder = code(tmp_path, "ghost", "ghost==9.9\n")
    with pytest.raises(BadEnvironment, match=r"(?s)cannot be installed here; pip reports:.*ghost==9\.9"):
        get(tmp_path, folder)


def test_network_failure_is_transient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:pa55word@127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(EnvironmentUnavailable) as raised:
        get(tmp_path, code(tmp_path, "ghost", "ghost==9.9\n"))
    assert "pa55word" not in str(raised.value)


def test_full_disk_is_transient() -> None:
    with pytest.raises(EnvironmentUnavailable, match="No space left"):
        environments._refuse("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")


def test_slow_installation_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_INSTALL_SECONDS_MAX", 0.0)
    with pytest.raises(EnvironmentUnavailable, match="were not installed in 0 s"):
        get(tmp_path, code(tmp_path, "ghost", "ghost==9.9\n"))


def test_cancelled_waiter_does_not_stop_the_installation(tmp_path: Path, no_index: Path) -> None:
    wheel(no_index, "tiny", "1.0")
    folder = code(tmp_path, "old", "tiny==1.0\n")

    async def scenario() -> str:
        made = Environments(tmp_path / "environments")
        first, second = (asyncio.create_task(made.python_for(folder)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert version_in(asyncio.run(scenario())) == "1.0"
