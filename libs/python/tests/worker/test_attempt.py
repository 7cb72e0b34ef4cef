"""One attempt with real user code against a fake server, whose clock is controlled by the test."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from servo.build.archive import archive
from servo.v1 import callback_pb2, error_pb2, quality_pb2, state_pb2, worker_pb2
from servo.worker import environments, orphans
from servo.worker.attempt import Attempt, next_tick
from servo.worker.children import Children
from servo.worker.code import CodeCache
from servo.worker.environments import Environments
from servo.worker.reports import TakesAnswer
from servo.worker.secrets import Secrets
from servo.worker.truncate import FINISH_BYTES_MAX

from ..waiting import wait_until

CODE = """
import os, subprocess, sys, time
from servo import CheckOutcome, Skip, asset, check

@asset
def long(context):
    while not os.path.exists(context.config["go"]):
        print("still here", flush=True)
        time.sleep(0.1)

@asset
def talking(context):
    context.log.warning("read %d of %s", 3, context.secrets["key"], extra={"rows": 3, "where": "hunter2-long"})
    try:
        1 / 0
    except ZeroDivisionError:
        context.log.exception("no luck")
    print("x" * 16_380 + "hunter2-long")
    print("hunter2-long" * 5_000)

engine = None

@asset
def connecting(context):
    global engine
    engine = context.secrets["key"]
    print(os.getpid(), os.environ.get("KEY"))

@asset
def curious():
    print(os.getpid(), os.environ.get("KEY"))

@asset
def straying():
    print(os.getpid(), subprocess.Popen(["sleep", "1000"]).pid)

@asset
def broken_engine(context):
    print("the engine is", engine)
    context.log.info("it is %s", engine)
    raise ConnectionError(f"no answer from {engine}")

@asset
def long_words(context):
    raise ValueError(context.secrets["key"] + "x" * context.config["chars"])

@asset
def hungry():
    held = b"y" * 100_000_000
    while True:
        held.count(b"x")

@asset
def small():
    import duckdb, pyarrow
    duckdb.sql("SELECT sum(range) FROM range(100000)").fetchall()
    return None

@asset
def greedy_children():
    code = "import time; held = bytearray(200_000_000); time.sleep(1000)"
    for _ in range(2):
        subprocess.Popen([sys.executable, "-c", code])
    time.sleep(1000)

@asset
def sharing():
    # Four processes with the same 100 MB in memory.
    held = bytearray(b"y" * 100_000_000)
    for _ in range(3):
        if os.fork() == 0:
            held.count(b"x")
            time.sleep(1.0)
            os._exit(0)
    for _ in range(3):
        os.wait()

@asset
def odd(context):
    print("pri\\0nted")
    context.log.info("lo\\0gged", extra={"fi\\0eld": "\\ud800"})
    raise ValueError("bro\\0ken \\ud800")

@asset
def odd_checks():
    return 1

@check(odd_checks)
def broken(value):
    raise ValueError("bro\\0ken")

@check(odd_checks)
def strange(value):
    return CheckOutcome(False, 3, "a\\0", "b\\0", {"k\\0": "v\\0"})

@asset
def skipping():
    return Skip("nothing\\0new")

@asset
def chatty():
    for number in range(200_000):
        print(number)
"""


class Server:
    """A fake server. Its clock counts heartbeats: a signature that is too many heartbeats old is refused."""

    def __init__(self, lives: int = 1_000_000, go: tuple[int, Path] | None = None) -> None:
        """``go`` is a file that is created after this many heartbeats."""
        self._lives, self._go = lives, go
        self._beats = 0
        self.calls: list[callback_pb2.CallbackItem] = []
        self.refused: list[callback_pb2.CallbackItem] = []
        self.renewals: set[str] = set()
        self.silent = False

    def sign(self) -> str:
        return f"/signed?expires={self._beats + self._lives}"

    def send(self, item: callback_pb2.CallbackItem, answered: TakesAnswer | None = None, renewal: str = "") -> None:
        self.calls.append(item)
        self.renewals.add(renewal)
        if self.silent:
            return
        answer = callback_pb2.CallbackResult(number=item.number)
        if item.HasField("heartbeat"):
            self._beats += 1
            if self._go and self._beats == self._go[0]:
                self._go[1].touch()
        if float(item.presigned.partition("=")[2]) < self._beats:
            self.refused.append(item)
            answer.refusal.reason = error_pb2.ERROR_REASON_SIGNATURE_EXPIRED
        elif item.WhichOneof("call") == "heartbeat":
            answer.heartbeat.renewed.CopyFrom(callback_pb2.RenewedPaths(heartbeat=self.sign(), logs=self.sign()))
        elif item.WhichOneof("call") == "logs":
            answer.logs.SetInParent()
        if answered:
            asyncio.get_running_loop().call_soon(answered, answer)

    def of(self, kind: str) -> list[Any]:
        return [getattr(item, kind) for item in self.calls if item.WhichOneof("call") == kind]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code" / "digest").mkdir(parents=True)
    (tmp_path / "code" / "digest" / "work.py").write_text(CODE)
    return tmp_path


async def no_download(workspace: str, digest: str) -> bytes:
    await asyncio.sleep(3600)
    return f"{workspace} {digest}".encode()


def envelope(function: str, server: Server, **more: Any) -> worker_pb2.TaskEnvelope:
    made = worker_pb2.TaskEnvelope(
        attempt_id="A", operation=state_pb2.OPERATION_MATERIALIZE, mode=state_pb2.DISPATCH_MODE_PULL, **more
    )
    made.code.artifact_digest = "digest"
    made.code.entry_point.module, made.code.entry_point.function = "work", function
    made.deadline.FromSeconds(int(time.time()) + 60)
    made.heartbeat_interval.FromMilliseconds(100)
    made.trace.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    signed = {name: server.sign() for name in ("heartbeat", "logs")}
    made.callbacks.CopyFrom(worker_pb2.CallbackPaths(start="/x=inf", finished="/x=inf", **signed))
    return made


def run_attempt(
    folder: Path,
    server: Server,
    given: worker_pb2.TaskEnvelope,
    during: Callable[[Attempt], None] | None = None,
    code: CodeCache | None = None,
) -> callback_pb2.FinishAttemptRequest:
    (finish,) = run_attempts(folder, server, [given], during, code)
    return finish


def run_attempts(
    folder: Path,
    server: Server,
    given: Sequence[worker_pb2.TaskEnvelope],
    during: Callable[[Attempt], None] | None = None,
    code: CodeCache | None = None,
) -> list[callback_pb2.FinishAttemptRequest]:
    """Runs envelopes one after the other, like one worker."""

    async def scenario() -> list[callback_pb2.FinishAttemptRequest]:
        children = Children(1)
        parts: dict[str, Any] = {
            "code": code or CodeCache(folder / "code", no_download),
            "environments": Environments(folder / "environments"),
            "secrets": Secrets(),
            "children": children,
            "reports": server,
        }
        for each in given:
            attempt = Attempt(each, worker_id="W", session="S", kill_grace=0.1, **parts)
            if during:
                asyncio.get_running_loop().call_later(0.05, during, attempt)
            await asyncio.wait_for(attempt.run(), 60)
        await children.close()
        return server.of("finish")

    return asyncio.run(scenario())


def test_f14_an_attempt_outlives_its_signature_ten_times(folder: Path) -> None:
    server = Server(lives=2, go=(25, folder / "go"))
    given = envelope("long", server, run_config_json=json.dumps({"go": str(folder / "go")}))
    finish = run_attempt(folder, server, given)
    assert finish.outcome == state_pb2.OUTCOME_SUCCEEDED
    assert server.refused == []
    assert len(server.of("heartbeat")) >= 25
    assert sum(len(logs.lines) for logs in server.of("logs")) > 0
    # The finish path renews signatures after an outage longer than their life.
    assert server.renewals == {given.callbacks.finished}


def test_reports_repeat_the_heartbeat_timeout_of_the_envelope(folder: Path) -> None:
    for heartbeat in (None, Duration(seconds=7, nanos=5)):
        go = folder / f"go-{heartbeat is None}"
        server = Server(go=(2, go))
        given = envelope("long", server, run_config_json=json.dumps({"go": str(go)}))
        if heartbeat:
            given.timeouts.heartbeat.CopyFrom(heartbeat)
        run_attempt(folder, server, given)
        for call in server.of("start") + server.of("heartbeat"):
            assert (call.heartbeat_timeout if call.HasField("heartbeat_timeout") else None) == heartbeat


def test_usage_of_a_killed_attempt_is_reported(folder: Path) -> None:
    server = Server()
    given = envelope("hungry", server)
    given.deadline.FromNanoseconds(time.time_ns() + 2_500_000_000)
    finish = run_attempt(folder, server, given)
    assert finish.error.category == state_pb2.ERROR_CATEGORY_TIMEOUT
    assert finish.usage.cpu_ms > 300
    assert finish.usage.memory_peak_bytes > 100_000_000
    assert finish.usage.memory_mb_ms > 10_000


@pytest.mark.parametrize("function", ["hungry", "greedy_children"])
def test_memory_limit_ends_an_attempt(folder: Path, function: str) -> None:
    server = Server()
    given = envelope(function, server)
    given.resources.memory_bytes = 90_000_000 if function == "hungry" else 300_000_000
    finish = run_attempt(folder, server, given)
    assert (finish.outcome, finish.error.category) == (
        state_pb2.OUTCOME_FAILED,
        state_pb2.ERROR_CATEGORY_INFRASTRUCTURE,
    )
    limit = f"the asset's limit is {given.resources.memory_bytes // 1_000_000} MB; raise it"
    assert re.match(r"its processes had [0-9]+ MB in memory", finish.error.message)
    assert limit in finish.error.message
    assert finish.error.hint.startswith("give it more memory or less to do")
    assert finish.usage.memory_peak_bytes > given.resources.memory_bytes


@pytest.mark.parametrize(("function", "limit"), [("small", 400_000_000), ("sharing", 300_000_000)])
def test_memory_limit_ignores_reserved_and_shared_pages(folder: Path, function: str, limit: int) -> None:
    """Neither reserved addresses nor shared pages count fully."""
    server = Server()
    given = envelope(function, server)
    given.resources.memory_bytes = limit
    finish = run_attempt(folder, server, given)
    assert finish.outcome == state_pb2.OUTCOME_SUCCEEDED, finish.error


def test_log_records_keep_level_and_fields_without_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hunter2-long")
    server = Server()
    given = envelope("talking", server)
    given.secrets.add(name="key", provider="env", path="KEY")
    assert run_attempt(folder, server, given).outcome == state_pb2.OUTCOME_SUCCEEDED
    lines = [line for logs in server.of("logs") for line in logs.lines]
    assert "hunter2" not in str(server.calls)
    warning, failed = (line for line in lines if line.stream == callback_pb2.LOG_STREAM_LOGGER)
    assert (warning.level, warning.text) == (callback_pb2.LOG_LEVEL_WARNING, "read 3 of ***")
    assert dict(warning.fields) == {"rows": "3", "where": "***"}
    assert failed.level == callback_pb2.LOG_LEVEL_ERROR
    assert "ZeroDivisionError" in failed.text
    # One secret crosses the truncation of a line, another the end of the searched part.
    printed, repeated = (line.text for line in lines if line.stream == callback_pb2.LOG_STREAM_STDOUT)
    assert printed == "x" * 16_380 + "***"
    assert set(repeated) == {"*"}


def with_key(function: str, server: Server, **more: Any) -> worker_pb2.TaskEnvelope:
    given = envelope(function, server, **more)
    given.secrets.add(name="key", provider="env", path="KEY")
    return given


def printed(server: Server) -> list[str]:
    lines = [line for logs in server.of("logs") for line in logs.lines]
    return [line.text for line in lines if line.stream == callback_pb2.LOG_STREAM_STDOUT]


def test_remembered_secret_is_redacted_for_every_task(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hunter2-long")
    server = Server()
    _, finish = run_attempts(folder, server, [with_key("connecting", server), envelope("broken_engine", server)])
    assert finish.error.message == "no answer from ***"
    assert printed(server)[-1] == "the engine is ***"
    assert "hunter2" not in str(server.calls)


def test_secret_variables_are_hidden_from_tasks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that was started before a task declared the variable gets no more jobs."""
    monkeypatch.setenv("KEY", "hunter2-long")
    server = Server()
    curious = envelope("curious", server)
    run_attempts(folder, server, [curious, with_key("connecting", server), curious])
    before, named, after = (line.split() for line in printed(server))
    # At that time the variable is not known to be a secret.
    assert before[1] == "hunter2-long"
    assert named[1] == after[1] == "None"
    assert before[0] != named[0] == after[0]


def test_traceback_is_truncated_after_redaction(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last 16 KiB begin inside the secret."""
    monkeypatch.setenv("KEY", "hunter2-long")
    server = Server()
    config = json.dumps({"chars": 16 * 1024 - len("-long\n")})
    finish = run_attempt(folder, server, with_key("long_words", server, run_config_json=config))
    assert finish.error.traceback.endswith("x" * 10_000 + "\n")
    assert len(finish.error.traceback) == 16 * 1024
    assert "-long" not in str(finish)


def test_texts_are_sanitized_before_sending(folder: Path) -> None:
    server = Server()
    finish = run_attempt(folder, server, envelope("odd", server))
    assert finish.error.message.startswith("bro␀ken ")
    assert "bro␀ken" in finish.error.traceback
    lines = [line for logs in server.of("logs") for line in logs.lines]
    assert {line.text for line in lines} == {"pri␀nted", "lo␀gged"}
    assert [list(line.fields) for line in lines if line.fields] == [["fi␀eld"]]
    assert b"\0bro" not in finish.SerializeToString()


def test_check_results_are_texts(folder: Path) -> None:
    server = Server()
    given = envelope("odd_checks", server, output_uri=f"file://{folder}/out/")
    for name in ("broken", "strange"):
        given.checks.add(name=name).code.CopyFrom(quality_pb2.CodeCheck(module="work", function=name))
    broken, strange = run_attempt(folder, server, given).checks
    assert broken.message == "the check broke: ValueError: bro␀ken"
    assert (strange.message, strange.actual, strange.expected) == ("3", "a␀", "b␀")
    assert dict(strange.metadata) == {"k␀": "v␀"}


def test_returned_skip_skips(folder: Path) -> None:
    server = Server()
    finish = run_attempt(folder, server, envelope("skipping", server))
    assert (finish.outcome, finish.skip_reason) == (state_pb2.OUTCOME_SKIPPED, "nothing␀new")


def test_log_buffer_is_limited_while_the_server_is_slow(folder: Path) -> None:
    server = Server()
    server.silent = True
    finish = run_attempt(folder, server, envelope("chatty", server))
    assert finish.outcome == state_pb2.OUTCOME_SUCCEEDED
    logs = server.of("logs")
    reported = sum(len(batch.lines) for batch in logs)
    assert reported + sum(batch.dropped_lines for batch in logs) == 200_000
    assert reported <= 10_000
    assert [batch.sequence for batch in logs] == list(range(1, len(logs) + 1))


def test_leftover_process_ends_with_its_attempt(folder: Path) -> None:
    server = Server()
    finishes = run_attempts(folder, server, [envelope("straying", server), envelope("curious", server)])
    assert [finish.outcome for finish in finishes] == [state_pb2.OUTCOME_SUCCEEDED] * 2
    (child, stray), (next_child, _) = (line.split() for line in printed(server))
    assert next_child != child
    wait_until(lambda: not lives(stray), "the kernel has ended the process after its signal")


def lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        (Attempt.cancel, state_pb2.OUTCOME_CANCELLED),
        (lambda attempt: attempt.interrupt(0.0), state_pb2.OUTCOME_INTERRUPTED),
    ],
)
def test_f17_attempt_that_waits_for_code_can_be_cancelled(
    folder: Path, how: Callable[[Attempt], None], outcome: state_pb2.Outcome
) -> None:
    server = Server()
    given = envelope("long", server)
    given.code.artifact_digest = "not there"
    assert run_attempt(folder, server, given, how).outcome == outcome


def test_f05_attempt_that_waits_for_code_has_a_deadline(folder: Path) -> None:
    server = Server()
    given = envelope("long", server)
    given.code.artifact_digest = "not there"
    given.deadline.FromNanoseconds(time.time_ns() + 50_000_000)
    finish = run_attempt(folder, server, given)
    assert finish.error.category == state_pb2.ERROR_CATEGORY_TIMEOUT


def check_that_it_could_not_be_run(finish: callback_pb2.FinishAttemptRequest, why: str) -> None:
    assert (finish.outcome, finish.error.category) == (
        state_pb2.OUTCOME_FAILED,
        state_pb2.ERROR_CATEGORY_INFRASTRUCTURE,
    )
    assert finish.error.message.startswith(f"the worker could not run it: {why}")
    # No process waits for a job that never comes.
    assert not orphans.ours


def test_full_disk_during_code_download_is_reported(folder: Path) -> None:
    content = archive({"work.py": CODE.encode()})
    (folder / "file").touch()

    async def download(*_: str) -> bytes:
        return content

    server = Server()
    given = envelope("small", server)
    given.code.artifact_digest = hashlib.sha256(content).hexdigest()
    code = CodeCache(folder / "file" / "below", download)
    check_that_it_could_not_be_run(run_attempt(folder, server, given, code=code), "NotADirectoryError: ")


def test_failure_of_the_worker_is_reported_briefly(folder: Path) -> None:
    """An outcome that is too large for the ledger would be refused, and the attempt would be lost."""

    async def download(*_: str) -> bytes:
        raise RuntimeError("no " * 100_000)

    server = Server()
    given = envelope("small", server)
    given.code.artifact_digest = "not there"
    finish = run_attempt(folder, server, given, code=CodeCache(folder / "code", download))
    check_that_it_could_not_be_run(finish, "RuntimeError: no no ")
    assert finish.ByteSize() <= FINISH_BYTES_MAX


def test_interpreter_that_does_not_start_is_reported(folder: Path) -> None:
    locked = "ghost==9.9\n"
    (folder / "code" / "digest" / "requirements.lock").write_text(locked)
    made = folder / "environments" / environments._digest(locked)
    (made / "bin").mkdir(parents=True)
    for file in ("complete", "bin/python"):
        (made / file).touch()
    server = Server()
    finish = run_attempt(folder, server, envelope("small", server))
    check_that_it_could_not_be_run(finish, "PermissionError: [Errno 13] Permission denied: ")


def test_unencodable_job_is_reported_and_its_child_ends(folder: Path) -> None:
    server = Server()
    finish = run_attempt(folder, server, envelope("small", server, asset_config_json="{"))
    check_that_it_could_not_be_run(finish, "JSONDecodeError: ")


def test_starts_are_reported_together() -> None:
    begun = [1_000.001, 1_000.02, 1_000.05, 1_000.099]
    assert len({next_tick(at) for at in begun}) == 1
    assert next_tick(begun[0]) == pytest.approx(1_000.1)
    assert next_tick(1_000.101) == pytest.approx(1_000.2)
