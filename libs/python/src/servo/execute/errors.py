"""Exceptions of user code as the structured error that retries are decided by."""

from __future__ import annotations

import errno
import traceback
from dataclasses import dataclass, field
from types import TracebackType

from servo.define.location import Location
from servo.define.results import Fatal, Retriable
from servo.define.settings import Retry
from servo.errors import ServoError
from servo.model.categories import ErrorCategory

from .deadline import DeadlinePassed
from .quality import CannotCheck
from .tables import PackageMissing

# Far more than is shown: whoever shows it takes secrets out before cutting.
_TRACEBACK_CHARS_MAX = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)


class InputMissing(ServoError):
    """What a function reads is not there."""


class SecretMissing(ServoError):
    """A secret that the asset names was not given."""


@dataclass(frozen=True, slots=True)
class AttemptError:
    category: ErrorCategory
    message: str
    type: str = ""
    # Where it happened in the user's code.
    location: str = ""
    traceback: str = ""
    # What user code itself said about another try; None leaves it to category and policy.
    retriable: bool | None = None
    # The exception itself, in the process where it was raised.
    exception: BaseException | None = field(default=None, compare=False, repr=False)


def describe(error: BaseException, retry: Retry | None = None) -> AttemptError:
    """``retry`` names classes: an error of a class below one of them counts as that class."""
    return AttemptError(
        category=_category(error),
        message=_message(error) or type(error).__name__,
        type=type(error).__name__,
        location=_location(error.__traceback__),
        traceback=_traceback(error),
        retriable=_retriable(error, retry),
        exception=error,
    )


def _message(error: BaseException) -> str:
    try:
        return str(error)
    # User code may fail here, too.
    except Exception as failure:
        return f"{type(error).__name__}, whose text cannot be made: {type(failure).__name__}"


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


def _location(trace: TracebackType | None) -> str:
    """The innermost line outside of this package."""
    frames = [Location(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    package = __file__.rpartition("execute")[0]
    own = [frame for frame in frames if not frame.file.startswith(package)]
    return str(own[-1]) if own else ""


def _traceback(error: BaseException) -> str:
    """The end says most, so a long one loses its beginning: whole lines, which hold no part of a secret's line."""
    text = "".join(traceback.format_exception(error))
    return text if len(text) <= _TRACEBACK_CHARS_MAX else text[-_TRACEBACK_CHARS_MAX:].partition("\n")[2]
