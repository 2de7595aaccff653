# SPDX-License-Identifier: GPL-3.0-or-later
"""One file from a web server into a folder that keeps it: whole and with the right sha256, or not under its name at all.

What had come when a download broke off is kept beside it, and the next one goes on from there where the server can (RFC 9110, section 14).
"""

from __future__ import annotations

import os
import typing as t
from http.client import HTTPException
from pathlib import Path

from .errors import SlipwayError, cannot, here
from .findings import CATALOGUE
from .python import index, wheel
from .python.source import Source

_GONE = (404, 410)
_NOT_THAT_RANGE = 416


def ask(url: str, source: Source, timeout_seconds: int) -> None:
    """See whether the server has the file, without fetching it. Raises ``SlipwayError``."""
    asking = _request(url, source)
    asking.method = "HEAD"
    _answer(url, source, asking, timeout_seconds).close()


def fetch(url: str, sha256: str, target: Path, source: Source, timeout_seconds: int) -> bool:
    """Have the file at ``target``, unless another run fetches it meanwhile; whether this one did. Raises ``SlipwayError``."""
    part = target.with_name(f".{target.name}.part")
    _request(url, source)  # an address that is none leaves no folder behind
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with wheel.alone(target.with_name(f".{target.name}.lock")):
            if wheel.is_there(target, sha256):
                return False
            _download(url, part, source, timeout_seconds)
            found = wheel.digest(part)
            if found != sha256:
                part.unlink()
                cause = f"its sha256 is {found}, and {sha256} is declared"
                remedy = "Correct the address or the sha256, by what its maker publishes; the file was not used"
                raise cannot("fetch", f"file '{url}'", here(), cause, remedy)
            os.replace(part, target)
    except OSError as error:
        cause = error.strerror or str(error)
        raise cannot("fetch", f"file '{url}' to {target}", here(), cause, "Mend that, and run again") from error
    return True


def _download(url: str, part: Path, source: Source, timeout_seconds: int) -> None:
    """Bring ``part`` to its end, from where it is. Raises ``SlipwayError``, and ``OSError`` where it cannot be written."""
    asking = _request(url, source)
    have = part.stat().st_size if part.exists() else 0
    if have:
        asking.add_header("Range", f"bytes={have}-")
    with _answer(url, source, asking, timeout_seconds) as answer, part.open("ab") as file:
        if answer.status != 206:
            file.truncate(0)
        try:
            while chunk := answer.read(wheel.CHUNK_BYTES):
                file.write(chunk)
        except (TimeoutError, ConnectionError, HTTPException) as error:
            raise _unfetched(url, source, error) from None
        file.flush()
        os.fsync(file.fileno())
        if answer.length:
            broke = OSError(f"the connection broke off {answer.length} bytes before the end")
            raise _unfetched(url, source, broke)


def _request(url: str, source: Source) -> t.Any:
    try:
        return index.request(url, source.index_login)
    except ValueError as error:
        raise cannot("fetch", f"file '{url}'", here(), str(error), "Correct its address") from None


def _answer(url: str, source: Source, asking: t.Any, timeout_seconds: int) -> t.Any:
    try:
        opener = index.opener(source, index.ca_content(source))
        try:
            return opener.open(asking, timeout=timeout_seconds)
        except index.HTTPError as error:
            if error.code != _NOT_THAT_RANGE or not asking.has_header("Range"):
                raise
            # It is longer than the server's file, so it is another one.
            asking.remove_header("Range")
            return opener.open(asking, timeout=timeout_seconds)
    except (OSError, HTTPException, ValueError) as error:
        raise _unfetched(url, source, error) from None


def _unfetched(url: str, source: Source, error: Exception) -> SlipwayError:
    if isinstance(error, index.HTTPError) and error.code in _GONE:
        return cannot(
            "fetch", f"file '{url}'", here(), f"the server does not have it ({error.code})", "Correct its address"
        )
    fault, cause = index.explain(error, proxied=bool(source.proxy))
    remedies = ("NETWORK_UNREACHABLE", "PROXY_REFUSED", "CA_UNTRUSTED")
    remedy = (
        CATALOGUE[fault].remedy
        if fault in remedies
        else "Check the address, its login and the firewall between, and run again"
    )
    return cannot("fetch", f"file '{url}'", here(), cause, remedy)
