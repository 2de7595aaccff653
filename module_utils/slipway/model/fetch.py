# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings files to the store, in parts that the next run goes on with: from a hub by a program in an environment of its own, from a folder by copying.

Both give a file back as soon as all of it has come, and end when their time is over: a slice. So no process stays on the machine without
somebody who waits for it, and whoever waits can be told how far it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import json
import os
import selectors
import signal
import subprocess
import time
import typing as t
from pathlib import Path

from ..errors import SlipwayError
from ..findings import finding
from ..python.index import bypassed
from ..python.source import SYSTEM_BUNDLE
from . import hub_worker
from .digest import CHUNK_BYTES
from .hub import Hub
from .published import File
from .store import Place

PARALLEL = 4
# Without a byte for so long, a connection is given up, and the library tries another.
READ_SECONDS = 60
_PR_SET_PDEATHSIG = 1
# Errors of huggingface_hub by the finding that they come to.
_REFUSALS = {
    "GatedRepoError": "MODEL_ACCESS_DENIED",
    "RepositoryNotFoundError": "MODEL_REPOSITORY_UNKNOWN",
    "RevisionNotFoundError": "MODEL_REVISION_UNKNOWN",
    "EntryNotFoundError": "MODEL_MIRROR_INCOMPLETE",
    "RemoteEntryNotFoundError": "MODEL_MIRROR_INCOMPLETE",
}


def left_bytes(place: Place, files: t.Iterable[File]) -> int:
    """What has yet to come of these files."""
    return sum(max(file.size - _size(place.part(file)), 0) for file in files)


def room(place: Place, files: t.Sequence[File]) -> None:
    """Stop where the file system cannot take what has yet to come. Raises ``SlipwayError`` with a finding, and ``OSError``."""
    folder = place.folder.parent
    while not folder.is_dir():
        folder = folder.parent
    system = os.statvfs(folder)
    free, needed = system.f_bavail * system.f_frsize, left_bytes(place, files)
    if needed > free:
        cause = f"{folder} has {size_words(free)} free, and {size_words(needed)} are yet to come"
        raise SlipwayError(cause, [finding("MODEL_STORE_FULL", str(place.folder), cause)])


def size_words(size: int) -> str:
    """Bytes as ``3.2 GiB``, or ``512 MiB`` and ``100 KiB`` where it is less."""
    for unit, exponent in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 2**exponent:
            return f"{size / 2**exponent:.1f} {unit}"
    return f"{size} bytes"


def from_hub(
    place: Place, files: t.Sequence[File], hub: Hub, commit: str, python: str, parallel: int, deadline: float
) -> t.Iterator[File]:
    """Download files into their parts until the deadline (``time.monotonic``); each as soon as it is there.

    Raises ``SlipwayError`` with a finding, whose message is the cause, and ``OSError``.
    """
    request = place.work / "request.json"
    entries = [{"path": file.path, "size": file.size, "part": str(place.part(file))} for file in files]
    content = {"endpoint": hub.endpoint, "repository": hub.repository, "commit": commit, "parallel": parallel}
    request.write_text(json.dumps({**content, "files": entries}), encoding="utf-8")
    by_path = {file.path: file for file in files}
    for said in _work(python, [str(request)], _environment(hub), deadline):
        if "failed" in said:
            raise _failure(said, hub, place, by_path[said["failed"]])
        yield by_path[said["done"]]


def _environment(hub: Hub) -> dict[str, str]:
    """What the program is told by variables: the token, which stands on no command line, the way to the hub, and no other settings."""
    source = hub.source
    kept = (
        {} if source.proxy else {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    )
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        **kept,
        **source.uv_environment(),
    }
    bundle = source.ca_bundle or (SYSTEM_BUNDLE if Path(SYSTEM_BUNDLE).exists() else "")
    if bundle:
        environment["SSL_CERT_FILE"] = bundle
    host = hub.endpoint.partition("://")[2].partition("/")[0].rpartition("@")[2].rsplit(":", 1)[0]
    if source.proxy and bypassed(host, source.no_proxy):
        # The client knows names and domains; networks it does not.
        environment.update(dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join((*source.no_proxy, host))))
    environment.update(
        {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    )
    environment.update({"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "HF_HUB_DOWNLOAD_TIMEOUT": str(READ_SECONDS)})
    return {**environment, **({"HF_TOKEN": hub.token} if hub.token else {})}


def _work(
    python: str, arguments: list[str], environment: dict[str, str], deadline: float
) -> t.Iterator[dict[str, t.Any]]:
    """What the program says, until it ends or its time is over. It ends with this process, too."""
    libc = ctypes.CDLL(None)

    def die_with_us() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    with subprocess.Popen(
        [python, "-u", "-", *arguments],
        env=environment,
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=die_with_us,
    ) as process:
        try:
            # Smaller than a pipe; one that has ended already has no reader.
            with contextlib.suppress(BrokenPipeError), t.cast("t.IO[bytes]", process.stdin) as program:
                program.write(inspect.getsource(hub_worker).encode())
            said, log = Lines(process.stdout), Lines(process.stderr)
            failed = False
            with selectors.DefaultSelector() as selector:
                for lines in (said, log):
                    selector.register(lines.pipe, selectors.EVENT_READ, lines)
                while selector.get_map() and time.monotonic() < deadline:
                    for key, _events in selector.select(min(1.0, max(deadline - time.monotonic(), 0))):
                        if not key.data.take():
                            selector.unregister(key.fileobj)
                    del log.whole[:-20]
                    while said.whole:
                        message = json.loads(said.whole.pop(0))
                        failed |= "failed" in message
                        yield message
            over = time.monotonic() >= deadline
            if not over and process.wait() and not failed:
                raise SlipwayError(f"the program that downloads ended with {process.returncode}: {log.last()}")
        finally:
            process.kill()


class Lines:
    """Lines from a pipe as they become whole."""

    def __init__(self, pipe: t.IO[bytes] | None) -> None:
        self.pipe = t.cast("t.IO[bytes]", pipe)
        self.whole: list[str] = []
        self._rest = b""

    def take(self) -> bool:
        """Read what is there; false at the end."""
        data = os.read(self.pipe.fileno(), 65536)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.whole += [line.decode("utf-8", "replace") for line in whole]
        return bool(data)

    def last(self) -> str:
        """The last line that says something."""
        said = [line.strip() for line in (*self.whole, self._rest.decode("utf-8", "replace")) if line.strip()]
        return said[-1] if said else "without a word"


def _failure(said: dict[str, t.Any], hub: Hub, place: Place, file: File) -> SlipwayError:
    """A download that failed, in words: the library's own text has addresses that hold signatures."""
    have = f"{size_words(_size(place.part(file)))} of {size_words(file.size)} of {file.path} are there"
    fault = _REFUSALS.get(said["error"], "HUB_UNREACHABLE")
    if said["error"] == "OSError" and "No space left" in said["text"]:
        fault, cause = "MODEL_STORE_FULL", f"no space is left, and {have}"
    elif said["error"] == "ValueError" and "too large" in said["text"]:
        cause = f"{file.path} has {size_words(file.size)}, and what is over 50 GB the hub gives through Xet alone, which is not used"
    elif said["status"]:
        cause = f"the hub answers {said['status']} {said['code']}".rstrip() + f"; {have}"
    else:
        cause = f"the connection broke off ({said['error']}); {have}"
    about = (
        str(place.folder)
        if fault == "MODEL_STORE_FULL"
        else hub.endpoint
        if fault == "HUB_UNREACHABLE"
        else hub.repository
    )
    return SlipwayError(cause, [finding(fault, about, cause)])


def from_folder(place: Place, files: t.Sequence[File], folder: Path, deadline: float) -> t.Iterator[File]:
    """Copy files into their parts until the deadline; each as soon as it is there, with the time of its source. Raises ``OSError``."""
    for file in files:
        source, part = folder / file.path, place.part(file)
        with source.open("rb") as reading, part.open("ab") as writing:
            reading.seek(writing.tell())
            while time.monotonic() < deadline:
                chunk = reading.read(CHUNK_BYTES)
                if not chunk:
                    break
                writing.write(chunk)
            else:
                return
            writing.flush()
            os.fsync(writing.fileno())
        os.utime(part, ns=(file.mtime_ns, file.mtime_ns))
        yield file


def from_beside(place: Place, files: t.Sequence[File], folder: Path) -> t.Iterator[File]:
    """Link files into their parts, from a folder of the store's own file system; each as it is there. Raises ``OSError``."""
    for file in files:
        place.part(file).unlink(missing_ok=True)
        os.link(folder / file.path, place.part(file))
        yield file


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
