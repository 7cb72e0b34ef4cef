"""Messages of exceptions."""

from __future__ import annotations


def message_of(error: BaseException) -> str:
    try:
        return str(error)
    # ``__str__`` is user code and may fail.
    except Exception as failure:
        return f"{type(error).__name__}, whose message cannot be computed: {type(failure).__name__}"
