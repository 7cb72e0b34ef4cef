"""Lists as iterators over their entries; pages are fetched as needed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

from google.protobuf.message import Message

Request = TypeVar("Request", bound=Message)
_TOKEN = "page_token"
_NEXT = "next_page_token"


def pages(call: Callable[[Request], Any], request: Request) -> Iterator[Any]:
    """``pages(client.scheduler.ListRuns, ListRunsRequest(…))``"""
    token: str | None = ""
    while token is not None:
        response = call(_page(request, token))
        yield from entries(response)
        token = getattr(response, _NEXT) or None


async def async_pages(call: Callable[[Request], Awaitable[Any]], request: Request) -> AsyncIterator[Any]:
    token: str | None = ""
    while token is not None:
        response = await call(_page(request, token))
        for entry in entries(response):
            yield entry
        token = getattr(response, _NEXT) or None


def entries(response: Message) -> Any:
    """The entries of a page: every list response has exactly one repeated field."""
    (listed,) = [field for field in response.DESCRIPTOR.fields if field.is_repeated]
    return getattr(response, listed.name)


def _page(request: Request, token: str) -> Request:
    request_copy = type(request)()
    request_copy.CopyFrom(request)
    if token:
        setattr(request_copy, _TOKEN, token)
    return request_copy
