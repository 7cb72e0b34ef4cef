"""What an exception of the user says."""

from __future__ import annotations


def message_of(error: BaseException) -> str:
    try:
        return str(error)
    # User code may fail here, too.
    except Exception as failure:
        return f"{type(error).__name__}, whose text cannot be made: {type(failure).__name__}"
