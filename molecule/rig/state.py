# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything of a rig that a write would change, a line a thing: two lists that are equal prove that nothing was written.

Below the rig's folder lie the root file systems of nodes and guests, the emulated ``/etc/pve`` and its tasks' logs, the simulated
driver's files of ``/proc`` and ``/sys``, and what the controller keeps for the rig (known_hosts, reports). A file's line bears the time of its
last change, which no program can set: writing the same content again shows as well, and so does a file that came and went, in its
folder's line. To these come the processes, so that a restart shows, and the requests to the API that were more than a look.

What lies in memory (``/dev`` with the GPU nodes, ``/tmp``, ``/run``) is read through the machine's first process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import stat
import subprocess
import typing as t
from pathlib import Path

# Larger files are told by size and times alone.
LARGEST_HASHED_BYTES = 1024 * 1024
# In the root file system of a node or guest, with the reason. Nothing else that is written there goes unseen.
LEFT_OUT = {
    "var/log/journal(/.*)?": "the journal: every login and every systemctl is a line in it",
    "run/systemd/journal(/.*)?": "the same",
    r"run/motd\.dynamic": "written at each login",
    "var/log/(wtmp|lastlog|btmp)": "the books that sshd keeps of logins",
    r"var/log/pveproxy/access\.log": "reading is logged there too: its other lines are shown as requests",
    r"root(/\.cache(/slipway(/ansible(/tmp(/.*)?)?)?)?)?": "Ansible's folder for the files of a task, made before a module runs and emptied after",
}
ROOT = re.compile(r"(?:lxc/[^/]+/rootfs/(?:rpool/data/[^/]+/)?|memory/[^/]+/(?:\d+/)?)(.*)")
ACCESS_LOG = "var/log/pveproxy/access.log"
READS = re.compile(r'"(GET|HEAD) |"POST /api2/(json|extjs)/access/ticket ')


@dataclasses.dataclass(frozen=True)
class Process:
    """A process of this machine, or of a container that runs on it."""

    pid: int
    parent: int
    name: str
    started: int  # clock ticks since boot
    group: str  # its control group
    first: bool  # it is the first of its container


def lines(folder: Path, nodes: list[str]) -> list[str]:
    """The state of the rig in ``folder``, sorted."""
    found = list(files(folder))
    table = processes()
    for node in nodes:
        found += requests(folder / "lxc" / node / "rootfs" / ACCESS_LOG, node)
        inside = of_node(folder, node, table)
        found += services(inside, node)
        for name, init in containers(inside, node):
            for place, above in memory(init):
                found += files(above, f"memory/{name}{place}/")
    return sorted(found)


def left_out(path: str) -> bool:
    """Whether a thing is one of those that a look changes."""
    inside = ROOT.fullmatch(path)
    return inside is not None and any(re.fullmatch(pattern, inside[1]) for pattern in LEFT_OUT)


def files(folder: Path, shown: str = "") -> t.Iterator[str]:
    """A line for each file, link, device node and folder below ``folder``, other mounts left out. ``shown`` stands for its path."""
    for path, found in walk(folder):
        name = shown + os.path.relpath(path, folder)
        if not left_out(name):
            try:
                yield f"{name} {_entry(path, found)}"
            except FileNotFoundError:
                continue  # gone between listing and looking: its folder's line tells of it


def walk(folder: Path) -> t.Iterator[tuple[str, os.stat_result]]:
    """All that lies below a folder, on the same file system."""
    device = os.lstat(folder).st_dev
    below = [str(folder)]
    while below:
        try:
            entries = list(os.scandir(below.pop()))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if found.st_dev == device:
                yield entry.path, found
                if stat.S_ISDIR(found.st_mode):
                    below.append(entry.path)


def _entry(path: str, found: os.stat_result) -> str:
    """Kind, mode, owner, what is in it, and when it was changed last."""
    owner = f"{stat.filemode(found.st_mode)} {found.st_uid}:{found.st_gid}"
    if stat.S_ISLNK(found.st_mode):
        content = f"-> {os.readlink(path)}"
    elif stat.S_ISREG(found.st_mode):
        content = f"{found.st_size} bytes"
        if found.st_size <= LARGEST_HASHED_BYTES:
            content += f" {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    elif stat.S_ISDIR(found.st_mode):
        content = "folder"
    else:
        content = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return f"{owner} {content} {found.st_ctime_ns}"


def requests(log: Path, node: str) -> list[str]:
    """The requests of an access log that were neither a look nor a login. Their order is part of the state."""
    text = log.read_text() if log.exists() else ""
    asked = [line for line in text.splitlines() if not READS.search(line)]
    return [f"request {node} {number:05} {line}" for number, line in enumerate(asked, 1)]


def services(inside: list[Process], node: str) -> list[str]:
    """The services that run in a node and its guests. Logins and what they run are left out, but not what a login left behind."""
    groups = {process.pid: process.group for process in inside}
    found = []
    for process in inside:
        visit = re.search(r"/session-[^/]+\.scope|/user@\d+\.service", process.group)
        connection = process.group.endswith("/ssh.service") and groups.get(process.parent) == process.group
        if not visit and not connection:
            unit = re.sub(r"^/lxc\.payload[^/]*", "", process.group)
            found.append(f"process {node} {unit} {process.name} {process.pid} started {process.started}")
    return found


def containers(inside: list[Process], node: str) -> t.Iterator[tuple[str, int]]:
    """A node that runs and its guests, as ``node1`` and ``node1/101``, each with its first process."""
    for process in inside:
        if process.first:
            guests = re.findall(r"/lxc\.payload\.([^/]+)", process.group)[1:]
            yield "/".join([node, *guests]), process.pid


def memory(init: int) -> t.Iterator[tuple[str, Path]]:
    """The file systems in memory of a container: where each is mounted, and how to reach it from here."""
    for line in Path(f"/proc/{init}/mounts").read_text().splitlines():
        _source, target, kind, *_rest = line.split()
        above = Path(f"/proc/{init}/root{target}")
        if kind == "tmpfs" and above.is_dir():
            yield target, above


def of_node(folder: Path, node: str, table: dict[int, Process]) -> list[Process]:
    """The processes of a node and its guests; none where it does not run."""
    shown = subprocess.run(["lxc-info", "-P", folder / "lxc", "-n", node, "-p", "-H"], capture_output=True, text=True)
    first = int(shown.stdout) if shown.stdout.strip().isdecimal() else 0

    def below(pid: int) -> bool:
        while pid in table and pid != first:
            pid = table[pid].parent
        return pid == first

    return [process for pid, process in table.items() if first and below(pid)]


def processes() -> dict[int, Process]:
    """Every process of this machine by its id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                text = (entry / "stat").read_text()
                groups = (entry / "cgroup").read_text().splitlines()
                ids = re.search(r"^NSpid:\s+(.*)$", (entry / "status").read_text(), re.MULTILINE)
            except (FileNotFoundError, ProcessLookupError):
                continue
            fields = text.rpartition(")")[2].split()
            # Where both are mounted, systemd uses one of the two: the one with the longer path.
            paths = [line.split(":", 2)[2] for line in groups if line.startswith("0::") or ":name=systemd:" in line]
            found[int(entry.name)] = Process(
                pid=int(entry.name),
                parent=int(fields[1]),
                name=text.partition("(")[2].rpartition(")")[0],
                started=int(fields[19]),
                group=max(paths, key=len, default=""),
                first=ids is not None and ids[1].split()[1:][-1:] == ["1"],
            )
    return found
