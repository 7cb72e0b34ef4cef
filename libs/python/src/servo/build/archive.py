"""``src.zip``: the same files give the same bytes on every machine at any time."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from servo.errors import InvalidValue

_ARCHIVE_BYTES_MAX = 64 * 1024 * 1024
# The earliest time that the zip format can represent.
_TIME = (1980, 1, 1, 0, 0, 0)
_READABLE = 0o100644 << 16


def archive(files: Mapping[str, bytes]) -> bytes:
    """Entries are stored, not deflated, because the output of a compressor depends on its version."""
    size = sum(map(len, files.values()))
    if size > _ARCHIVE_BYTES_MAX:
        largest = max(files, key=lambda name: len(files[name]))
        raise InvalidValue(
            f"the sources have {size} bytes, more than {_ARCHIVE_BYTES_MAX}; the largest file is {largest}: name it in "
            "project.exclude of servo.toml"
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as zipped:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = _READABLE
            # Fixed, because the default depends on the machine that builds the archive.
            entry.create_system = 3
            zipped.writestr(entry, content)
    return buffer.getvalue()
