"""Folders in Google Cloud Storage, over its JSON API. Objects are created and never overwritten."""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import quote, urlencode

from . import google
from .errors import AlreadyWritten, BadFolder, StorageFailed

SCHEME = "gs://"
# The size of the pieces of uploads and downloads; smaller uploads are one request. Google requires
# a multiple of 256 KiB.
PIECE_BYTES = 8 * 1024 * 1024
_IN_MEMORY_BYTES_MAX = PIECE_BYTES


class Bucket:
    """One folder of a bucket."""

    def __init__(self, uri: str) -> None:
        self._uri = uri if uri.endswith("/") else f"{uri}/"
        self._bucket, _, self._prefix = self._uri.removeprefix(SCHEME).partition("/")
        if not self._bucket:
            raise BadFolder(f"`{uri}` names no bucket: write gs://bucket/folder")

    @property
    def uri(self) -> str:
        return self._uri

    def below(self, name: str) -> Bucket:
        return Bucket(f"{self._uri}{name}/")

    @contextmanager
    def reading(self, name: str) -> Iterator[IO[bytes]]:
        # Parquet readers need random access.
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX) as file:
            self._download(name, file)
            file.seek(0)
            yield file

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX) as file:
            yield file
            self._upload(name, file, file.tell())

    def create(self, name: str, content: bytes) -> None:
        with self.writing(name) as file:
            file.write(content)

    def size(self) -> int:
        """Bytes of all objects in it, including the marker."""
        total, page = 0, ""
        while True:
            query = {"prefix": self._prefix, "fields": "items(size),nextPageToken", "pageToken": page}
            listed = json.loads(self._call("GET", self._url("/storage/v1", "", query)).body)
            total += sum(int(each["size"]) for each in listed.get("items", ()))
            page = listed.get("nextPageToken", "")
            if not page:
                return total

    def _download(self, name: str, file: IO[bytes]) -> None:
        query, start = {"alt": "media"}, 0
        while True:
            span = {"Range": f"bytes={start}-{start + PIECE_BYTES - 1}"}
            try:
                answer = google.call("GET", self._url("/storage/v1", name, query), headers=span)
            except google.Refused as error:
                if error.status == 416:
                    return
                if error.status == 404:
                    raise FileNotFoundError(f"{self._uri}{name} does not exist") from error
                raise StorageFailed(f"{self._uri}{name} cannot be read: {error}") from error
            except google.Unavailable as error:
                raise StorageFailed(f"{self._uri}{name} cannot be read: {error}") from error
            file.write(answer.body)
            start += len(answer.body)
            total = answer.headers.get("Content-Range", "").rpartition("/")[2]
            if answer.status == 200 or not answer.body or total == str(start):
                return
            # Reads all pieces from one version, in case the object is deleted and written again.
            query["generation"] = answer.headers.get("x-goog-generation", "")

    def _upload(self, name: str, file: Any, size: int) -> None:
        file.seek(0)
        if size <= PIECE_BYTES:
            self._upload_at_once(name, file.read())
        else:
            self._upload_in_pieces(name, file, size)

    def _upload_at_once(self, name: str, content: bytes) -> None:
        query = {"uploadType": "media", "name": f"{self._prefix}{name}", "ifGenerationMatch": "0"}
        url = self._url("/upload/storage/v1", "", query)
        digest = hashlib.md5(content, usedforsecurity=False).digest()
        try:
            google.call("POST", url, content, {"Content-Type": "application/octet-stream"})
        except google.Refused as error:
            # An earlier try may have written the object although its response was lost.
            if error.status != 412 or self._digest(name) != base64.b64encode(digest).decode():
                raise self._failed(name, error) from error
        except google.Unavailable as error:
            raise self._failed(name, error) from error

    def _upload_in_pieces(self, name: str, file: IO[bytes], size: int) -> None:
        query = {"uploadType": "resumable", "name": f"{self._prefix}{name}", "ifGenerationMatch": "0"}
        try:
            begun = google.call("POST", self._url("/upload/storage/v1", "", query), b"")
            session_url, start = begun.headers["Location"], 0
            while start < size:
                file.seek(start)
                piece = file.read(PIECE_BYTES)
                span = f"bytes {start}-{start + len(piece) - 1}/{size}"
                answer = google.call("PUT", session_url, piece, {"Content-Range": span})
                if answer.status != 308:
                    return
                # The bytes that Google has received; none without the header.
                got = answer.headers.get("Range", "").rpartition("-")[2]
                start = int(got) + 1 if got else 0
        except google.Refused as error:
            raise self._failed(name, error) from error
        except google.Unavailable as error:
            raise self._failed(name, error) from error

    def _digest(self, name: str) -> str:
        found = json.loads(self._call("GET", self._url("/storage/v1", name, {"fields": "md5Hash"})).body)
        return str(found.get("md5Hash", ""))

    def _call(self, method: str, url: str) -> google.Answer:
        try:
            return google.call(method, url)
        except (google.Refused, google.Unavailable) as error:
            raise StorageFailed(f"{self._uri} cannot be read: {error}") from error

    def _failed(self, name: str, error: google.Refused | google.Unavailable) -> AlreadyWritten | StorageFailed:
        if isinstance(error, google.Refused) and error.status == 412:
            return AlreadyWritten(f"{self._uri}{name} exists already")
        return StorageFailed(f"{self._uri}{name} cannot be written: {error}")

    def _url(self, api: str, name: str, query: dict[str, str]) -> str:
        one = f"/{quote(f'{self._prefix}{name}', safe='')}" if name else ""
        parameters = urlencode({key: value for key, value in query.items() if value})
        return f"{google.storage()}{api}/b/{quote(self._bucket, safe='')}/o{one}?{parameters}"
