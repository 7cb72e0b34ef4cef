"""A folder that is gone with the process, for runs without a server."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from .errors import AlreadyWritten
from .places import Place


class Memory:
    def __init__(self, uri: str = "memory:///") -> None:
        self._uri = uri
        self._files: dict[str, bytes] = {}

    @property
    def uri(self) -> str:
        return self._uri

    def below(self, name: str) -> Place:
        return Memory(f"{self._uri}{name}/")

    @contextmanager
    def reading(self, name: str) -> Iterator[IO[bytes]]:
        if name not in self._files:
            raise FileNotFoundError(f"{self.uri}{name}")
        yield io.BytesIO(self._files[name])

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        file = _Kept()
        yield file
        self.create(name, file.content())

    def create(self, name: str, content: bytes) -> None:
        if name in self._files:
            raise AlreadyWritten(f"{self.uri}{name} exists already")
        self._files[name] = content

    def size(self) -> int:
        return sum(map(len, self._files.values()))


class _Kept(io.BytesIO):
    """Whose content is still there when its writer has closed it."""

    _content: bytes | None = None

    def close(self) -> None:
        if not self.closed:
            self._content = self.getvalue()
        super().close()

    def content(self) -> bytes:
        return self.getvalue() if self._content is None else self._content
