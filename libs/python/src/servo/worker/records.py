"""Records of user code's logger, sent to the worker with level and fields."""

from __future__ import annotations

import logging
import socket
import sys
import threading

from servo.define.context import LOGGER

from . import frames

_TEXT_CHARS_MAX = 32 * 1024
_FIELDS_MAX = 32
_LEVELS = ((logging.ERROR, "ERROR"), (logging.WARNING, "WARNING"), (logging.INFO, "INFO"))
# The attributes of every record; all others are fields of the user.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def flush_printed() -> bool:
    """Whether flushing succeeded: user code may have closed or replaced the streams."""
    flushed = True
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            flushed = False
    return flushed


class Records(logging.Handler):
    """The only handler of the logger in a child. Answers of jobs use the same socket."""

    def __init__(self, line: socket.socket) -> None:
        super().__init__()
        self._line, self._turn = line, threading.Lock()
        self.setFormatter(logging.Formatter())
        logger = logging.getLogger(LOGGER)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(self)

    def send(self, frame: bytes) -> None:
        with self._turn:
            self._line.sendall(frame)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            # Keeps the order of printed lines and records.
            flush_printed()
            level = next((name for least, name in _LEVELS if record.levelno >= least), "DEBUG")
            given = [(name, value) for name, value in vars(record).items() if name not in _USUAL][:_FIELDS_MAX]
            text_fields = {"level": level, "text": self.format(record)[:_TEXT_CHARS_MAX]}
            self.send(frames.pack({"record": {**text_fields, "fields": {name: str(value) for name, value in given}}}))
        except Exception:
            self.handleError(record)
