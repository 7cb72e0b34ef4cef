"""Calls of Google's APIs over plain HTTP: token, endpoint, and retries of transient failures.

Tokens come from google-auth if it is installed (``pip install 'servo-orchestrator[google]'``: key
files, workload identity federation, a developer's login), else from the machine's metadata server.
Endpoints can be overridden by the variables of Google's own tools; a storage emulator gets no
token.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import Any

from servo.errors import ServoError

_STORAGE, _SECRETS = "https://storage.googleapis.com", "https://secretmanager.googleapis.com"
_STORAGE_OVERRIDE, _SECRETS_OVERRIDE = "STORAGE_EMULATOR_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
_METADATA_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_CALL_SECONDS = 60.0
_TRIES = 5
_PAUSE_FIRST = 0.2
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
# A token that expires sooner is replaced.
_TOKEN_SECONDS_MIN = 120.0


class Refused(ServoError):
    """A permanent refusal."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Unavailable(ServoError):
    """No response, or a transient failure."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Message
    body: bytes


def storage() -> str:
    return _endpoint(_STORAGE_OVERRIDE, _STORAGE)


def secret_manager() -> str:
    return _endpoint(_SECRETS_OVERRIDE, _SECRETS)


def call(
    method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, *, tries: int = _TRIES
) -> Answer:
    """Raises :class:`Refused` or :class:`Unavailable`. Only calls that are safe to repeat have more than one try."""
    for left in range(tries - 1, -1, -1):
        try:
            return _once(method, url, body, headers or {})
        except Unavailable:
            if not left:
                raise
        time.sleep(_PAUSE_FIRST * 2 ** (tries - 1 - left) * random.uniform(0.5, 1.0))
    raise AssertionError("there is at least one try")


def _once(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
    request = urllib.request.Request(url, body, {**headers, **_authorization(url)}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_CALL_SECONDS) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        # The status of a resumable upload that is incomplete.
        if error.code == 308:
            return Answer(error.code, error.headers, b"")
        detail = _error_detail(error.read())
        if error.code in _PASSING:
            raise Unavailable(f"HTTP {error.code} {detail}") from error
        raise Refused(f"HTTP {error.code} {detail}", error.code) from error
    except (OSError, HTTPException) as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from error


def _endpoint(override: str, usual: str) -> str:
    given = os.environ.get(override, "").rstrip("/")
    if not given:
        return usual
    return given if "://" in given else f"http://{given}"


def _error_detail(body: bytes) -> str:
    """The message in an error's body."""
    try:
        return str(json.loads(body)["error"]["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return body[:200].decode(errors="replace")


def _authorization(url: str) -> dict[str, str]:
    if os.environ.get(_STORAGE_OVERRIDE) and url.startswith(storage()):
        return {}
    return {"Authorization": f"Bearer {_tokens.get()}"}


class _Tokens:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0
        self._credentials: Any = None

    def get(self) -> str:
        with self._lock:
            if time.monotonic() >= self._until:
                self._token, seconds = self._by_library() or _by_metadata()
                self._until = time.monotonic() + seconds - _TOKEN_SECONDS_MIN
            return self._token

    def _by_library(self) -> tuple[str, float] | None:
        try:
            import google.auth
            import google.auth.exceptions
            import google.auth.transport.requests
        except ImportError:
            return None
        try:
            if self._credentials is None:
                self._credentials, _ = google.auth.default(scopes=[_SCOPE])
            self._credentials.refresh(google.auth.transport.requests.Request())
        except google.auth.exceptions.GoogleAuthError as error:
            raise Unavailable(f"there are no credentials for Google: {error}") from error
        return self._credentials.token, 3600.0 / 2


def _by_metadata() -> tuple[str, float]:
    host = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
    request = urllib.request.Request(f"http://{host}{_METADATA_PATH}", headers={"Metadata-Flavor": "Google"})
    try:
        with urllib.request.urlopen(request, timeout=5.0) as answer:
            token = json.load(answer)
        return str(token["access_token"]), float(token["expires_in"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            f"there are no credentials for Google: the metadata server reports {error}; outside of Google's machines "
            "install servo-orchestrator[google] and set GOOGLE_APPLICATION_CREDENTIALS"
        ) from error


_tokens = _Tokens()
