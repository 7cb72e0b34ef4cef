"""User code in a process of its own, with everything it may do to itself."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from servo.data.commit import OutputIdentity, commit
from servo.data.folders import open_folder
from servo.v1 import quality_pb2
from servo.worker import orphans
from servo.worker.checks import to_job
from servo.worker.child import Child, ChildDied

from ..waiting import wait_until

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
    # Neither in the group nor by its environment can it be told whose it is; nor can what it starts itself.
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
    # Stores its data and dies before the marker, unless it is told to live.
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work.py").write_text(CODE)
    return tmp_path


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


def told_input(parameter: str, *versions: list[str], asset: str = "") -> dict[str, Any]:
    asset_key = asset or f"default/{parameter}"
    return {"asset_key": asset_key, "parameter": parameter, "versions": list(versions), "mapped": False, "shape": 0}


FILE = told_input("file", asset="default/files")


def with_child(folder: Path, use: Callable[[Child], Awaitable[T]]) -> T:
    async def story() -> T:
        child = await Child.start(folder)
        try:
            return await asyncio.wait_for(use(child), 60)
        finally:
            await child.stop()

    return asyncio.run(story())


def silent(stream: str, line: str) -> None:
    """Takes lines that nobody looks at."""
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


def test_what_is_printed_and_used_is_told(folder: Path) -> None:
    answer, lines = run(folder, job("fine"))
    assert (answer["outcome"], answer["items"]) == ("succeeded", None)
    assert answer["usage"]["memory_peak_bytes"] > 1_000_000
    assert sorted(lines) == [("STDERR", "oops"), ("STDOUT", "hello day=d:2026-01-31 0.5")]


def test_one_child_runs_many_jobs(folder: Path) -> None:
    async def use(child: Child) -> list[str]:
        return [(await child.run(job("fine"), silent))["outcome"] for _ in range(50)]

    assert with_child(folder, use) == ["succeeded"] * 50


def test_what_a_job_prints_last_is_its_own(folder: Path) -> None:
    """Its lines are redacted by its secrets, and shown under its name."""

    async def use(child: Child) -> list[list[str]]:
        printed: list[list[str]] = [[] for _ in range(50)]
        for number, lines in enumerate(printed):
            day = f"day=d:2026-01-{number % 28 + 1:02}"
            await child.run(job("fine", partition=day), partial(take_into, lines))
        return printed

    for number, lines in enumerate(with_child(folder, use)):
        assert sorted(lines) == [f"hello day=d:2026-01-{number % 28 + 1:02} 0.5", "oops"]


def test_a_source_is_loaded_by_its_io(folder: Path) -> None:
    """The server names its partitions and no version."""
    told = told_input("feed", ["day=d:2026-01-31", "", ""])
    assert run(folder, job("fed", inputs=[told]))[1] == [("STDOUT", "the feed of day=d:2026-01-31")]
    assert run(folder, job("fed", inputs=[told_input("feed")], partition=""))[1] == [("STDOUT", "the feed of None")]
    days = told_input("days", ["day=d:2026-01-30", "", ""], ["day=d:2026-01-31", "", ""], asset="default/feed")
    assert [line for _, line in run(folder, job("fed_by_days", inputs=[days]))[1]] == [
        "day=d:2026-01-30 -> the feed of day=d:2026-01-30",
        "day=d:2026-01-31 -> the feed of day=d:2026-01-31",
    ]
    assert run(folder, job("framed", inputs=[told_input("table")]))[1] == [("STDOUT", "DataFrame [1]")]
    (answer, _) = run(folder, job("unfed", inputs=[told_input("bare")]))
    assert answer["error"]["category"] == "INPUT"


def test_a_check_of_a_further_output_looks_at_that(folder: Path) -> None:
    rows = [quality_pb2.CheckDefinition(name=name, row_count={"min": 1}) for name in ("row_count", "high.row_count")]
    answer, _ = run(folder, job("halves", checks=[to_job(each) for each in rows]))
    assert [(each["name"], each["passed"]) for each in answer["checks"]] == [
        ("row_count", True),
        ("high.row_count", False),
    ]


def test_an_asset_has_the_name_that_the_module_gives_it(folder: Path) -> None:
    answer, lines = run(folder, job("renamed"))
    assert (answer["outcome"], lines) == ("succeeded", [("STDOUT", "plainly")])


def test_a_class_is_an_io(folder: Path) -> None:
    (output,) = run(folder, job("stored_by_class"))[0]["outputs"]
    assert output["metadata"] == {"format": "work.Dying"}


def test_errors_of_an_io_of_the_user_are_errors_of_user_code(folder: Path) -> None:
    """With their place, and with the rules for another try; as without a server."""
    (output,) = run(folder, job("readable"))[0]["outputs"]
    (folder / "out").rename(folder / "kept")
    version = ["day=d:2026-01-31", "A", output["uri"].replace("/out/", "/kept/")]
    for given, line in [
        (job("denied"), 'raise PermissionError("the database says no")'),
        (job("looking", inputs=[told_input("readable", version)]), 'raise PermissionError("nor may you look")'),
    ]:
        error = run(folder, given)[0]["error"]
        assert (error["category"], error["type"], error["retriable"]) == ("USER_CODE", "PermissionError", False)
        file, _, number = error["location"].rpartition(":")
        assert (file, CODE.splitlines()[int(number) - 1].strip()) == (str(folder / "work.py"), line)


def test_errors_of_our_own_place_are_no_errors_of_user_code(folder: Path) -> None:
    (folder / "out").touch()
    error = run(folder, job("readable"))[0]["error"]
    assert (error["category"], error["retriable"]) == ("INFRASTRUCTURE", None)
    assert "cannot be written" in error["message"]


def test_items_go_out_and_come_in(folder: Path) -> None:
    assert run(folder, job("files"))[0]["items"] == ['"a"', '{"b": 1}']
    assert run(folder, job("parsed", inputs=[FILE], item_json='{"b": 1}'))[0]["outcome"] == "succeeded"


def test_skips_are_no_failures(folder: Path) -> None:
    records: list[str] = []

    async def use(child: Child) -> dict[str, Any]:
        return await child.begin(job("skipping"), silent, lambda record: records.append(record["text"]))

    answer = with_child(folder, use)
    assert (answer["outcome"], answer["reason"]) == ("skipped", "nothing new")
    assert records == ["skipped: nothing new"]


@pytest.mark.parametrize(
    ("function", "category", "kind", "part"),
    [
        ("failing", "USER_CODE", "KeyError", "ghost"),
        ("leaving", "USER_CODE", "SystemExit", "3"),
        ("unsendable", "USER_CODE", "Odd", "odd"),
        ("strange_items", "USER_CODE", "InvalidValue", "not JSON serializable"),
        ("ghost", "CONFIGURATION", "CodeMissing", "is no asset in this version"),
        ("reading", "INPUT", "InputMissing", "`default/fine` has no version for the parameter `fine`; materialize it"),
        ("homeless", "CONFIGURATION", "BadFolder", "`` is no place to keep data: set output_base of dispatcher and"),
    ],
)
def test_failures_are_told_and_the_child_goes_on(
    folder: Path, function: str, category: str, kind: str, part: str
) -> None:
    inputs = [told_input("fine")] if function == "reading" else []

    async def use(child: Child) -> tuple[dict[str, Any], str]:
        failed = await child.run(job(function, inputs=inputs), silent)
        return failed, (await child.run(job("fine"), silent))["outcome"]

    answer, after = with_child(folder, use)
    error = answer["error"]
    assert (answer["outcome"], error["category"], error["type"], after) == ("failed", category, kind, "succeeded")
    assert part in error["message"]


def test_errors_know_their_place_and_their_policy(folder: Path) -> None:
    error = run(folder, job("failing"))[0]["error"]
    assert error["retriable"] is True
    file, _, line = error["location"].rpartition(":")
    assert file.endswith("work.py")
    assert (folder / "work.py").read_text().splitlines()[int(line) - 1] == '    return {}["ghost"]'


def definition(name: str, severity: str = "", phase: str = "", **spec: Any) -> dict[str, Any]:
    """As the deployment says it."""
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


def test_checks_that_the_deployment_names_are_run_whatever_the_code_says(folder: Path) -> None:
    given = [
        definition("rows", "critical", row_count=ROWS),
        definition("no_ids", sql=quality_pb2.SqlCheck(query="SELECT id FROM output")),
        definition("is", "info", schema=quality_pb2.SchemaCheck(columns=[{"name": "id", "type": "int64"}])),
    ]
    answer, _ = run(folder, job("checked", checks=given))
    found = [(each["name"], each["passed"], each["severity"], each["message"]) for each in answer["checks"]]
    assert found == [
        ("rows", False, "critical", "has 1 row"),
        ("no_ids", False, "error", "1 row, the first is (1,)"),
        ("is", True, "info", ""),
    ]
    assert (answer["outcome"], answer["gating"]) == ("succeeded", "BLOCK")
    assert answer["blocking"] == "the check `rows` failed: has 1 row"
    assert run(folder, job("checked", checks=given, quarantine=True))[0]["gating"] == "QUARANTINE"


def test_a_critical_check_of_the_inputs_stops_user_code_before_it_begins(folder: Path) -> None:
    given = [definition("is_text", "critical", "pre", code=code_check("is_text"))]
    wanted = job("parsed", inputs=[FILE], item_json='{"b": 1}', checks=given, quarantine=True)
    answer, _ = run(folder, wanted)
    # Without an output there is nothing to decide about.
    assert (answer["outcome"], answer["gating"], answer["items"]) == ("succeeded", "BLOCK", None)
    assert [(each["phase"], each["passed"]) for each in answer["checks"]] == [("pre", False)]
    # What was found before user code failed is told with the failure.
    failed, _ = run(folder, {**wanted, "item_json": '"a"'})
    assert (failed["outcome"], [each["passed"] for each in failed["checks"]]) == ("failed", [True])


def test_a_check_that_hangs_ends_and_its_child_is_worn(folder: Path) -> None:
    given = definition("hangs", "critical", timeout={"nanos": 50_000_000}, code=code_check("hangs"))
    answer, _ = run(folder, job("checked", checks=[given]))
    assert (answer["gating"], answer["worn"]) == ("BLOCK", True)
    assert answer["checks"][0]["message"] == "took longer than 0.05 s"


def test_a_check_whose_answer_cannot_be_told_is_no_end_of_the_child(folder: Path) -> None:
    """What was made before is committed by then."""
    given = [definition(name, code=code_check(name)) for name in ("careless", "undecided")]
    answer, _ = run(folder, job("checked", checks=given))
    assert (answer["outcome"], answer["gating"], len(answer["outputs"])) == ("succeeded", "WARN", 1)
    assert [(each["passed"], each["errored"]) for each in answer["checks"]] == [(False, True)] * 2
    assert [each["message"] for each in answer["checks"]] == [
        "the check broke: InvalidValue: its metadata is a NoneType; give a mapping from names to texts, or leave it "
        "out",
        "the check broke: ValueError: neither yes nor no",
    ]


@pytest.mark.parametrize(
    "given", [job("closing", config={"stream": name}) for name in ("stdout", "stderr")] + [job("replacing")]
)
def test_who_closes_where_it_prints_to_has_done_its_work(folder: Path, given: dict[str, Any]) -> None:
    """The next job could not print there, so there is none."""
    records: list[str] = []

    async def use(child: Child) -> tuple[dict[str, Any], list[str]]:
        lines: list[str] = []
        output = {"output_uri": f"file://{folder}/out/"}
        take = partial(take_into, lines)
        return await child.begin(given | output, take, lambda record: records.append(record["text"])), lines

    answer, lines = with_child(folder, use)
    assert (answer["outcome"], len(answer["outputs"]), answer["worn"]) == ("succeeded", 1, True)
    closing = given["function"] == "closing"
    assert (lines, records) == ((["last words"], ["logged"]) if closing else ([], []))


def test_who_closes_nothing_is_not_worn(folder: Path) -> None:
    assert run(folder, job("fine"))[0]["worn"] is False


@pytest.mark.parametrize(
    ("check", "part"),
    [
        (definition("odd"), "`odd` is of a kind that this worker does not know; install a newer"),
        (definition("lost", code=code_check("ghost")), "`lost` is `work.ghost`, which is no function in this version"),
        (definition("early", phase="pre", row_count=ROWS), "`early` looks at inputs (phase pre), and the asset reads"),
    ],
)
def test_a_check_that_cannot_run_fails_the_attempt_before_user_code(
    folder: Path, check: dict[str, Any], part: str
) -> None:
    answer, lines = run(folder, job("checked", checks=[check]))
    assert (answer["outcome"], answer["error"]["category"], lines) == ("failed", "CONFIGURATION", [])
    assert part in answer["error"]["message"]


def test_rows_are_compared_with_the_version_that_the_job_names(folder: Path) -> None:
    less = definition("less", "critical", row_count=quality_pb2.RowCountCheck(min_share_of_previous_ppm=900_000))
    before = f"file://{folder}/before/"
    commit(
        open_folder(before),
        [{"id": each} for each in range(3)],
        "",
        OutputIdentity("r", "B", "default/checked", ""),
        [],
    )
    answer, lines = run(folder, job("checked", checks=[less], previous=before))
    assert (answer["gating"], lines) == ("BLOCK", [("STDOUT", "ran")])
    assert answer["checks"][0]["message"] == "has 1 rows, the version before 3"
    # The server says that there is none.
    assert run(folder, job("checked", checks=[less], previous=""))[0]["gating"] == "ALLOW"
    gone = run(folder, job("checked", checks=[less], previous=f"file://{folder}/gone/"))[0]
    assert gone["error"]["category"] == "INFRASTRUCTURE"


def test_one_of_many_items_is_not_taken_for_all(folder: Path) -> None:
    version = ["", "A", f"file://{folder}/x/"]
    answer, _ = run(folder, job("joined", inputs=[told_input("parsed", version)]))
    assert answer["error"]["category"] == "INPUT"
    assert "`default/parsed` is made once per item" in answer["error"]["message"]


@pytest.mark.parametrize(("own", "rest"), [("", ""), ("day=d:2026-01-31", ",day=d:2026-01-31")])
def test_what_all_items_made_is_one_list(folder: Path, own: str, rest: str) -> None:
    def version(item: int) -> list[str]:
        about = OutputIdentity("r", str(item), "default/parsed", "")
        made = commit(open_folder(f"file://{folder}/{item}/"), f"made of {item}", "", about, [])
        return [f"_map=i:{item}{rest}", str(item), made["uri"]]

    versions = [version(item) for item in (10, 0, 2)]
    answer, lines = run(folder, job("joined", inputs=[told_input("parsed", *versions)], partition=own))
    assert (answer["outcome"], lines) == ("succeeded", [("STDOUT", "['made of 0', 'made of 2', 'made of 10']")])


def test_tools_of_user_code_find_the_trace(folder: Path) -> None:
    async def use(child: Child) -> list[list[str]]:
        printed: list[list[str]] = [[], []]
        for lines, trace in zip(printed, ({"TRACEPARENT": "00-aa-bb-01"}, {}), strict=True):
            await child.run(job("traced", trace=trace), partial(take_into, lines))
        return printed

    assert with_child(folder, use) == [["00-aa-bb-01"], ["None"]]


def test_usage_is_of_the_job_alone(folder: Path) -> None:
    async def use(child: Child) -> list[dict[str, int]]:
        return [(await child.run(job(name), silent))["usage"] for name in ("large", "fine", "started")]

    large, fine, started = with_child(folder, use)
    assert large["memory_peak_bytes"] > 200_000_000
    # The child is the same; the peak of the job before is not its.
    assert fine["memory_peak_bytes"] < 150_000_000
    assert large["cpu_ms"] > fine["cpu_ms"]
    assert large["memory_mb_ms"] > fine["memory_mb_ms"]
    # What it started and waited for counts.
    assert started["cpu_ms"] >= 200


@pytest.mark.parametrize(("function", "how"), [("dying", "exit code 9"), ("killed", "signal SIGKILL")])
def test_a_child_that_dies_says_how(folder: Path, function: str, how: str) -> None:
    with pytest.raises(ChildDied, match=how):
        run(folder, job(function))


def test_a_hundred_megabytes_are_read_and_cut(folder: Path) -> None:
    answer, lines = run(folder, job("loud"))
    assert answer["outcome"] == "succeeded"
    assert [(stream, len(line)) for stream, line in lines] == [("STDOUT", 32 * 1024)] * 100


def test_what_dies_before_its_marker_has_made_nothing(folder: Path) -> None:
    with pytest.raises(ChildDied, match="SIGKILL"):
        run(folder, job("stored"))
    assert [file.name for file in (folder / "out").iterdir()] == ["data"]
    # The next attempt has a folder and an identity of its own.
    (folder / "out").rename(folder / "left")
    (output,) = run(folder, job("stored", attempt=2, attempt_id="B"))[0]["outputs"]
    marker = json.loads((folder / "out" / "_commit.json").read_bytes())
    assert (marker["materialization_id"], output["asset_key"], output["byte_size"]) == ("B", "default/stored", 1)
    version = ["day=d:2026-01-31", "B", output["uri"]]
    answer, lines = run(folder, job("after", inputs=[told_input("stored", version)]))
    assert (answer["outcome"], answer["outputs"], lines) == ("succeeded", [], [("STDOUT", "got 2")])
    assert (answer["usage"]["read_bytes"], answer["usage"]["written_bytes"]) == (1, 0)


def test_the_same_attempt_does_not_commit_twice(folder: Path) -> None:
    assert run(folder, job("stored", attempt=2))[0]["outcome"] == "succeeded"
    answer, _ = run(folder, job("stored", attempt=2))
    assert (answer["outcome"], answer["error"]["category"]) == ("failed", "INFRASTRUCTURE")


def _alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_child_that_cannot_be_started_leaves_nothing_open(folder: Path) -> None:
    """Wherever on the way there is no file descriptor left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def start(allowed: int) -> Child | OSError:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        try:
            return await Child.start(folder)
        except OSError as error:
            return error
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    async def story() -> int:
        before = sorted(map(int, os.listdir("/proc/self/fd")))
        # One more may be opened every time.
        for failures, lowest_refused in enumerate(sorted(set(range(100)) - set(before))):
            child = await start(lowest_refused)
            if isinstance(child, Child):
                await child.stop()
                return failures
            assert child.errno == errno.EMFILE
            assert (sorted(map(int, os.listdir("/proc/self/fd"))), orphans.ours) == (before, set())
        raise AssertionError("it should start with so many")

    # Two lines with two ends each, two pipes, and the process's own.
    assert asyncio.run(story()) >= 9


def test_f05_what_ignores_term_is_killed(folder: Path) -> None:
    async def story() -> bool:
        child = await Child.start(folder)
        ready = asyncio.Event()
        work = asyncio.create_task(child.run(job("stubborn"), lambda *_: ready.set()))
        await ready.wait()
        await child.stop(grace=0.1)
        with pytest.raises(ChildDied, match="SIGKILL"):
            await work
        return True

    assert asyncio.run(story())


ORPHAN = """
import asyncio, sys
from pathlib import Path
from servo.worker.child import Child

async def story():
    child = await Child.start(Path(sys.argv[1]))
    job = eval(sys.argv[2])
    await child.run(job, lambda stream, line: print(child._process.pid, flush=True))

asyncio.run(story())
"""


def test_children_die_with_their_worker(folder: Path) -> None:
    command = [sys.executable, "-c", ORPHAN, str(folder), repr(job("stubborn"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout
        pid = int(worker.stdout.readline())
        assert _alive(pid)
        worker.kill()
    # It ignores TERM and never returns, and nobody is left to end it.
    wait_until(lambda: not _alive(pid), "the child has ended")


def test_other_processes_of_ours_are_left_alone(folder: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        assert run(folder, job("fine"))[0]["outcome"] == "succeeded"
        assert _alive(other.pid)
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

async def story(folder, escaping, stubborn):
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

asyncio.run(asyncio.wait_for(story(Path(sys.argv[1]), *map(eval, sys.argv[2:])), 20))
"""


def test_f05_what_hides_from_its_attempt_ends_with_it_and_nothing_else_does(folder: Path) -> None:
    """Until nothing is left of it, not even its number."""
    jobs = [repr(job(name)) for name in ("escaping", "stubborn")]
    subprocess.run([sys.executable, "-c", ADOPTING, str(folder), *jobs], check=True)


@pytest.mark.parametrize(
    ("function", "worn"), [("straying", True), ("careless_parent", True), ("started", False), ("fine", False)]
)
def test_a_child_with_processes_of_its_job_is_worn(folder: Path, function: str, worn: bool) -> None:
    answer, _ = run(folder, job(function))
    assert (answer["outcome"], answer["worn"]) == ("succeeded", worn)


def test_what_user_code_forked_ends_with_it(folder: Path) -> None:
    async def story() -> int:
        child = await Child.start(folder)
        pids: list[int] = []
        with pytest.raises(ChildDied, match="exit code 1"):
            await child.run(job("forking"), lambda _, line: pids.append(int(line)))
        await child.stop()
        return pids[0]

    pid = asyncio.run(story())
    wait_until(lambda: not _alive(pid), "the kernel has ended the process after its signal")
