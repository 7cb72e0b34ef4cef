"""Finds and imports the modules of a project that hold definitions."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType

from servo.define.location import Location
from servo.errors import InvalidValue
from servo.execute.packages import missing_extra
from servo.manifest.faults import Fault

from .imports import imports, module_name

_MENTIONS = re.compile(rb"^\s*(from|import)\b.*\bservo\b", re.MULTILINE)
_STDOUT, _STDERR = 1, 2
# Not the project's, whatever its files are called.
_NEVER_ANEW = sys.stdlib_module_names | {"servo"}


def module_names(source: Path, files: Sequence[Path]) -> list[str]:
    """The modules whose text imports servo; scripts whose names no import can say are left alone."""
    names = [module_name(source, file) for file in files if _imports_servo(source, file)]
    return sorted(name for name in names if name is not None)


@contextmanager
def importing(source: Path) -> Iterator[None]:
    """As a worker has it: the sources first, and nothing left of what this process imported under their names, be it an
    earlier state of the project or another one. What it prints goes to stderr: stdout has the answer of the command.
    Afterwards everything is as it was before."""
    # Not only what is packaged: imports find the rest as well.
    tops = {path.name.removesuffix(".py") for path in source.iterdir()} - _NEVER_ANEW
    before = _take_out(tops)
    wrote_bytecode = not sys.dont_write_bytecode
    # Its times count seconds, and whoever saves twice in one would get the first state again.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source))
    importlib.invalidate_caches()
    try:
        with _stdout_is_stderr():
            yield
    finally:
        sys.path.remove(str(source))
        sys.dont_write_bytecode = not wrote_bytecode
        _take_out(tops)
        sys.modules.update(before)


def import_all(source: Path, names: Sequence[str]) -> tuple[list[ModuleType], list[Fault]]:
    """Every module that can be imported, and why the others cannot."""
    modules: list[ModuleType] = []
    faults: list[Fault] = []
    for name in names:
        try:
            modules.append(importlib.import_module(name))
        except (Exception, SystemExit) as error:
            faults.append(_fault(name, source, error))
    return modules, faults


@contextmanager
def _stdout_is_stderr() -> Iterator[None]:
    """For whoever prints, and for programs that the project starts, which know the descriptor alone."""
    # Closed by whoever started this: there is nobody who reads an answer, or nowhere to put the rest.
    if sys.stdout is None or sys.stderr is None:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        # What a module wrote to the stream that it took for itself.
        sys.stdout.flush()
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _take_out(tops: set[str]) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] in tops]
    return {name: sys.modules.pop(name) for name in names}


def _imports_servo(source: Path, file: Path) -> bool:
    if file.suffix != ".py":
        return False
    text = file.read_bytes()
    # Most files are not worth parsing.
    if b"servo" not in text:
        return False
    try:
        return any(each.name.partition(".")[0] == "servo" for each in imports(source, file))
    # Importing it tells its author, if it looks like a module with definitions.
    except (SyntaxError, ValueError):
        return _MENTIONS.search(text) is not None


def _fault(name: str, source: Path, error: BaseException) -> Fault:
    location = _location(name, source, error)
    return Fault("modules", f"cannot be imported: {_words(error, location)}", name, location)


def _words(error: BaseException, location: Location | None) -> str:
    match error:
        case SystemExit():
            return f'it ends the program (exit code {error.code}); do that only if __name__ == "__main__"'
        case InvalidValue():
            # Some name their place themselves, for those who do not build.
            return str(error).removeprefix(f"{location}: ")
        case _:
            return f"{type(error).__name__}: {error}{missing_extra(error)}"


def _location(name: str, source: Path, error: BaseException) -> Location | None:
    if isinstance(error, SyntaxError) and error.filename:
        return Location(error.filename, error.lineno or 1)
    if isinstance(error, SyntaxError):
        return _first_line(source, name)
    frames = [Location(frame.filename, frame.lineno or 1) for frame in traceback.extract_tb(error.__traceback__)]
    own = [frame for frame in frames if Path(frame.file).is_relative_to(source)]
    return own[-1] if own else None


def _first_line(source: Path, name: str) -> Location | None:
    """Of a file that is no text of Python at all, which is told without a place."""
    path = source.joinpath(*name.split("."))
    files = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((Location(str(file), 1) for file in files if file.is_file()), None)
