"""Secrets by reference: read by the worker and passed only to the function that declares them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
from collections.abc import Iterable, Mapping
from typing import Protocol

from servo.errors import ServoError
from servo.v1 import common_pb2

from .redaction import Redactor

# Variables that processes need, even if a task declares them as a secret.
_NEEDED = {"HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "SSL_CERT_FILE", "TMPDIR"}
_NEEDED |= {"GCE_METADATA_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"}


class SecretNotFound(ServoError):
    """A secret that this worker cannot read without a change of its configuration."""


class SecretUnavailable(ServoError):
    """The provider does not respond; a retry may succeed."""


class Provider(Protocol):
    """A store of secrets."""

    def read(self, path: str, version: str) -> str:
        """Raises :class:`SecretNotFound`, whose message continues after the secret's name, or
        :class:`SecretUnavailable`.
        """


class Environment:
    """Environment variables of the worker."""

    def read(self, path: str, version: str) -> str:
        if version:
            raise SecretNotFound("has a version, and variables have none; leave it out")
        if path not in os.environ:
            raise SecretNotFound(f"is missing: set {path} where the worker runs")
        return os.environ[path]


class SecretManager:
    """Google Secret Manager, with the worker's service account. The path is ``projects/…/secrets/…``."""

    def read(self, path: str, version: str) -> str:
        # Imported here, because most workers never need it.
        from servo.data import google

        resource = path if "/versions/" in path and not version else f"{path}/versions/{version or 'latest'}"
        url = f"{google.secret_manager()}/v1/{resource}:access"
        try:
            answer = google.call("GET", url)
            return base64.b64decode(json.loads(answer.body)["payload"]["data"], validate=True).decode()
        except google.Refused as error:
            if error.status in (403, 404):
                raise SecretNotFound(
                    f"cannot be read at {resource}: {error}; let the worker's account access it"
                ) from error
            raise SecretNotFound(f"cannot be read at {resource}: {error}") from error
        except google.Unavailable as error:
            raise SecretUnavailable(f"cannot be read at {resource}: {error}") from error
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            # Without the error's message, which may contain a part of the secret.
            raise SecretNotFound(f"at {resource} is not text in the protocol's encoding") from error


PROVIDERS: Mapping[str, Provider] = {"env": Environment(), "gcp-secret-manager": SecretManager()}


class Secrets:
    """All secrets that the worker has read, for any task, because a task may get hold of another's:
    both may run in the same child, one after the other, and both see the worker's variables.
    """

    def __init__(self, providers: Mapping[str, Provider] = PROVIDERS) -> None:
        self._providers = providers
        self.redact = Redactor()
        # Variables of the worker that are a secret of some task and are hidden from others. A
        # variable is known to be a secret only once a task declares it.
        self.variables: frozenset[str] = frozenset()

    async def read(self, references: Iterable[common_pb2.SecretRef]) -> dict[str, str]:
        """The secrets by name. Raises :class:`SecretNotFound` or :class:`SecretUnavailable`; those
        read before are redacted nonetheless.
        """
        found: dict[str, str] = {}
        for reference in references:
            found |= await read_all([reference], self._providers)
            self.redact.learn(found)
            if reference.provider == "env" and reference.path not in self.variables | _NEEDED:
                self.variables |= {reference.path}
        return found


async def read_all(
    references: Iterable[common_pb2.SecretRef], providers: Mapping[str, Provider] = PROVIDERS
) -> dict[str, str]:
    """The secrets by name. Raises :class:`SecretNotFound` or :class:`SecretUnavailable`."""
    found = {}
    for reference in references:
        provider = providers.get(reference.provider)
        if provider is None:
            raise SecretNotFound(
                f"the secret `{reference.name}` is stored in {reference.provider}, which this worker cannot read"
            )
        try:
            if isinstance(provider, Environment):
                found[reference.name] = provider.read(reference.path, reference.version)
            else:
                # In a thread, because other providers use the network.
                found[reference.name] = await asyncio.to_thread(provider.read, reference.path, reference.version)
        except (SecretNotFound, SecretUnavailable) as error:
            raise type(error)(f"the secret `{reference.name}` {error}") from error.__cause__
    return found
