"""Secrets are read in the worker and redacted in everything that leaves it."""

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


def test_secrets_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "value")
    assert read(ref()) == {"k": "value"}
    with pytest.raises(SecretNotFound, match="the secret `k` is missing: set MISSING where the worker runs"):
        read(ref(path="MISSING"))
    with pytest.raises(SecretNotFound, match="variables have none"):
        read(ref(version="3"))
    with pytest.raises(SecretNotFound, match="the secret `k` is stored in vault, which this worker cannot read"):
        read(ref(provider="vault"))


def test_secrets_are_read_from_secret_manager(cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "value")
    cloud.secrets = {f"{KEY}/versions/latest": b"new", f"{KEY}/versions/3": "öld".encode()}
    gcp = "gcp-secret-manager"
    found = read(ref("a"), ref("b", gcp, KEY), ref("c", gcp, KEY, "3"), ref("d", gcp, f"{KEY}/versions/3"))
    assert found == {"a": "value", "b": "new", "c": "öld", "d": "öld"}
    # One token for all calls.
    assert sum("computeMetadata" in call for call in cloud.calls) == 1


def test_secret_manager_refusals_and_outages_raise_different_errors(cloud: Google) -> None:
    gcp = "gcp-secret-manager"
    with pytest.raises(SecretNotFound, match=r"the secret `k` cannot be read at .*not found.*let the worker's account"):
        read(ref("k", gcp, KEY))
    cloud.secrets = {f"{KEY}/versions/latest": b"\xff\xfe"}
    with pytest.raises(SecretNotFound, match="is not text") as raised:
        read(ref("k", gcp, KEY))
    assert "xff" not in str(raised.value)
    cloud.failing = 1_000
    with pytest.raises(SecretUnavailable, match=r"the secret `k` cannot be read at .*: HTTP 503"):
        read(ref("k", gcp, KEY))


def test_missing_google_credentials_name_the_remedy(cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cloud
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    with pytest.raises(SecretUnavailable, match="GOOGLE_APPLICATION_CREDENTIALS"):
        read(ref("k", "gcp-secret-manager", KEY))


def test_longest_secret_is_redacted_first() -> None:
    redact = Redactor({"a": "hunter2", "b": "hunter2-long", "c": "ab"})
    assert redact("hunter2-long hunter2 ab") == "*** *** ab"
    assert Redactor()("anything") == "anything"


def test_secrets_and_lines_above_the_minimum_length_are_redacted() -> None:
    """Secrets of three characters and lines of four; shorter ones occur in ordinary words."""
    assert Redactor({"pin": "a1b"})("the pin is a1b") == "the pin is ***"
    redact = Redactor({"lines": "user\npa55\nabc\n"})
    assert redact("user, pa55 and abc") == "***, *** and abc"
    assert redact(json.dumps("user\npa55\nabc\n")) == '"***"'


def test_secret_with_unsendable_characters_is_redacted() -> None:
    assert Redactor({"k": "se\0cret"})("it is se\0cret\0") == "it is ***␀"


@pytest.mark.parametrize("secret", ["hunter2-long", PEM, ODD, "a.*b(c)"])
def test_every_encoding_of_a_secret_is_redacted(secret: str) -> None:
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
        redacted = redact(f"before {shape} after")
        assert "***" in redacted, shape
        assert secret not in redacted
        assert shape not in redacted


def answer(**more: Any) -> dict[str, Any]:
    return {"usage": {"cpu_ms": 1}, "checks": [], "gating": "ALLOW", "blocking": "", "items": None, **more}


def test_outcomes_contain_no_secrets() -> None:
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
    """Redacting it would change the item."""
    succeeded = answer(outcome="succeeded", items=['"hunter2"', '"b"'], outputs=[{"asset_key": "n/a"}])
    finish = finish_of(succeeded, Redactor(), Redactor({"k": "hunter2"}))
    add_outputs(finish, succeeded, "", [])
    assert (finish.outcome, len(finish.outputs)) == (state_pb2.OUTCOME_FAILED, 0)
    assert "an item holds a secret" in finish.error.message
    assert "hunter2" not in str(finish)


def test_item_equal_to_another_tasks_secret_is_kept() -> None:
    succeeded = answer(outcome="succeeded", items=['"eu-west"'])
    finish = finish_of(succeeded, Redactor({"k": "eu-west"}), Redactor())
    assert (finish.outcome, list(finish.items.items_json)) == (state_pb2.OUTCOME_SUCCEEDED, ['"eu-west"'])


def test_learned_secrets_are_redacted_longest_first() -> None:
    redact = Redactor({"a": "hunter2"})
    redact.learn({"b": "hunter2-long", "c": "correct horse"})
    redact.learn({"a": "hunter2"})
    assert redact("hunter2-long, hunter2 and correct horse") == "***, *** and ***"


def test_least_recently_read_secrets_are_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_SECRETS_MAX", 3)
    redact = Redactor()
    for secret in ("first", "second", "third", "first", "fourth"):
        redact.learn({"k": secret})
    assert redact("first second third fourth") == "*** second *** ***"
    # All secrets of one task are known while it runs.
    redact.learn({str(number): f"of {number} many" for number in range(5)})
    assert redact("first, of 0 many, of 4 many") == "first, ***, ***"


def test_memory_of_large_secrets_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_SHAPES_CHARS_MAX", 100_000)
    redact = Redactor()
    for number in range(100):
        redact.learn({"k": f"{number:02}" + "x" * 10_000})
    assert sum(map(len, redact._shapes)) <= 100_000
    assert redact("99" + "x" * 10_000) == "***"


def test_truncated_lines_keep_text_that_cannot_begin_a_secret() -> None:
    redact = Redactor({"large": "Z" + "xy/" * 20_000, "k": "hunter2", "l": "hunter2-long"})
    assert redact.cut_off("a" * 30_000) == "a" * 29_997
    assert redact.cut_off("a" * 30_000 + "Z" + "xy/" * 5_000) == ""
    # Also in the rest of the longer secret once the shorter one is redacted.
    assert set(redact.cut_off("a" * 100 + "hunter2-lo")) == {"a"}


def test_secrets_and_variables_of_all_tasks_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HERE", "THERE"):
        monkeypatch.setenv(name, f"value {name}")
    secrets = Secrets()

    async def scenario() -> None:
        assert await secrets.read([ref("a", path="HERE")]) == {"a": "value HERE"}
        # Secrets before the missing one have been read.
        with pytest.raises(SecretNotFound, match="set MISSING"):
            await secrets.read([ref("b", path="THERE"), ref("c", path="MISSING")])
        # Processes need this variable.
        assert await secrets.read([ref("p", path="PATH")]) == {"p": os.environ["PATH"]}

    asyncio.run(scenario())
    assert secrets.redact("value HERE, value THERE") == "***, ***"
    assert secrets.variables == {"HERE", "THERE"}
