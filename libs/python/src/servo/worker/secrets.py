"""Secrets by reference: read here, given to the function that names them, and nowhere else."""

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


class NoSecret(ServoError):
    """A secret that this worker cannot read, until somebody does something about it."""


class SecretUnavailable(ServoError):
    """The place where it lies does not answer; another try may go better."""


class Provider(Protocol):
    """A place where secrets lie."""

    def read(self, path: str, version: str) -> str:
        """Raises :class:`NoSecret`, whose message goes on after the secret's name, or :class:`SecretUnavailable`."""


class Environment:
    """Variables of the worker."""

    def read(self, path: str, version: str) -> str:
        if version:
            raise NoSecret("has a version, and variables have none; leave it out")
        if path not in os.environ:
            raise NoSecret(f"is missing: set {path} where the worker runs")
        return os.environ[path]


class SecretManager:
    """Google's, as the account that the worker runs as. The path is ``projects/…/secrets/…``."""

    def read(self, path: str, version: str) -> str:
        # Most workers never ask it.
        from servo.data import google

        resource = path if "/versions/" in path and not version else f"{path}/versions/{version or 'latest'}"
        url = f"{google.secret_manager()}/v1/{resource}:access"
        try:
            answer = google.call("GET", url)
            return base64.b64decode(json.loads(answer.body)["payload"]["data"], validate=True).decode()
        except google.Refused as error:
            if error.status in (403, 404):
                raise NoSecret(f"cannot be read at {resource}: {error}; let the worker's account access it") from error
            raise NoSecret(f"cannot be read at {resource}: {error}") from error
        except google.Unavailable as error:
            raise SecretUnavailable(f"cannot be read at {resource}: {error}") from error
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            # Without the error's words: they may hold a part of the secret.
            raise NoSecret(f"at {resource} is no text that was encoded as the protocol says") from error


PROVIDERS: Mapping[str, Provider] = {"env": Environment(), "gcp-secret-manager": SecretManager()}


async def read_all(
    references: Iterable[common_pb2.SecretRef], providers: Mapping[str, Provider] = PROVIDERS
) -> dict[str, str]:
    """By name. Raises :class:`NoSecret` or :class:`SecretUnavailable`."""
    found = {}
    for reference in references:
        provider = providers.get(reference.provider)
        if provider is None:
            raise NoSecret(f"the secret `{reference.name}` lies in {reference.provider}, which this worker cannot read")
        try:
            if isinstance(provider, Environment):
                found[reference.name] = provider.read(reference.path, reference.version)
            else:
                # Others go over a network.
                found[reference.name] = await asyncio.to_thread(provider.read, reference.path, reference.version)
        except (NoSecret, SecretUnavailable) as error:
            raise type(error)(f"the secret `{reference.name}` {error}") from error.__cause__
    return found
