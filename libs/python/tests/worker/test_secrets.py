"""Secrets are read in the worker, and leave it in no shape."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from servo.data import google as calls
from servo.v1 import common_pb2, state_pb2
from servo.worker import redaction
from servo.worker.outcome import add_outputs, finish_of
from servo.worker.redaction import Redactor
from servo.worker.secrets import SecretNotFound, Secrets, SecretUnavailable, read_all

from ..google_emulator import Google, google

KEY = "projects/p/secrets/key"
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIB\n-----END KEY-----"
ODD = "p@ss\twörd/'\"+ä"


def ref(name: str = "k", provider: str = "env", path: str = "HERE", version: str = "") -> common_pb2.SecretRef:
    return common_pb2.SecretRef(name=name, provider=provider, path=path, version=version)


def read(*references: common_pb2.SecretRef) -> dict[str, str]:
    return asyncio.run(read_all(references))


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    with google() as running:
        monkeypatch.setenv("GCE_METADATA_HOST", running.address)
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER", f"http://{running.address}/")
        monkeypatch.setattr(calls, "_PAUSE_FIRST", 0.001)
        monkeypatch.setattr(calls, "_tokens", calls._Tokens())
        yield running


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "value")
    assert read(ref()) == {"k": "value"}
    with pytest.raises(SecretNotFound, match="the secret `k` is missing: set MISSING where the worker runs"):
        read(ref(path="MISSING"))
    with pytest.raises(SecretNotFound, match="variables have none"):
        read(ref(version="3"))
    with pytest.raises(SecretNotFound, match="the secret `k` lies in vault, which this worker cannot read"):
        read(ref(provider="vault"))


def test_from_secret_manager(cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "value")
    cloud.secrets = {f"{KEY}/versions/latest": b"new", f"{KEY}/versions/3": "öld".encode()}
    gcp = "gcp-secret-manager"
    found = read(ref("a"), ref("b", gcp, KEY), ref("c", gcp, KEY, "3"), ref("d", gcp, f"{KEY}/versions/3"))
    assert found == {"a": "value", "b": "new", "c": "öld", "d": "öld"}
    # One token for all calls.
    assert sum("computeMetadata" in call for call in cloud.calls) == 1


def test_what_secret_manager_refuses_and_what_it_cannot_answer(cloud: Google) -> None:
    gcp = "gcp-secret-manager"
    with pytest.raises(SecretNotFound, match=r"the secret `k` cannot be read at .*not found.*let the worker's account"):
        read(ref("k", gcp, KEY))
    cloud.secrets = {f"{KEY}/versions/latest": b"\xff\xfe"}
    with pytest.raises(SecretNotFound, match="is no text") as told:
        read(ref("k", gcp, KEY))
    assert "xff" not in str(told.value)
    cloud.failing = 1_000
    with pytest.raises(SecretUnavailable, match=r"the secret `k` cannot be read at .*: HTTP 503"):
        read(ref("k", gcp, KEY))


def test_without_credentials_the_remedy_is_named(cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cloud
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    with pytest.raises(SecretUnavailable, match="GOOGLE_APPLICATION_CREDENTIALS"):
        read(ref("k", "gcp-secret-manager", KEY))


def test_the_longest_is_taken_out_first() -> None:
    redact = Redactor({"a": "hunter2", "b": "hunter2-long", "c": "ab"})
    assert redact("hunter2-long hunter2 ab") == "*** *** ab"
    assert Redactor()("anything") == "anything"


def test_short_secrets_and_short_lines_of_long_ones_are_taken_out() -> None:
    """A secret of three characters, and lines of four; what is shorter stands in ordinary words."""
    assert Redactor({"pin": "a1b"})("the pin is a1b") == "the pin is ***"
    redact = Redactor({"lines": "user\npa55\nabc\n"})
    assert redact("user, pa55 and abc") == "***, *** and abc"
    assert redact(json.dumps("user\npa55\nabc\n")) == '"***"'


def test_a_secret_with_what_cannot_be_sent_is_taken_out() -> None:
    assert Redactor({"k": "se\0cret"})("it is se\0cret\0") == "it is ***␀"


@pytest.mark.parametrize("secret", ["hunter2-long", PEM, ODD, "a.*b(c)"])
def test_every_shape_is_taken_out(secret: str) -> None:
    redact = Redactor({"k": secret})
    raw = secret.encode()
    shapes = [
        secret,
        repr(secret),
        repr({"key": secret}),
        json.dumps([secret]),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        f"https://x/?key={quote(secret)}",
        *(line for line in secret.splitlines() if len(line) > 7),
    ]
    for shape in shapes:
        said = redact(f"before {shape} after")
        assert "***" in said, shape
        assert secret not in said
        assert shape not in said


def answer(**more: Any) -> dict[str, Any]:
    return {"usage": {"cpu_ms": 1}, "checks": [], "gating": "ALLOW", "blocking": "", "items": None, **more}


def test_outcomes_hold_none() -> None:
    redact = Redactor({"k": "hunter2"})
    error = {"category": "USER_CODE", "message": "bad hunter2", "traceback": "… hunter2 …", "retriable": False}
    check = {
        "name": "c",
        "passed": False,
        "severity": "error",
        "phase": "post",
        "errored": False,
        "seconds": 1,
        "message": "hunter2",
        "actual": "hunter2",
        "expected": "hunter2",
        "metadata": {"a": "hunter2"},
    }
    finish = finish_of(answer(outcome="failed", error=error, checks=[check]), redact, Redactor())
    assert "hunter2" not in str(finish)
    assert (finish.error.retriable, finish.outcome) == (False, state_pb2.OUTCOME_FAILED)
    assert "hunter2" not in str(finish_of(answer(outcome="skipped", reason="no hunter2"), redact, Redactor()))
    blocked = finish_of(answer(outcome="succeeded", gating="BLOCK", blocking="says hunter2"), redact, Redactor())
    assert "hunter2" not in str(blocked)


def test_an_item_with_a_secret_fails_the_task() -> None:
    """Stars in its place would be another item."""
    told = answer(outcome="succeeded", items=['"hunter2"', '"b"'], outputs=[{"asset_key": "n/a"}])
    finish = finish_of(told, Redactor(), Redactor({"k": "hunter2"}))
    add_outputs(finish, told, "", [])
    assert (finish.outcome, len(finish.outputs)) == (state_pb2.OUTCOME_FAILED, 0)
    assert "an item holds a secret" in finish.error.message
    assert "hunter2" not in str(finish)


def test_an_item_that_is_the_secret_of_another_task_is_an_item() -> None:
    told = answer(outcome="succeeded", items=['"eu-west"'])
    finish = finish_of(told, Redactor({"k": "eu-west"}), Redactor())
    assert (finish.outcome, list(finish.items.items_json)) == (state_pb2.OUTCOME_SUCCEEDED, ['"eu-west"'])


def test_a_redactor_learns_and_still_takes_out_the_longest_first() -> None:
    redact = Redactor({"a": "hunter2"})
    redact.learn({"b": "hunter2-long", "c": "correct horse"})
    redact.learn({"a": "hunter2"})
    assert redact("hunter2-long, hunter2 and correct horse") == "***, *** and ***"


def test_what_was_read_longest_ago_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_SECRETS_MAX", 3)
    redact = Redactor()
    for secret in ("first", "second", "third", "first", "fourth"):
        redact.learn({"k": secret})
    assert redact("first second third fourth") == "*** second *** ***"
    # All that one task reads is known while it runs.
    redact.learn({str(number): f"of {number} many" for number in range(5)})
    assert redact("first, of 0 many, of 4 many") == "first, ***, ***"


def test_large_secrets_take_only_so_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_SHAPES_CHARS_MAX", 100_000)
    redact = Redactor()
    for number in range(100):
        redact.learn({"k": f"{number:02}" + "x" * 10_000})
    assert sum(map(len, redact._shapes)) <= 100_000
    assert redact("99" + "x" * 10_000) == "***"


def test_a_large_secret_takes_nothing_from_lines_that_do_not_begin_it() -> None:
    redact = Redactor({"large": "Z" + "xy/" * 20_000, "k": "hunter2", "l": "hunter2-long"})
    assert redact.cut_off("a" * 30_000) == "a" * 29_997
    assert redact.cut_off("a" * 30_000 + "Z" + "xy/" * 5_000) == ""
    # Of what is left of the longer one when the shorter one is taken out, too.
    assert set(redact.cut_off("a" * 100 + "hunter2-lo")) == {"a"}


def test_secrets_of_all_tasks_are_known_and_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HERE", "THERE"):
        monkeypatch.setenv(name, f"value {name}")
    secrets = Secrets()

    async def story() -> None:
        assert await secrets.read([ref("a", path="HERE")]) == {"a": "value HERE"}
        # What comes before one that is missing was read.
        with pytest.raises(SecretNotFound, match="set MISSING"):
            await secrets.read([ref("b", path="THERE"), ref("c", path="MISSING")])
        # No process works without.
        assert await secrets.read([ref("p", path="PATH")]) == {"p": os.environ["PATH"]}

    asyncio.run(story())
    assert secrets.redact("value HERE, value THERE") == "***, ***"
    assert secrets.variables == {"HERE", "THERE"}
