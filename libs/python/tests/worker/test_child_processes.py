"""The processes of a child: how they start, end and are killed."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from servo.worker import orphans
from servo.worker.child import Child, ChildDied

from ..waiting import wait_until
from .child_jobs import alive, job, run


@pytest.mark.parametrize(("function", "how"), [("dying", "exit code 9"), ("killed", "signal SIGKILL")])
def test_death_of_a_child_names_the_cause(folder: Path, function: str, how: str) -> None:
    with pytest.raises(ChildDied, match=how):
        run(folder, job(function))


def test_failed_start_leaks_no_file_descriptors(folder: Path) -> None:
    """At every step at which file descriptors run out."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def start(allowed: int) -> Child | OSError:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        try:
            return await Child.start(folder)
        except OSError as error:
            return error
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    async def scenario() -> int:
        before = sorted(map(int, os.listdir("/proc/self/fd")))
        # Each round allows one more.
        for failures, lowest_refused in enumerate(sorted(set(range(100)) - set(before))):
            child = await start(lowest_refused)
            if isinstance(child, Child):
                await child.stop()
                return failures
            assert child.errno == errno.EMFILE
            assert (sorted(map(int, os.listdir("/proc/self/fd"))), orphans.ours) == (before, set())
        raise AssertionError("it should start with so many")

    # Two socket pairs, two pipes, and the pidfd.
    assert asyncio.run(scenario()) >= 9


def test_f05_child_that_ignores_term_is_killed(folder: Path) -> None:
    async def scenario() -> bool:
        child = await Child.start(folder)
        ready = asyncio.Event()
        work = asyncio.create_task(child.run(job("stubborn"), lambda *_: ready.set()))
        await ready.wait()
        await child.stop(grace=0.1)
        with pytest.raises(ChildDied, match="SIGKILL"):
            await work
        return True

    assert asyncio.run(scenario())


ORPHAN = """
import asyncio, sys
from pathlib import Path
from servo.worker.child import Child

async def scenario():
    child = await Child.start(Path(sys.argv[1]))
    job = eval(sys.argv[2])
    await child.run(job, lambda stream, line: print(child._process.pid, flush=True))

asyncio.run(scenario())
"""


def test_children_die_with_their_worker(folder: Path) -> None:
    command = [sys.executable, "-c", ORPHAN, str(folder), repr(job("stubborn"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout
        pid = int(worker.stdout.readline())
        assert alive(pid)
        worker.kill()
    # It ignores TERM and never returns, and there is no worker left to kill it.
    wait_until(lambda: not alive(pid), "the child has ended")


def test_other_processes_of_the_worker_are_not_killed(folder: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        assert run(folder, job("fine"))[0]["outcome"] == "succeeded"
        assert alive(other.pid)
        other.kill()


ADOPTING = """
import asyncio, subprocess, sys
from pathlib import Path
from servo.worker import orphans
from servo.worker.child import Child

async def begun(folder, job):
    child, lines = await Child.start(folder), asyncio.Queue()
    work = child.begin(job, lambda stream, line: lines.put_nowait(line))
    return child, work, await lines.get()

async def scenario(folder, escaping, stubborn):
    orphans.adopt()
    installing = await asyncio.create_subprocess_exec("sleep", "1000")
    other, its_work, _ = await begun(folder, stubborn)
    child, work, pids = await begun(folder, escaping)
    await child.stop()
    assert work.exception()
    while any(Path("/proc", pid).exists() for pid in pids.split()):
        await asyncio.sleep(0.01)
    # Long enough to be looked at once more.
    await asyncio.sleep(0.2)
    assert other.alive and not its_work.done()
    assert installing.returncode is None
    await other.stop()
    installing.kill()
    await installing.wait()

asyncio.run(asyncio.wait_for(scenario(Path(sys.argv[1]), *map(eval, sys.argv[2:])), 20))
"""


def test_f05_escaped_processes_are_killed_and_no_others(folder: Path) -> None:
    """Until the processes are reaped."""
    jobs = [repr(job(name)) for name in ("escaping", "stubborn")]
    subprocess.run([sys.executable, "-c", ADOPTING, str(folder), *jobs], check=True)


@pytest.mark.parametrize(
    ("function", "worn"), [("straying", True), ("careless_parent", True), ("started", False), ("fine", False)]
)
def test_child_with_leftover_processes_is_replaced(folder: Path, function: str, worn: bool) -> None:
    answer, _ = run(folder, job(function))
    assert (answer["outcome"], answer["worn"]) == ("succeeded", worn)


def test_forked_process_ends_with_its_child(folder: Path) -> None:
    async def scenario() -> int:
        child = await Child.start(folder)
        pids: list[int] = []
        with pytest.raises(ChildDied, match="exit code 1"):
            await child.run(job("forking"), lambda _, line: pids.append(int(line)))
        await child.stop()
        return pids[0]

    pid = asyncio.run(scenario())
    wait_until(lambda: not alive(pid), "the kernel has ended the process after its signal")
