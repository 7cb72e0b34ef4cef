"""Measures how many empty assets per second one worker runs, its own memory, and how long commands
take to start.

``python -m tests.bench_worker BINARIES`` adds its figures to the JSON on standard input. Time is
measured from TriggerRun to the end seen by GetRun, on a mesh of separate processes; children are
reused. Of start times the best of five counts, because all else is noise of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servo import AllPartitions, Client, Run
from servo.build.build import build
from servo.v1 import state_pb2

from .mesh import TENANT, Mesh, mesh

_WORKSPACE = "bench"
_SERVO = str(Path(sys.executable).parent / "servo")
_STARTS = 5
_CODE = """
from servo import Partitions, Static, asset

@asset(namespace="bench", partitions=Partitions(number=Static(*(str(each) for each in range({tasks})))))
def nothing():
    return None
"""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("binaries", type=Path)
    options.add_argument("--tasks", type=int, default=2_000)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--slots", type=int, default=16)
    given = options.parse_args()
    # Reads to the end, because an earlier bench must be over before this one begins.
    earlier = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    figures = json.loads(earlier.splitlines()[-1]) if earlier else {}
    with tempfile.TemporaryDirectory() as folder, mesh(given.binaries, Path(folder) / "mesh") as running:
        figures |= _measure(running, Path(folder), given.tasks, given.repeats, given.slots)
    figures |= _measure_starts()
    print(json.dumps(figures), flush=True)


def _measure(running: Mesh, folder: Path, tasks: int, repeats: int, slots: int) -> dict[str, float]:
    project = folder / "project"
    project.mkdir()
    (project / "nothing.py").write_text(_CODE.format(tasks=tasks))
    built = build(project)
    with running.client(_WORKSPACE) as client, _worker(running, folder / "state", slots) as process:
        client.upload(built.archive, "SOURCE_ARCHIVE")
        client.deploy(built.manifest)
        # The first run also downloads the code and starts the children.
        rates = [_rate(client, tasks) for _ in range(repeats + 1)][1:]
        memory = _own_memory_mb(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0, "the worker did not leave in peace"
    for rate in rates:
        print(f"  python worker  {rate:8.0f} tasks/s", file=sys.stderr)
    print(f"  python worker  {memory:8.1f} MB by itself", file=sys.stderr)
    return {"python_worker_tasks_per_s": round(statistics.median(rates)), "python_worker_pss_mb": round(memory, 1)}


@contextmanager
def _worker(running: Mesh, state: Path, slots: int) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "SERVO_URL": running.url,
        "SERVO_API_KEY": running.api_key,
        "SERVO_TENANT": TENANT,
        "SERVO_CA_FILE": str(running.ca_file),
        "SERVO_SERVER_NAME": "localhost",
    }
    command = [_SERVO, "worker", "--state", str(state), "--workspace", _WORKSPACE, "--slots", str(slots)]
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def _rate(client: Client, tasks: int) -> float:
    began = time.monotonic()
    run = client.trigger(Run("bench.*", partitions=AllPartitions()))
    ended = client.wait(run.run_id)
    took = time.monotonic() - began
    assert ended.state == state_pb2.RUN_STATE_SUCCEEDED, ended
    return tasks / took


def _own_memory_mb(pid: int) -> float:
    """The resident size of the worker process without its children of user code.

    Resident rather than proportional, because children and this bench map the same files and would
    take over a part of their pages.
    """
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the system reports no resident size")


def _measure_starts() -> dict[str, float]:
    bare = _best_ms([sys.executable, "-c", ""])
    imported = _best_ms([sys.executable, "-c", "import servo"]) - bare
    helped_ms = _best_ms([_SERVO, "--help"])
    print(f"  import servo   {imported:8.1f} ms    servo --help {helped_ms:8.1f} ms", file=sys.stderr)
    return {"import_ms": round(imported, 1), "cli_help_ms": round(helped_ms, 1)}


def _best_ms(command: list[str]) -> float:
    def once() -> float:
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - began) * 1000

    return min(once() for _ in range(_STARTS))


if __name__ == "__main__":
    main()
