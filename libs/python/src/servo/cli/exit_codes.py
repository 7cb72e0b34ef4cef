"""Error messages and exit codes of commands."""

from __future__ import annotations

import json
import sys

from servo.errors import ServoError

RUN_FAILED = 1
WRONG_USE = 2
NOT_FOUND = 3
# A bug in Servo; the caller cannot fix it.
OWN_FAULT = 70
# The user stopped the command: Ctrl-C, or no to a question.
STOPPED = 130


class NothingFound(ServoError):
    """The requested object does not exist."""


class AlreadyThere(ServoError):
    """The object to create exists already."""


class NotWorking(ServoError):
    """A local component failed and has no replacement."""


class OutOfTime(ServoError):
    """The awaited event has not happened within the time limit."""


def exit_code(error: Exception) -> int:
    from servo.client import errors

    codes: list[tuple[type[Exception] | tuple[type[Exception], ...], int]] = [
        ((errors.NotFound, NothingFound), NOT_FOUND),
        ((errors.NotAuthenticated, errors.NotAllowed), 4),
        ((errors.Conflict, AlreadyThere), 5),
        ((errors.TimedOut, OutOfTime), 6),
        ((errors.Unavailable, errors.Exhausted, NotWorking), 7),
    ]
    return next((code for kinds, code in codes if isinstance(error, kinds)), WRONG_USE)


def report(error: ServoError, *, as_json: bool) -> int:
    """Prints the error and returns the exit code."""
    code = exit_code(error)
    if as_json:
        fields = {"message": str(error), "reason": getattr(error, "reason", ""), "exit_code": code}
        print(json.dumps({"error": fields}), file=sys.stderr)
    else:
        print(f"servo: {error}{_remedy(error)}", file=sys.stderr)
    return code


def _remedy(error: ServoError) -> str:
    """Remedies that the server cannot give, because it does not know the client's settings or was not reached."""
    from servo.client import errors

    if getattr(error, "reason", "") == "PARTITION_INVALID":
        return "\n  --partition latest means the newest, --partition day=2026-01-01..2026-01-31 a range, all means all"
    match error:
        case errors.Unavailable() if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return "\n  its certificate is of an authority that is not known here: name that in SERVO_CA_FILE"
        case errors.Unavailable() if "Hostname Verification" in str(error):
            return "\n  its certificate has another name: write that in the address, or in SERVO_SERVER_NAME"
        case errors.Unavailable():
            return "\n  is it running, and is the address right? `servo doctor` looks; `servo dev` starts one here"
        case errors.NotAuthenticated():
            return "\n  set SERVO_API_KEY to a key of this server, or SERVO_TOKEN_FILE to a file with one"
        case errors.NotAllowed():
            return "\n  ask an administrator of the tenant for a role that allows it, or use another key"
        case errors.TimedOut():
            return "\n  it may still happen: look with `servo runs list`"
        case _:
            return ""
