# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of wheels on a node that its guests install from. What is there is whole; only those who own the folder write it."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import typing as t
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

from ..errors import SlipwayError, cannot, here
from ..findings import finding
from . import index, wheel
from .chosen import Wheel
from .source import Source

AT_ONCE = 4
TRIES = 3


def missing(folder: Path, wheels: list[Wheel]) -> list[Wheel]:
    """Those that are not there, or are other files than is meant. Raises ``SlipwayError`` with the whole sentence."""
    for one in wheels:
        # What comes from an index must not be able to name another folder.
        if Path(one.file).name != one.file or not one.file.endswith(".whl"):
            raise cannot("keep", f"wheel '{one.file}'", here(), "that is no name of a wheel", "Check the index")
    try:
        return [one for one in wheels if not wheel.is_there(folder / one.file, one.sha256)]
    except OSError as error:
        raise cannot("read", f"folder '{folder}'", here(), str(error), "Mend that, and run again") from None


def fetch(folder: Path, wheels: list[Wheel], source: Source, timeout_seconds: int) -> list[Wheel]:
    """Fetch what is missing, unless another run does meanwhile; what this one fetched.

    Raises ``SlipwayError`` with the whole sentence. What has come by then stays, for the next run.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        with wheel.alone(folder / ".lock"):
            wanted = missing(folder, wheels)
            for left in folder.glob(".*.part"):
                left.unlink()
            _room(folder, wanted)
            opener = index.opener(source, index.ca_content(source))
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda one: _fetch(opener, folder, one, source, timeout_seconds), wanted))
    except SlipwayError as error:
        remedy = error.findings[0].remedy if error.findings else "Run again; what has been fetched stays"
        raise cannot("fetch", f"wheels to '{folder}'", here(), str(error), remedy, error.findings) from None
    except OSError as error:
        raise cannot("fetch", f"wheels to '{folder}'", here(), str(error), "Mend that, and run again") from None
    return wanted


def _room(folder: Path, wanted: list[Wheel]) -> None:
    needed, free = sum(one.size_bytes for one in wanted), shutil.disk_usage(folder).free
    if needed > free:
        cause = f"{needed // 2**20 + 1} MiB are to be fetched, and {free // 2**20} MiB are free; make room there"
        raise SlipwayError(cause)


def _fetch(opener: t.Any, folder: Path, one: Wheel, source: Source, timeout_seconds: int) -> None:
    """Fetch one, and compare it before it gets its name. A connection that breaks is tried again."""
    part = folder / f".{one.file}.part"
    for attempt in range(1, TRIES + 1):
        try:
            found = _download(opener, part, one, source, timeout_seconds)
            break
        except Unfetched as error:
            if attempt == TRIES or error.final:
                subject = one.name if error.fault == "PACKAGE_UNAVAILABLE" else one.url
                cause = str(error)
                raise SlipwayError(f"{cause}, at {one.url}", [finding(error.fault, subject, cause)]) from None
            time.sleep(attempt)
    if found != one.sha256:
        part.unlink()
        cause = (
            f"the file of {one.name} is not the one that the lock means (sha256 {found}, the lock says {one.sha256})"
        )
        raise SlipwayError(cause, [finding("HASH_MISMATCH", one.name, cause)])
    part.chmod(0o644)
    os.replace(part, folder / one.file)


class Unfetched(Exception):
    """What kept a file from being fetched, in words. ``final``: asking again is of no use."""

    def __init__(self, error: Exception, proxied: bool) -> None:
        self.fault, cause = index.explain(error, proxied)
        refused = isinstance(error, index.HTTPError) and error.code < 500
        self.final = refused or isinstance(error, ValueError) or self.fault == "CA_UNTRUSTED"
        super().__init__(cause)


def _download(opener: t.Any, part: Path, one: Wheel, source: Source, timeout_seconds: int) -> str:
    """Write a file, and say its sha256. Raises ``Unfetched``, and ``OSError`` where it cannot be written."""
    digest = hashlib.sha256()
    with part.open("wb") as file:
        for chunk in _chunks(opener, one, source, timeout_seconds):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _chunks(opener: t.Any, one: Wheel, source: Source, timeout_seconds: int) -> t.Iterator[bytes]:
    same_server = urllib.parse.urlsplit(one.url)[:2] == urllib.parse.urlsplit(source.index)[:2]
    try:
        request = index.request(one.url, source.index_login if same_server else "")
        with opener.open(request, timeout=timeout_seconds) as answer:
            while chunk := answer.read(wheel.CHUNK_BYTES):
                yield chunk
            if answer.length:
                raise OSError(f"the connection broke off {answer.length} bytes before the end")
    except (OSError, HTTPException, ValueError) as error:
        raise Unfetched(error, proxied=bool(source.proxy)) from None
