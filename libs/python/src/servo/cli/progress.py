"""Progress output: a bar below growing lines on a terminal, lines only elsewhere."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from servo.v1 import common_pb2


class Lines:
    """Prints one line per event."""

    def line(self, text: str, colour: str | None = None) -> None:
        click.secho(text, fg=colour)

    def progress(self, counts: common_pb2.TaskCounts, running: list[str]) -> None:
        """Prints nothing, because a line cannot be updated."""

    def open(self) -> AbstractContextManager[Any]:
        return nullcontext()


class Bar(Lines):
    """Prints lines above a progress bar."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=Console(highlight=False),
            transient=True,
        )
        self._bar = self._progress.add_task("", total=None)

    def line(self, text: str, colour: str | None = None) -> None:
        self._progress.console.print(text, style=colour, markup=False)

    def progress(self, counts: common_pb2.TaskCounts, running: list[str]) -> None:
        from rich.markup import escape

        ended = counts.succeeded + counts.failed + counts.skipped + counts.cancelled
        words = ", ".join(running[:3]) + (f" and {len(running) - 3} more" if len(running) > 3 else "")
        self._progress.update(self._bar, total=counts.total or None, completed=ended, description=escape(words))

    def open(self) -> AbstractContextManager[Any]:
        return self._progress


def progress_display() -> Lines:
    return Bar() if sys.stdout.isatty() else Lines()
