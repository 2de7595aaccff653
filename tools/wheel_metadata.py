# SPDX-License-Identifier: GPL-3.0-or-later
"""What wheels on an index require, read without downloading them."""

from __future__ import annotations

import io
import re
import time
import typing as t
import urllib.error
import urllib.request
import zipfile
from email import message_from_bytes
from http import HTTPStatus
from http.client import HTTPException

TIMEOUT_SECONDS = 60
TRIES = 4
PART_BYTES = 2**18
INSIDE = re.compile(r"[^/]+\.dist-info/METADATA")


class RemoteFile(io.RawIOBase):
    """A file on a web server, of which only the parts that are read are fetched (RFC 9110, range requests). Raises ``OSError``."""

    def __init__(self, address: str, size_bytes: int) -> None:
        self.address, self.size_bytes, self.position = address, size_bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size_bytes}[whence]
        return self.position

    def readinto(self, buffer: t.Any) -> int:
        end = min(self.position + len(buffer), self.size_bytes)
        if end <= self.position:
            return 0
        got = _get(self.address, {"Range": f"bytes={self.position}-{end - 1}"}, HTTPStatus.PARTIAL_CONTENT)
        if len(got) != end - self.position:
            raise OSError("it does not serve a part of a file")
        buffer[: len(got)] = got
        self.position = end
        return len(got)


def requires(wheel: dict[str, t.Any]) -> list[str]:
    """``Requires-Dist`` of a wheel (``url`` and ``size`` in bytes, as in PEP 751). Raises ``OSError`` with the cause."""
    try:
        return message_from_bytes(metadata(wheel)).get_all("Requires-Dist") or []
    except (StopIteration, zipfile.BadZipFile):
        raise OSError("there is no metadata in its wheel") from None


def metadata(wheel: dict[str, t.Any]) -> bytes:
    """Its METADATA: the file that the index serves beside it (PEP 658), or where the index has none, that inside."""
    try:
        return _get(wheel["url"] + ".metadata", {}, HTTPStatus.OK)
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
    if "size" not in wheel:
        raise OSError("it is not served beside the wheel, and the index does not tell how long the wheel is")
    file = io.BufferedReader(RemoteFile(wheel["url"], wheel["size"]), PART_BYTES)
    with zipfile.ZipFile(file) as archive:
        return archive.read(next(name for name in archive.namelist() if INSIDE.fullmatch(name)))


def _get(address: str, headers: dict[str, str], status: HTTPStatus) -> bytes:
    """What a web server answers; what fails in passing is tried again. Raises ``OSError`` (``HTTPError`` where it refuses)."""
    if not address.startswith(("https://", "http://")):
        raise OSError("its address is not one of a web server")
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - looked at above
    for attempt in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - looked at above
                if answer.status != status:
                    raise OSError(f"it answers {answer.status}, and not {status.value}")
                return answer.read()
        except (OSError, HTTPException) as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < HTTPStatus.INTERNAL_SERVER_ERROR
            if refused:
                raise
            cause = str(error)
            time.sleep(attempt)
    raise OSError(cause)
