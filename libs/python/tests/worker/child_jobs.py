"""User code and helpers for tests that run it in a child process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from servo.v1 import quality_pb2
from servo.worker.checks import to_job
from servo.worker.child import Child

T = TypeVar("T")


CODE = """
import json, os, signal, subprocess, sys, time
import servo
from servo import asset, checks, mapped, Items

@asset
def fine(context):
    print("hello", context.partition, context.config["rate"])
    print("oops", file=sys.stderr)

@asset(yields_items=True)
def files():
    return Items(["a", {"b": 1}])

@asset(deps={"file": mapped(files)})
def parsed(file):
    if file != {"b": 1}:
        raise ValueError(file)

@asset(may_skip=True)
def skipping():
    servo.skip("nothing new")

@asset(retry_on=[LookupError])
def failing():
    return {}["ghost"]

@asset
def leaving():
    sys.exit(3)

@asset
def dying():
    os._exit(9)

@asset
def killed():
    os.kill(os.getpid(), signal.SIGKILL)

@asset
def loud():
    for _ in range(100):
        sys.stdout.write("x" * 1_000_000 + "\\n")

@asset
def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    while True:
        time.sleep(1)

@asset
def forking():
    child = subprocess.Popen(["sleep", "1000"])
    print(child.pid, flush=True)
    os._exit(1)

@asset
def escaping():
    # Neither its group nor its environment shows whose process it is; the same holds for what it starts.
    clean = {"PATH": os.environ["PATH"]}
    subprocess.Popen(["sh", "-c", "sleep 1000 & echo $! $$; wait"], env=clean, start_new_session=True)
    time.sleep(1000)

@asset
def straying():
    subprocess.Popen(["sleep", "1000"])

@asset
def careless_parent():
    if os.fork() == 0:
        os._exit(0)
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)

@asset
def unsendable():
    class Odd(Exception):
        def __reduce__(self):
            raise RuntimeError
        def __str__(self):
            return "odd \\ud800"
    raise Odd

@asset(yields_items=True)
def strange_items():
    return [object()]

@asset
def checked():
    print("ran")
    return [{"id": 1}]

@servo.check("default/checked", severity="critical")
def hangs(value):
    time.sleep(1000)

@servo.check("default/checked")
def careless(value):
    return servo.CheckOutcome(True, "fine", metadata=None)

class Undecided:
    def __bool__(self):
        raise ValueError("neither yes nor no")

@servo.check("default/checked", severity="critical")
def undecided(value):
    return servo.CheckOutcome(Undecided())

@asset
def closing(context):
    print("last words")
    getattr(sys, context.config["stream"]).close()
    context.log.warning("logged")
    return 1

@asset
def replacing():
    sys.stdout = sys.stderr = None
    return 1

@servo.check("default/parsed", phase="pre")
def is_text(file):
    return isinstance(file, str)

@asset
def reading(fine):
    pass

@asset
def joined(parsed):
    print(parsed)

@asset
def traced():
    print(os.environ.get("TRACEPARENT"))

@asset
def large():
    return (b"x" * 200_000_000).count(b"y") or None

@asset
def started():
    spin = "import time; end = time.process_time() + 0.3\\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)

@asset
def homeless():
    return 1

class Dying:
    # Stores its data; for the value 1 the process dies before it writes the marker.
    def store(self, value, place):
        place.create("data", str(value).encode())
        if value == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    def load(self, place):
        with place.reading("data") as file:
            return int(file.read())

@servo.multi_asset(outputs=["low", "high"])
def halves():
    return [1], []

class Feed:
    def load(self, partition):
        return f"the feed of {partition}"

class Tables:
    def load(self, partition):
        import pyarrow
        return pyarrow.table({"a": [1]})

feed = servo.source("feed", io=Feed)
table = servo.source("table", io="work.Tables")
bare = servo.source("bare")

@asset
def fed(feed):
    print(feed)

@asset(deps={"days": servo.In("default/feed", mapping={"day": servo.Window(-1, 0)})})
def fed_by_days(days):
    for day, value in days.items():
        print(day, "->", value)

@asset
def framed(table: "pandas.DataFrame"):
    print(type(table).__name__, list(table["a"]))

import pandas

@asset
def unfed(bare):
    pass

def plainly():
    print("plainly")

renamed = asset(name="renamed")(plainly)

class Denied:
    def store(self, value, place):
        raise PermissionError("the database says no")

    def load(self, place):
        raise PermissionError("nor may you look")

@asset(io=Denied, retry=servo.Retry(attempts=5, never_on=(PermissionError,)))
def denied():
    return 1

class Readable(Denied):
    def store(self, value, place):
        place.create("data", b"1")

@asset(io=Readable)
def readable():
    return 1

@asset(retry=servo.Retry(attempts=5, never_on=(PermissionError,)))
def looking(readable):
    pass

@asset(io=Dying)
def stored_by_class():
    return 2

@asset(io="work.Dying")
def stored(context):
    return context.attempt

@asset
def after(stored):
    print("got", stored)
"""


def job(function: str, **more: Any) -> dict[str, Any]:
    return {
        "module": "work",
        "function": function,
        "inputs": [],
        "output_uri": "",
        "item_json": "",
        "asset_key": f"default/{function}",
        "partition": "day=d:2026-01-31",
        "run_id": "run_x",
        "attempt_id": "A",
        "attempt": 1,
        "idempotency_key": "k",
        "fencing_token": 1,
        "map_index": None,
        "config": {"rate": 0.5},
        "secrets": {},
        "quarantine": False,
        "checks": [],
        "previous": "",
        "trace": {},
        **more,
    }


def input_of(parameter: str, *versions: list[str], asset: str = "") -> dict[str, Any]:
    asset_key = asset or f"default/{parameter}"
    return {"asset_key": asset_key, "parameter": parameter, "versions": list(versions), "mapped": False, "shape": 0}


FILE = input_of("file", asset="default/files")


def with_child(folder: Path, use: Callable[[Child], Awaitable[T]]) -> T:
    async def scenario() -> T:
        child = await Child.start(folder)
        try:
            return await asyncio.wait_for(use(child), 60)
        finally:
            await child.stop()

    return asyncio.run(scenario())


def silent(stream: str, line: str) -> None:
    """Ignores a line."""
    assert stream
    assert line is not None


def take_into(lines: list[str], stream: str, line: str) -> None:
    assert stream
    lines.append(line)


def run(folder: Path, given: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    lines: list[tuple[str, str]] = []

    async def use(child: Child) -> dict[str, Any]:
        places = {"output_uri": f"file://{folder}/out/"}
        return await child.run(given | places, lambda stream, line: lines.append((stream, line)))

    return with_child(folder, use), lines


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def definition(name: str, severity: str = "", phase: str = "", **spec: Any) -> dict[str, Any]:
    """The check as in the deployment."""
    message = quality_pb2.CheckDefinition(
        name=name,
        severity=f"SEVERITY_{severity.upper()}" if severity else None,
        phase=f"CHECK_PHASE_{phase.upper()}" if phase else None,
        **spec,
    )
    return to_job(message)


def code_check(function: str) -> quality_pb2.CodeCheck:
    return quality_pb2.CodeCheck(module="work", function=function)


ROWS = quality_pb2.RowCountCheck(min=2)
