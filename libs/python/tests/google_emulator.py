"""An emulator of Google's storage, secrets and metadata server, in a thread."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "ya29.token"
_PAGE = 2


@dataclass
class Google:
    address: str = ""
    # By bucket and name.
    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    # By resource name with its version.
    secrets: dict[str, bytes] = field(default_factory=dict)
    # How many of the next calls fail, and whether they are executed first.
    failing: int = 0
    after_writing: bool = False
    # Bytes of a piece that are stored; the rest must be sent again.
    kept_of_piece: int | None = None
    calls: list[str] = field(default_factory=list)
    uploads: dict[str, tuple[str, str, bytearray]] = field(default_factory=dict)


@contextmanager
def google() -> Iterator[Google]:
    state = Google()

    class Handler(_Handler):
        google = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    google: Google
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def log_message(self, *given: Any) -> None:
        self.google.calls.append(f"{self.command} {urlsplit(self.path).path} {given[-2]}")

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fails = self.google.failing > 0
        self.google.failing -= fails
        if fails and not self.google.after_writing:
            self._respond(503, b"try again")
            return
        status, answer, headers = self._route(body)
        if fails:
            self._respond(503, b"the answer is lost")
        else:
            self._respond(status, answer, headers)

    def _route(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/computeMetadata/"):
            assert self.headers["Metadata-Flavor"] == "Google"
            return 200, json.dumps({"access_token": TOKEN, "expires_in": 3599}).encode(), {}
        if found := re.fullmatch(r"/v1/(projects/.*):access", parts.path):
            return self._secret(found[1])
        if found := re.fullmatch(r"/upload/storage/v1/b/([^/]+)/o", parts.path):
            return self._upload(unquote(found[1]), query, body)
        if found := re.fullmatch(r"/storage/v1/b/([^/]+)/o(?:/([^/]+))?", parts.path):
            return self._read(unquote(found[1]), unquote(found[2] or ""), query)
        return _error(404, "no such method")

    def _secret(self, resource: str) -> tuple[int, bytes, dict[str, str]]:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return _error(401, "no token")
        if resource not in self.google.secrets:
            return _error(404, f"Secret [{resource}] not found")
        data = base64.b64encode(self.google.secrets[resource]).decode()
        return 200, json.dumps({"name": resource, "payload": {"data": data}}).encode(), {}

    def _upload(self, bucket: str, query: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if "upload_id" in query:
            return self._piece(query["upload_id"], body)
        name = query["name"]
        assert query["ifGenerationMatch"] == "0"
        if (bucket, name) in self.google.objects:
            return _error(412, "At least one of the pre-conditions you specified did not hold.")
        if query["uploadType"] == "media":
            self.google.objects[bucket, name] = body
            return 200, b"{}", {}
        number = str(len(self.google.uploads))
        self.google.uploads[number] = bucket, name, bytearray()
        place = f"http://{self.google.address}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={number}"
        return 200, b"", {"Location": place}

    def _piece(self, number: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        bucket, name, got = self.google.uploads[number]
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", self.headers["Content-Range"])
        assert found
        start, end, total = map(int, found.groups())
        assert (start <= len(got), end - start + 1) == (True, len(body))
        kept = body if self.google.kept_of_piece is None else body[: self.google.kept_of_piece]
        self.google.kept_of_piece = None
        got[start:] = kept
        if len(got) < total:
            return 308, b"", {"Range": f"bytes=0-{len(got) - 1}"} if got else {}
        self.google.objects[bucket, name] = bytes(got)
        return 200, b"{}", {}

    def _read(self, bucket: str, name: str, query: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if not name:
            names = sorted(key for place, key in self.google.objects if place == bucket)
            names = [key for key in names if key.startswith(query["prefix"]) and key > query.get("pageToken", "")]
            page = [{"size": str(len(self.google.objects[bucket, key]))} for key in names[:_PAGE]]
            more = {"nextPageToken": names[_PAGE - 1]} if len(names) > _PAGE else {}
            return 200, json.dumps({"items": page, **more} if page else {}).encode(), {}
        if (bucket, name) not in self.google.objects:
            return _error(404, f"No such object: {bucket}/{name}")
        content = self.google.objects[bucket, name]
        if query.get("alt") != "media":
            return 200, json.dumps({"md5Hash": base64.b64encode(hashlib.md5(content).digest()).decode()}).encode(), {}
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        assert found
        start, end = int(found[1]), min(int(found[2]), len(content) - 1)
        if start >= len(content):
            return _error(416, "The requested range cannot be satisfied.")
        headers = {"Content-Range": f"bytes {start}-{end}/{len(content)}", "x-goog-generation": "1"}
        return 206, content[start : end + 1], headers

    def _respond(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _error(status: int, message: str) -> tuple[int, bytes, dict[str, str]]:
    return status, json.dumps({"error": {"code": status, "message": message}}).encode(), {}
