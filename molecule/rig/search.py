# SPDX-License-Identifier: GPL-3.0-or-later
"""Where secrets lie: in the files and journals of a rig's machines, in folders of the controller, on command lines while something runs.

The secrets come on standard input, one a line, and are never shown: what is printed is the line's number and the place.
"""

from __future__ import annotations

import base64
import mmap
import os
import stat
import subprocess
import sys
import typing as t
from pathlib import Path

import state

PAUSE_SECONDS = 0.05
SHORTEST = 8  # anything shorter is found everywhere


def read(stream: t.TextIO) -> list[list[bytes]]:
    """The secrets of a stream: each as it is and in the three forms that it can have inside base64.

    Errors: SystemExit where there is none, or one that is too short to be told from chance.
    """
    found = [line.strip() for line in stream if line.strip()]
    if not found or min(map(len, found)) < SHORTEST:
        raise SystemExit(
            f"rig: give the secrets on standard input, one a line, each of at least {SHORTEST} characters."
        )
    return [forms(secret.encode()) for secret in found]


def forms(secret: bytes) -> list[bytes]:
    """The secret itself, and what base64 makes of it at each offset, without the characters that its neighbours have a part in."""
    inside = []
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + secret)
        first = -(-offset * 8 // 6)
        inside.append(text[first : (offset + len(secret)) * 8 // 6])
    return [secret, *inside]


def places(
    secrets: list[list[bytes]], folder: Path, nodes: list[str], also: list[tuple[Path, float]] | None = None
) -> list[str]:
    """A line for each secret and place, sorted: the files of the rig in ``folder``, also in its machines' memory, and their journals.

    ``also``: other folders, each with the time after which a file must have changed to be looked at.
    """
    seen: set[tuple[int, int]] = set()
    found = list(_files(secrets, folder, "", 0, seen))
    table = state.processes()
    for node in nodes:
        for name, init in state.containers(state.of_node(folder, node, table), node):
            for place, above in state.memory(init):
                found += _files(secrets, above, f"memory/{name}{place}/", 0, seen)
            found += [f"{number} journal of {name}" for number in _found(secrets, journal(init))]
    for above, since in also or []:
        found += _files(secrets, above, f"{above}/", since, seen)
    return sorted(found)


def _found(secrets: list[list[bytes]], content: bytes | mmap.mmap) -> list[int]:
    """The numbers of the secrets that are in it."""
    return [number for number, known in enumerate(secrets, 1) if any(content.find(form) >= 0 for form in known)]


def _files(
    secrets: list[list[bytes]], above: Path, shown: str, since: float, seen: set[tuple[int, int]]
) -> t.Iterator[str]:
    for path, entry in state.walk(above):
        identity = (entry.st_dev, entry.st_ino)
        if stat.S_ISREG(entry.st_mode) and entry.st_size and entry.st_ctime >= since and identity not in seen:
            seen.add(identity)
            try:
                with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
                    numbers = _found(secrets, content)
            except (FileNotFoundError, ValueError):
                continue  # deleted or emptied meanwhile
            owner = f"{stat.filemode(entry.st_mode)} {entry.st_uid}:{entry.st_gid}"
            yield from (f"{number} {shown}{os.path.relpath(path, above)} {owner}" for number in numbers)


def journal(init: int) -> bytes:
    """The journal of the container whose first process this is, unpacked: in its files, long fields are compressed."""
    command = ["nsenter", "-t", str(init), "-m", "-p", "journalctl", "--output=export", "--all", "--no-pager"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def watch(secrets: list[list[bytes]], command: list[str], seen: Path) -> int:
    """Run a command and look meanwhile at the command lines of all processes, those in containers too.

    Writes the places to ``seen``, which is there when this returns, and returns the command's status.
    """
    found: set[str] = set()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        while True:
            found.update(command_lines(secrets))
            try:
                status = process.wait(PAUSE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                continue
    seen.write_text("".join(f"{line}\n" for line in sorted(found)))
    return status


def command_lines(secrets: list[list[bytes]]) -> t.Iterator[str]:
    """A line for each secret on the command line of a process that runs now."""
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                line = Path(entry.path, "cmdline").read_bytes()
                numbers = _found(secrets, line)
                name = Path(entry.path, "comm").read_text().strip() if numbers else ""
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield from (f"{number} command line of {name}" for number in numbers)


def main(verb: str, folder: Path, nodes: list[str], options: t.Any) -> int:
    """The verbs ``search`` and ``watch``."""
    secrets = read(sys.stdin)
    if verb == "watch":
        return watch(secrets, options.command, options.seen)
    since = options.since.stat().st_mtime if options.since else 0.0
    also = [(above, 0.0) for above in options.also] + [(above, since) for above in options.new_in]
    print("\n".join(places(secrets, folder, nodes, also)))
    return 0
