# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration file of a container, ``/etc/pve/lxc/<vmid>.conf``: reading, writing, pending changes.

A configuration is a dict of its main part with three more keys: ``digest`` (of the file as read), ``pending`` (a dict) and
``snapshots`` (name to dict). Raw ``lxc.*`` lines of a part are its ``lxc``: a list of [key, value] in the file's order.
"""

from __future__ import annotations

import hashlib
import re
import typing as t
import urllib.parse

from .formats import FormatError, split_list
from .schema import check_type

Conf = dict[str, t.Any]

NOT_LINES = {"digest", "description", "pending", "snapshots", "snapname", "lxc"}
# What Proxmox leaves as it is in a description: printable ASCII without percent and colon.
PLAIN_TEXT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in "%:")

RAW_KEYS = {
    f"lxc.{key}"
    for key in [
        "apparmor.profile",
        "apparmor.allow_incomplete",
        "apparmor.allow_nesting",
        "apparmor.raw",
        "selinux.context",
        "include",
        "arch",
        "uts.name",
        "signal.halt",
        "signal.reboot",
        "signal.stop",
        "init.cmd",
        "init.cwd",
        "pty.max",
        "console.logfile",
        "console.path",
        "tty.max",
        "devtty.dir",
        "hook.autodev",
        "autodev",
        "kmsg",
        "mount.fstab",
        "mount.entry",
        "mount.auto",
        "rootfs.mount",
        "cap.drop",
        "cap.keep",
        "seccomp.profile",
        "seccomp.notify.proxy",
        "seccomp.notify.cookie",
        "idmap",
        "hook.pre-start",
        "hook.pre-mount",
        "hook.mount",
        "hook.start",
        "hook.stop",
        "hook.post-stop",
        "hook.clone",
        "hook.destroy",
        "hook.version",
        "log.level",
        "log.file",
        "start.auto",
        "start.delay",
        "start.order",
        "group",
        "environment",
        "environment.runtime",
        "environment.hooks",
        "sysctl.fs.mqueue",
        "sysctl.kernel.msgmax",
        "sysctl.kernel.msgmnb",
        "sysctl.kernel.msgmni",
        "sysctl.kernel.sem",
        "sysctl.kernel.shmall",
        "sysctl.kernel.shmmax",
        "sysctl.kernel.shmmni",
        "sysctl.kernel.shm_rmid_forced",
    ]
}
RAW_FAMILIES = ("lxc.cgroup.", "lxc.cgroup2.", "lxc.prlimit.", "lxc.net.")
RAW_REFUSED = {
    "lxc.rootfs.path": "lxc.rootfs.path is auto generated from rootfs",
    "lxc.rootfs.options": ('lxc.rootfs.options is not supported, please use mount point options in the "rootfs" key'),
}


def parse(vmid: int, text: str) -> tuple[Conf, list[str]]:
    """Read a file's text. Returns the configuration and the warnings, each ending with a newline as Proxmox's do."""
    conf: Conf = {
        "digest": hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
        "snapshots": {},
        "pending": {},
    }
    warnings: list[str] = []
    part = conf
    in_pending = False
    description = ""

    def close(part: Conf) -> None:
        if description:
            part["description"] = description

    for line in text.split("\n"):
        if not line.strip():
            continue
        header = re.fullmatch(r"(?i)\[(pve:pending|[a-z][a-z0-9_-]+)\]\s*", line)
        if header:
            close(part)
            description = ""
            in_pending = header[1].lower() == "pve:pending"
            part = {}
            if in_pending:
                conf["pending"] = part
            else:
                conf["snapshots"][header[1]] = part
        elif line.startswith("#"):
            description += urllib.parse.unquote(line[1:]) + "\n"
        elif raw := re.match(r"(lxc\.[a-z0-9_\-.]+)(?::|\s*=)\s*(.*?)\s*$", line):
            warnings += _read_raw(vmid, part, raw[1], raw[2], line)
        elif found := re.match(r"description:\s*(.*\S)\s*$", line):
            description += urllib.parse.unquote(found[1])
        elif found := re.search(r"snapstate:\s*(prepare|delete)\s*$", line):
            part["snapstate"] = found[1]
        elif found := re.match(r"delete:\s*(.*\S)\s*$", line):
            if in_pending:
                part["delete"] = found[1]
            else:
                warnings.append(f"vm {vmid} - property 'delete' is only allowed in [pve:pending]\n")
        elif found := re.match(r"([a-z][a-z_]*\d*):\s*(.+?)\s*$", line):
            key, part[found[1]] = found[1], found[2]
            try:
                part[key] = check_type(key, found[2])
            except FormatError as error:
                warnings.append(f"vm {vmid} - unable to parse value of '{key}' - {error}")
        else:
            warnings.append(f"vm {vmid} - unable to parse config: {line}\n")
    close(part)
    conf.pop("snapstate", None)
    return conf, warnings


def _read_raw(vmid: int, part: Conf, key: str, value: str, line: str) -> list[str]:
    """Take one ``lxc.*`` line into a part, or leave it out, which loses it at the next write. Returns warnings."""
    if key in RAW_REFUSED:
        return [f"vm {vmid} - {key}: {RAW_REFUSED[key]}\n"]
    if key not in RAW_KEYS and not key.startswith(RAW_FAMILIES):
        return [f"vm {vmid} - unable to parse config: {line}\n"]
    part.setdefault("lxc", []).append([key, value])
    if key.startswith("lxc.cgroup."):
        return [f"vm {vmid} - {key} is deprecated, this will be a hard error in the future!\n"]
    return []


def _write_part(part: Conf) -> str:
    lines = ["#" + encoded(line) for line in _lines(part.get("description"))]
    for key in sorted(part.keys() - NOT_LINES):
        if "\n" in str(part[key]):
            raise ValueError(f"detected invalid newline inside property '{key}'\n")
        lines.append(f"{key}: {part[key]}")
    lines += [f"{key}: {value}" for key, value in part.get("lxc", [])]
    return "".join(line + "\n" for line in lines)


def encoded(text: str) -> str:
    """A description on one line: percent, colon, control characters and everything beyond ASCII are escaped."""
    return urllib.parse.quote(text, safe=PLAIN_TEXT)


def _lines(text: str | None) -> list[str]:
    return (text or "").rstrip("\n").split("\n") if text else []


def write(conf: Conf) -> str:
    """The text of a file: description, sorted keys, raw lines; then pending changes; then the snapshots.

    An ``unusedN`` that the main part mounts is left out.
    """
    mounted = {conf[key].split(",")[0] for key in conf if key == "rootfs" or re.fullmatch(r"mp\d+", key)}
    left_out = [key for key in conf if re.fullmatch(r"unused\d+", key) and conf[key] in mounted]
    text = _write_part({key: value for key, value in conf.items() if key not in ("snapstate", *left_out)})
    if conf.get("pending"):
        text += "\n[pve:pending]\n" + _write_part(conf["pending"])
    for name in sorted(conf.get("snapshots", {})):
        text += f"\n[{name}]\n" + _write_part(conf["snapshots"][name])
    return text


def pending_deletes(conf: Conf) -> dict[str, int]:
    """Keys that wait to be deleted: 1, or 2 where ``!`` asks for force."""
    names = split_list(conf.get("pending", {}).get("delete", ""))
    return {name.lstrip("!"): 2 if name.startswith("!") else 1 for name in names}


def set_pending_deletes(conf: Conf, deletes: dict[str, int]) -> None:
    """Write the keys that wait to be deleted back into the pending part."""
    names = [("!" if force == 2 else "") + name for name, force in sorted(deletes.items())]
    if names:
        conf["pending"]["delete"] = ",".join(names)
    else:
        conf["pending"].pop("delete", None)


def merged(conf: Conf) -> Conf:
    """The main part as it will be after a restart, with the digest and without pending changes and snapshots."""
    deletes = pending_deletes(conf)
    waiting = {key: value for key, value in conf["pending"].items() if key != "delete"}
    return {key: value for key, value in {**current(conf), **waiting}.items() if key not in deletes}


def current(conf: Conf) -> Conf:
    """The main part as it is now."""
    return {key: value for key, value in conf.items() if key not in ("pending", "snapshots")}


def pending_items(conf: Conf) -> list[dict[str, t.Any]]:
    """One item a key: its value, and its pending value or its pending deletion."""
    deletes = pending_deletes(conf)
    waiting = {key: value for key, value in conf["pending"].items() if key not in ("delete", "lxc")}
    items: list[dict[str, t.Any]] = []
    for key, value in conf.items():
        if key in ("pending", "snapshots", "lxc"):
            continue
        item: dict[str, t.Any] = {"key": key, "value": value}
        if key in waiting:
            item["pending"] = waiting[key]
        if key in deletes:
            item["delete"] = deletes[key]
        items.append(item)
    return items + [{"key": key, "pending": value} for key, value in waiting.items() if key not in conf]
