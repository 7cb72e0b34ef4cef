"""A folder in memory, for runs without a server."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from .errors import AlreadyWritten
from .folders import Folder


class Memory:
    def __init__(self, uri: str = "memory:///", files: dict[str, bytes] | None = None) -> None:
        self._uri = uri
        # By full name, shared with the folders above and below.
        self._files = {} if files is None else files

    @property
    def uri(self) -> str:
        return self._uri

    def below(self, name: str) -> Folder:
        return Memory(f"{self._uri}{name}/", self._files)

    @contextmanager
    def reading(self, name: str) -> Iterator[IO[bytes]]:
        full = f"{self.uri}{name}"
        if full not in self._files:
            raise FileNotFoundError(full)
        yield io.BytesIO(self._files[full])

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        file = _KeptBuffer()
        yield file
        self.create(name, file.content())

    def create(self, name: str, content: bytes) -> None:
        full = f"{self.uri}{name}"
        if full in self._files:
            raise AlreadyWritten(f"{full} exists already")
        self._files[full] = content

    def size(self) -> int:
        return sum(len(content) for full, content in self._files.items() if full.startswith(self.uri))


class _KeptBuffer(io.BytesIO):
    """A buffer that keeps its content when it is closed."""

    _content: bytes | None = None

    def close(self) -> None:
        if not self.closed:
            self._content = self.getvalue()
        super().close()

    def content(self) -> bytes:
        return self.getvalue() if self._content is None else self._content
