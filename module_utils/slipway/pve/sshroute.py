# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to a node over SSH: what ``ssh_config`` says of it, with jump hosts and proxy commands.

paramiko reads such files, but for ``Include``. As in OpenSSH the first value that is found counts, so that what is given
explicitly only has to stand before everything in the file.
"""

from __future__ import annotations

import getpass
import glob
import os
import re
import shlex
import typing as t
from dataclasses import dataclass, replace
from pathlib import Path

import paramiko

from .client import ApiError

OWN_FILE = "~/.ssh/config"
# How many files may include one another, as in OpenSSH, and how many jump hosts may lead to one another.
DEEPEST = 16
_LINE = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.*?)\s*$")
_NO_PROXY = {"ProxyJump": "none", "ProxyCommand": "none"}


@dataclass(frozen=True)
class Hop:
    """A machine on the way; the last one is the node. ``name`` is what it was called, ``host`` where that is.

    ``keys`` are files; without any the user's own are tried. ``agent`` says whether an agent's are tried too. ``command`` is
    the program whose input and output are the connection.
    """

    name: str
    host: str
    port: int
    user: str
    keys: tuple[str, ...] = ()
    agent: bool = True
    command: str | None = None


def route(path: str | None, host: str, user: str, port: int | None = None, key: str | None = None) -> list[Hop]:
    """The machines on the way to ``host``, itself last.

    ``path`` is the file to read in place of the user's own. Raises ApiError where it cannot be understood, and OSError where
    it was named and cannot be read.
    """
    try:
        hops = _way(_text(path), host, {"User": user, "Port": port}, DEEPEST)
    except (paramiko.ConfigParseError, paramiko.CouldNotCanonicalize, ImportError, KeyError, ValueError) as error:
        # ImportError: for "Match exec" paramiko wants a package that nothing else needs.
        raise ApiError(
            f"the SSH configuration in {path or OWN_FILE} cannot be used ({error})",
            "Correct it, or name another file in api_ssh_config_file",
        ) from error
    if key:
        # One that was named is the only one that is tried: others could lock us out of a strict server.
        hops[-1] = replace(hops[-1], keys=(key,), agent=False)
    return hops


def _way(text: str, host: str, given: t.Mapping[str, t.Any], deepest: int) -> list[Hop]:
    above = "".join(f"{name} {value}\n" for name, value in given.items() if value)
    found = paramiko.SSHConfig.from_text(above + text).lookup(host)
    jumps = [_jump(spec) for spec in str(found.get("proxyjump") or "none").split(",") if spec.strip().lower() != "none"]
    hop = Hop(
        name=host,
        host=found["hostname"],
        port=int(found.get("port", 22)),
        user=found.get("user") or getpass.getuser(),
        keys=tuple(file for file in found.get("identityfile", []) if os.path.exists(os.path.expanduser(file))),
        agent=found.get("identitiesonly", "no").lower() != "yes",
        command=None if jumps else found.get("proxycommand"),
    )
    if not jumps:
        return [hop]
    if not deepest:
        raise ValueError(f"the jump hosts of {host} lead in a circle")
    # As ssh does it: how the first is reached is its own affair, each of the others is reached through the one before.
    (name, wanted), *others = jumps
    way = _way(text, name, wanted, deepest - 1)
    for name, wanted in others:
        way += _way(text, name, {**wanted, **_NO_PROXY}, deepest - 1)
    return [*way, hop]


def _jump(spec: str) -> tuple[str, dict[str, str]]:
    """A jump host, ``[user@]host[:port]`` or the same as a URL, as its name and what is given for it."""
    user, _, rest = spec.strip().removeprefix("ssh://").rstrip("/").rpartition("@")
    # An IPv6 address has brackets if a port follows.
    found = re.fullmatch(r"\[(?P<bracketed>[^]]+)\](?::(?P<port6>\d+))?|(?P<plain>[^:]+):(?P<port>\d+)", rest)
    if not found:
        return rest, {"User": user}
    return found["bracketed"] or found["plain"], {"User": user, "Port": found["port6"] or found["port"] or ""}


def _text(path: str | None) -> str:
    file = Path(path or OWN_FILE).expanduser()
    return "" if path is None and not file.exists() else _with_includes(file, DEEPEST)


def _with_includes(file: Path, deepest: int) -> str:
    """A file with those that it includes in their places."""
    lines = []
    block = "Host *"
    for line in file.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        found = _LINE.match(line)
        word = found[1].lower() if found else ""
        if found and word == "include":
            names = [name for pattern in shlex.split(found[2]) for name in _files(pattern)] if deepest else []
            lines += [_with_includes(Path(name), deepest - 1) for name in names]
            # The last block of such a file ends with it.
            lines.append(block)
        else:
            block = line if word in ("host", "match") else block
            lines.append(line)
    return "\n".join(lines)


def _files(pattern: str) -> list[str]:
    """The files that an ``Include`` names: a relative one is below ~/.ssh, wherever the file is that says so."""
    return sorted(glob.glob(os.path.join(os.path.expanduser("~/.ssh"), os.path.expanduser(pattern))))
