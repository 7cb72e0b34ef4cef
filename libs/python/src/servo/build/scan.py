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
# Never re-imported, even if the project has files with these names.
_NEVER_REIMPORTED = sys.stdlib_module_names | {"servo"}


def module_names(source: Path, files: Sequence[Path]) -> list[str]:
    """The importable modules whose source imports servo."""
    names = [module_name(source, file) for file in files if _imports_servo(source, file)]
    return sorted(name for name in names if name is not None)


@contextmanager
def importing(source: Path) -> Iterator[None]:
    """Imports the project as a worker would: sources first on the path, and without modules of the
    same names that this process imported before. Output of the modules goes to stderr, because
    stdout carries the command's result. Restores everything afterwards.
    """
    # All files, not only the packaged ones, because imports find the others as well.
    tops = {path.name.removesuffix(".py") for path in source.iterdir()} - _NEVER_REIMPORTED
    before = _remove_modules(tops)
    wrote_bytecode = not sys.dont_write_bytecode
    # Bytecode is compared by modification times in seconds, so a second save within one second
    # would load stale code.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source))
    importlib.invalidate_caches()
    try:
        with _stdout_is_stderr():
            yield
    finally:
        sys.path.remove(str(source))
        sys.dont_write_bytecode = not wrote_bytecode
        _remove_modules(tops)
        sys.modules.update(before)


def import_all(source: Path, names: Sequence[str]) -> tuple[list[ModuleType], list[Fault]]:
    """The modules that could be imported, and a fault for each that could not."""
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
    """Redirects the file descriptor too, because programs that the project starts inherit it."""
    # The parent process closed one of the streams, so there is nothing to redirect.
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
        # Flushes output of modules that kept a reference to the stream.
        sys.stdout.flush()
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _remove_modules(tops: set[str]) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] in tops]
    return {name: sys.modules.pop(name) for name in names}


def _imports_servo(source: Path, file: Path) -> bool:
    if file.suffix != ".py":
        return False
    text = file.read_bytes()
    # Avoids parsing most files.
    if b"servo" not in text:
        return False
    try:
        return any(each.name.partition(".")[0] == "servo" for each in imports(source, file))
    # The import that follows reports the error, if the file looks like a module with definitions.
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
            # Some errors already name their location, for use outside a build.
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
    """The location of a file that is not Python text; such errors carry no position."""
    path = source.joinpath(*name.split("."))
    files = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((Location(str(file), 1) for file in files if file.is_file()), None)
