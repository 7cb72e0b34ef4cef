"""Translates exceptions of user code into the structured error that retries depend on."""

from __future__ import annotations

import errno
import os
import sysconfig
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from servo.define.location import Location
from servo.define.results import Fatal, Retriable
from servo.define.settings import Retry
from servo.errors import ServoError
from servo.model.categories import ErrorCategory

from .deadline import DeadlinePassed
from .exceptions import message_of
from .packages import PackageMissing, missing_extra
from .quality import CannotCheck

# Far more than is displayed, because secrets are redacted before the text is truncated.
_TRACEBACK_CHARS_MAX = 1024 * 1024
_PYTHON = f"{sysconfig.get_path('stdlib')}{os.sep}"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)


class InputMissing(ServoError):
    """An input of the function does not exist."""


class SecretMissing(ServoError):
    """A secret that the asset declares was not given."""


@dataclass(frozen=True, slots=True)
class AttemptError:
    category: ErrorCategory
    message: str
    type: str = ""
    # The location in the user's code.
    location: str = ""
    traceback: str = ""
    # Set by user code to force or forbid a retry; None leaves it to category and policy.
    retriable: bool | None = None
    # The exception itself, if it was raised in this process.
    exception: BaseException | None = field(default=None, compare=False, repr=False)


def describe(error: BaseException, retry: Retry | None = None, definition: Location | None = None) -> AttemptError:
    """``retry`` names classes: an error of a subclass counts as the named class. ``definition`` is
    the asset's location, for errors that were not raised in the user's files.
    """
    return AttemptError(
        category=_category(error),
        message=(message_of(error) or type(error).__name__) + missing_extra(error),
        type=type(error).__name__,
        location=_location(error.__traceback__, definition),
        traceback=_traceback(error),
        retriable=_retriable(error, retry),
        exception=error,
    )


def _category(error: BaseException) -> ErrorCategory:
    match error:
        case InputMissing():
            return ErrorCategory.INPUT
        case CannotCheck() | PackageMissing() | SecretMissing():
            return ErrorCategory.CONFIGURATION
        case DeadlinePassed():
            return ErrorCategory.TIMEOUT
        case ConnectionError() | TimeoutError():
            return ErrorCategory.TRANSIENT
        case MemoryError():
            return ErrorCategory.INFRASTRUCTURE
        case OSError() if error.errno in _FULL:
            return ErrorCategory.INFRASTRUCTURE
        case _:
            return ErrorCategory.USER_CODE


def _retriable(error: BaseException, retry: Retry | None) -> bool | None:
    if isinstance(error, Fatal) or (retry and _is_one_of(error, retry.never_on)):
        return False
    if isinstance(error, Retriable) or (retry and _is_one_of(error, retry.on)):
        return True
    return None


def _is_one_of(error: BaseException, causes: tuple[object, ...]) -> bool:
    return any(isinstance(cause, type) and isinstance(error, cause) for cause in causes)


def _location(trace: TracebackType | None, definition: Location | None) -> str:
    """The innermost line in the user's own files, or the nearest one."""
    frames = [Location(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    package = __file__.rpartition("execute")[0]
    called = [frame for frame in frames if not frame.file.startswith(package)]
    own = [frame for frame in called if _is_own(frame.file)]
    if own:
        return str(own[-1])
    return str(definition or (called[-1] if called else ""))


def _is_own(file: str) -> bool:
    """Whether the file belongs neither to an installed package nor to Python; compiled modules name
    files that do not exist.
    """
    installed = {"site-packages", "dist-packages"}.intersection(Path(file).parts)
    return not installed and not file.startswith(_PYTHON) and os.path.isabs(file)


def _traceback(error: BaseException) -> str:
    """A long traceback loses its beginning, because the end is more useful. Cut at line ends, so
    that no part of a line with a secret remains.
    """
    text = "".join(traceback.format_exception(error))
    return text if len(text) <= _TRACEBACK_CHARS_MAX else text[-_TRACEBACK_CHARS_MAX:].partition("\n")[2]
