"""A TCP proxy whose connections can be cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class Line:
    """Listens on loopback; ``refuse`` closes the next connections at once, ``cut`` closes the open ones."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "", parts.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.refused = 0
        self.refuse = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.refuse > 0:
                    self.refuse -= 1
                    self.refused += 1
                    near.close()
                    continue
                far = socket.create_connection(self._server)
                self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pass, args=(source, sink), daemon=True).start()


def _pass(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
