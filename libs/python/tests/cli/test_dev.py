"""``servo dev`` as users run it: in its own terminal, with commands in another."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servo.dev.binary import NoBinary, standalone
from servo.dev.changes import changed, snapshot

from ..build.test_build import SERVO
from ..waiting import read_until, wait_until
from .shop import CALM_DAY, Shop, new_shop, plain_environment


@pytest.fixture
def binaries(repository: Path) -> Path:
    return Path(os.environ.get("SERVO_BIN_DIR", repository / "target/debug"))


@contextmanager
def dev(shop: Shop, binaries: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**plain_environment(), "SERVO_STANDALONE": str(binaries / "servo-standalone")}
    with subprocess.Popen(
        [SERVO, "dev", *options], cwd=shop.folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


@pytest.mark.mesh
def test_dev_deploys_on_save_and_cleans_up(tmp_path: Path, binaries: Path) -> None:
    shop = new_shop(tmp_path / "shop")
    with dev(shop, binaries) as process:
        read_until(process, "deployed version 1")
        # Commands find the server without configuration.
        assert "SUCCEEDED" in shop.ok("run", "+shop/daily_revenue", "-p", f"day={CALM_DAY}", "--wait")
        shop.change('asset(namespace="shop", partitions=DAYS)', 'asset(namespace="shop", partitions=DAYS, pool="x")')
        shown = read_until(process, "deployed version 2")
        assert "src/shop/assets.py changed\n" in shown
        assert any("~ shop/daily_revenue  (pool" in line for line in shown)
        shop.change("def daily_revenue(", "def daily_revenue((")
        read_until(process, "not deployed")
        second = subprocess.run(
            [SERVO, "dev", "--json"],
            cwd=shop.folder,
            env={**plain_environment(), "SERVO_STANDALONE": str(binaries / "servo-standalone")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (second.returncode, "in use by another Servo" in second.stderr) == (7, True), second.stderr
        process.send_signal(signal.SIGINT)
        read_until(process, "stopped")
        assert process.wait() == 0
    assert not (shop.folder / ".servo/dev.json").exists()
    assert processes_naming(shop.folder) == []


STUBBORN = """
import signal, time
from pathlib import Path
from servo import asset

@asset(retry=1)
def stubborn(context):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path("{begun}").touch()
    while context.attempt == 1:
        time.sleep(1)
"""


@pytest.mark.mesh
def test_interrupted_task_continues_with_the_next_dev(tmp_path: Path, binaries: Path) -> None:
    shop, begun = new_shop(tmp_path / "shop"), tmp_path / "begun"
    (shop.folder / "src/stubborn.py").write_text(STUBBORN.format(begun=begun))
    with dev(shop, binaries) as process:
        read_until(process, "deployed version 1")
        shop.ok("run", "default/stubborn")
        wait_until(begun.exists, "user code has begun")
    # The interrupted attempt was returned, which is not a failure, so the only allowed attempt
    # remains.
    with dev(shop, binaries) as process:
        read_until(process, "nothing changes")
        # The number may be 3, because the claim of an attempt can be lost when Postgres stops.
        assert re.search(r"✓ default/stubborn .* at try [23]\b", shop.ok("runs", "watch", "--timeout", "300"))


@pytest.mark.mesh
def test_dev_announces_itself_as_json_and_ends_with_its_worker(tmp_path: Path, binaries: Path) -> None:
    shop = new_shop(tmp_path / "shop")
    with dev(shop, binaries, "--json", "--workspace", "mine") as process:
        assert process.stdout
        output = json.loads(process.stdout.readline())
        assert (output["workspace"], Path(output["api_key_file"]).exists()) == ("mine", True)
        deployed = json.loads(process.stdout.readline())
        assert deployed["deployment"]["version"] == "1"
        [worker] = processes_naming(f"{shop.folder}/.servo/worker")
        os.kill(worker, signal.SIGKILL)
        assert process.wait() == 7
    assert processes_naming(shop.folder) == []


@pytest.mark.mesh
def test_the_demo_shows_the_difference_a_retry_checks_and_the_table(tmp_path: Path, binaries: Path) -> None:
    done = subprocess.run(
        [SERVO, "demo", "--dir", str(tmp_path / "demo")],
        env={**plain_environment(), "SERVO_STANDALONE": str(binaries / "servo-standalone")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("+ shop/raw_orders", "  ↻ shop/raw_orders", "3 checks passed", "12 succeeded", "product", "coffee"):
        assert words in done.stdout, done.stdout
    assert processes_naming(tmp_path) == []


def processes_naming(folder: Path | str) -> list[int]:
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes()
        # The process ended in the meantime.
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder).encode() in command:
            found.append(int(process.parent.name))
    return found


def test_binary_comes_from_the_environment_or_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "servo-standalone"
    named.touch(mode=0o755)
    monkeypatch.setenv("SERVO_STANDALONE", str(named))
    assert standalone() == named
    monkeypatch.setenv("SERVO_STANDALONE", str(tmp_path / "ghost"))
    with pytest.raises(NoBinary, match="correct or unset it"):
        standalone()
    monkeypatch.delenv("SERVO_STANDALONE")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert standalone() == named


def test_snapshot_sees_changes_and_ignores_caches(tmp_path: Path) -> None:
    for name in ("src/a.py", "src/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    before = snapshot(tmp_path)
    for name in (".servo/x.py", "src/__pycache__/a.py", "venv/pyvenv.cfg", "venv/x.py", "src/a.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    assert snapshot(tmp_path) == before
    (tmp_path / "src/a.py").write_text("22")
    (tmp_path / "src/b.txt").unlink()
    (tmp_path / "src/c.sql").write_text("1")
    names = [Path(each).name for each in changed(before, snapshot(tmp_path))]
    assert names == ["a.py", "b.txt", "c.sql"]
