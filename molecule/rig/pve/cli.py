# SPDX-License-Identifier: GPL-3.0-or-later
"""``pct``, ``pvesh``, ``pveversion`` and the start and stop of guests with the node: as root@pam, on the code of the API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import typing as t
from pathlib import Path

from . import api, cluster, conf, containers, faults, guests, pmxcfs, schema, tasks
from .errors import ApiError, died
from .formats import Spec
from .local import hang_up, this_node
from .node import Node

FAILED = 255  # what Perl's exit(-1) comes out as
ROOT = "root@pam"
VERBS = {"get": "GET", "create": "POST", "set": "PUT", "delete": "DELETE"}
CONFIG_PATH = "/nodes/localhost/lxc/{}/config"


def options(words: list[str], table: dict[str, Spec], repeated: tuple[str, ...] = ()) -> dict[str, t.Any]:
    """``-key value``, ``--key value``, ``--key=value`` and bare ``--boolean`` as a dict."""
    found: dict[str, t.Any] = {}
    words = list(words)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word.strip("-") == "":
            raise ApiError(400, "too many arguments")
        key, equals, value = word.lstrip("-").partition("=")
        if not equals:
            spec = schema.numbered(table, key) or {}
            if spec.get("type") == "boolean" and (not words or words[0].startswith("-")):
                value = "1"
            elif words:
                value = words.pop(0)
            else:
                raise ApiError(400, f"Option {key} requires an argument")
        found[key] = [*found[key], value] if key in found and key in repeated else [value] if key in repeated else value
    return found


def pvesh(node: Node, words: list[str]) -> int:
    """``pvesh VERB PATH [-key value]``: the result as JSON or, for people, as a list of keys and values."""
    quiet = words[:1] == ["--nooutput"]
    words = words[1:] if quiet else words
    if len(words) < 2 or words[0] not in VERBS:
        raise ApiError(400, "usage: pvesh <get|create|set|delete> <api_path> [OPTIONS]")
    verb, path, rest = words[0], words[1], words[2:]
    try:
        method, _ = api.find(VERBS[verb], path)
    except ApiError:
        print(f"No '{verb}' handler defined for '{path}'", file=sys.stderr)
        return 1
    given = options(rest, {**schema.METHODS[method.name], "quiet": schema.BOOLEAN, "noproxy": schema.BOOLEAN})
    form = given.pop("output-format", "text")
    quiet = bool(given.pop("quiet", quiet))
    given.pop("noproxy", None)
    data = api.call(node, ROOT, VERBS[verb], path, given)
    if data is not None and not quiet:
        print(_shown(data, form))
    return 0


def _shown(data: t.Any, form: str) -> str:
    if form in ("json", "json-pretty"):
        return json.dumps(data, sort_keys=True, indent=3 if form == "json-pretty" else None, ensure_ascii=False)
    if isinstance(data, dict):
        return "\n".join(f"{key}: {value}" for key, value in sorted(data.items()))
    if isinstance(data, list):
        return "\n".join(_shown(entry, "json") for entry in data)
    return str(data)


def pct(node: Node, words: list[str]) -> int:
    """``pct COMMAND [VMID] ...`` on this node's containers."""
    command, rest = (words[0], words[1:]) if words else ("", [])
    if command == "list":
        return _list(node)
    if command not in PCT or not rest:
        raise ApiError(400, f"usage: pct <{'|'.join(['list', *PCT])}> <vmid> [OPTIONS]")
    if not rest[0].isdecimal():
        why = f"type check ('integer') failed - got '{rest[0]}'"
        raise ApiError(400, "Parameter verification failed.", {"vmid": why})
    return PCT[command](node, int(rest[0]), rest[1:])


def _list(node: Node) -> int:
    vmids = node.vmids()
    if vmids:
        print(f"{'VMID':<10} {'Status':<10} {'Lock':<12} {'Name':<20}")
    for vmid in vmids:
        content = node.load(vmid)
        state = "running" if node.runtime.running(vmid) else "stopped"
        print(f"{vmid:<10} {state:<10} {content.get('lock', ''):<12} {content.get('hostname', f'CT{vmid}'):<20}")
    return 0


def _api(name: str, *positional: str) -> t.Callable[[Node, int, list[str]], int]:
    """A command that only calls a method of the API; its exit status is that of the task, if it is one.

    ``positional`` are the parameters that are given without their names.
    """
    verb, path = name.split(" ", 1)

    def run(node: Node, vmid: int, words: list[str]) -> int:
        if len(words) < len(positional):
            raise ApiError(400, "not enough arguments")
        given = dict(zip(positional, words)) | options(words[len(positional) :], schema.METHODS[name])
        where = {"node": "localhost", "vmid": vmid, **given}
        in_path = [key for key in positional if f"{{{key}}}" in path]
        result = api.call(node, ROOT, verb, path.format(**where), {k: v for k, v in given.items() if k not in in_path})
        return _ended(node, result)

    return run


def _ended(node: Node, result: t.Any) -> int:
    if isinstance(result, str) and result.startswith("UPID:"):
        ended = tasks.Task(node, result).exit_status()
        return 0 if ended == "OK" or ended.startswith("WARNINGS") else FAILED
    return 0


def _create(node: Node, vmid: int, words: list[str]) -> int:
    if not words:
        raise ApiError(400, "not enough arguments")
    name = "POST /nodes/{node}/lxc"
    given = {**options(words[1:], schema.METHODS[name]), "vmid": vmid, "ostemplate": words[0]}
    if "ssh-public-keys" in given:  # pct takes a file, the API the keys
        given["ssh-public-keys"] = Path(given["ssh-public-keys"]).read_text()
    return _ended(node, api.call(node, ROOT, "POST", "/nodes/localhost/lxc", given))


def _config(node: Node, vmid: int, words: list[str]) -> int:
    given = options(words, schema.METHODS["GET /nodes/{node}/lxc/{vmid}/config"])
    content = api.call(node, ROOT, "GET", CONFIG_PATH.format(vmid), given)
    for key in sorted(content.keys() - {"digest", "lxc"}):
        value = content[key]
        if key == "description":
            value = conf.encoded(value)
        print(f"{key}: {value}")
    for key, value in content.get("lxc", []):
        print(f"{key}: {value}")
    return 0


def _pending(node: Node, vmid: int, words: list[str]) -> int:
    options(words, {})
    for item in sorted(conf.pending_items(node.load(vmid)), key=lambda item: item["key"]):
        if item["key"] == "digest":
            continue
        for name, word in (("value", "del" if "delete" in item else "cur"), ("pending", "new")):
            if name in item:
                value = conf.encoded(item[name]) if item["key"] == "description" else item[name]
                print(f"{word} {item['key']}: {value}")
    return 0


def _status(node: Node, vmid: int, words: list[str]) -> int:
    verbose = options(words, {"verbose": schema.BOOLEAN}).get("verbose")
    shown = containers.status(api.Call(node, ROOT, {"vmid": vmid}), vmid, node.load(vmid))
    for key, value in sorted(shown.items()) if verbose else [("status", shown["status"])]:
        print(f"{key}: {value}")
    return 0


def _must_run(node: Node, vmid: int) -> None:
    node.load(vmid)
    if not node.runtime.running(vmid):
        raise died(f"container '{vmid}' not running!")


def _exec(node: Node, vmid: int, words: list[str]) -> int:
    """Everything after ``--`` is the command; its exit status is passed on."""
    split = words.index("--") if "--" in words else 0
    options(words[:split], {"keep-env": schema.BOOLEAN})
    command = words[split:][1:] if "--" in words else words
    if not command:
        raise ApiError(400, "missing command")
    _must_run(node, vmid)
    return node.runtime.attach(vmid, command)


def _push(node: Node, vmid: int, words: list[str]) -> int:
    """Copy a file of the node to ``destination`` in the guest, with ``--perms``, ``--user`` and ``--group`` there."""
    if len(words) < 2:
        raise ApiError(400, "not enough arguments")
    given = options(words[2:], {})
    if unknown := given.keys() - {"perms", "user", "group"}:
        raise ApiError(400, f"Unknown option: {min(unknown)}")
    _must_run(node, vmid)
    script = 'set -e; cat > "$1"; chown "$2:$3" "$1"; chmod "$4" "$1"'
    values = [given.get("user", "0"), given.get("group", "0"), given.get("perms", "0644")]
    with open(words[0], "rb") as source:
        return node.runtime.attach(vmid, ["sh", "-c", script, "pct-push", words[1], *values], source)


def _unlock(node: Node, vmid: int, words: list[str]) -> int:
    options(words, {})
    with node.locked(vmid):
        content = node.load(vmid)
        content.pop("lock", None)
        node.save(vmid, content)
    return 0


def _list_snapshots(node: Node, vmid: int, words: list[str]) -> int:
    """The tree of snapshots, oldest first, with what is now at its place in it."""
    options(words, {})
    rows = {row["name"]: row for row in api.call(node, ROOT, "GET", f"/nodes/localhost/lxc/{vmid}/snapshot", {})}
    below: dict[str | None, list[str]] = {}
    for name, row in sorted(rows.items(), key=lambda item: item[1].get("snaptime", float("inf"))):
        below.setdefault(row.get("parent") if row.get("parent") in rows else None, []).append(name)

    def show(name: str, prefix: str) -> None:
        row = rows[name]
        at = time.strftime("%F %H:%M:%S", time.localtime(row["snaptime"])) if "snaptime" in row else ""
        description = (row["description"] or "no-description").split("\n")[0]
        print(f"{prefix} {name:<{max(30 - len(prefix), 0)}} {at:<23} {description}")
        for child in below.get(name, []):
            show(child, "    " + prefix)

    for name in below.get(None, []):
        show(name, "`->")
    return 0


NAME = "/nodes/{node}/lxc/{vmid}"
PCT: dict[str, t.Callable[[Node, int, list[str]], int]] = {
    "clone": _api(f"POST {NAME}/clone", "newid"),
    "config": _config,
    "create": _create,
    "delsnapshot": _api(f"DELETE {NAME}/snapshot/{{snapname}}", "snapname"),
    "destroy": _api(f"DELETE {NAME}"),
    "exec": _exec,
    "listsnapshot": _list_snapshots,
    "pending": _pending,
    "push": _push,
    "reboot": _api(f"POST {NAME}/status/reboot"),
    "resize": _api(f"PUT {NAME}/resize", "disk", "size"),
    "rollback": _api(f"POST {NAME}/snapshot/{{snapname}}/rollback", "snapname"),
    "set": _api(f"PUT {NAME}/config"),
    "shutdown": _api(f"POST {NAME}/status/shutdown"),
    "snapshot": _api(f"POST {NAME}/snapshot", "snapname"),
    "start": _api(f"POST {NAME}/status/start"),
    "status": _status,
    "stop": _api(f"POST {NAME}/status/stop"),
    "template": _api(f"POST {NAME}/template"),
    "unlock": _unlock,
}


def pveversion(node: Node, words: list[str]) -> int:
    """The version of the manager and the kernel that runs."""
    print(f"{cluster.manager_version()} (running kernel: {os.uname().release})")
    return 0


def pve_guests(node: Node, words: list[str]) -> int:
    """What the unit pve-guests runs: ``start`` at boot, ``stop`` at shutdown."""
    work = {"start": guests.at_boot, "stop": guests.at_shutdown}[words[0]]
    work(node, lambda text: print(text, flush=True))
    return 0


def pve_quorum(node: Node, words: list[str]) -> int:
    """``lost`` or ``found``: whether the cluster has quorum. Without it nobody, root neither, writes into /etc/pve."""
    folder, quorate, behind = str(node.etc_pve), words[0] == "found", node.root / pmxcfs.BEHIND
    if node.quorate() == quorate:
        return 0
    if (behind / "nodes").exists():  # pmxcfs is mounted, and refuses by itself
        cluster.set_quorum(node, quorate, behind)
        return 0
    if quorate:
        _mount("umount", folder)
    cluster.set_quorum(node, quorate)
    if not quorate:
        _mount("mount", "--bind", folder, folder)
        _mount("mount", "-o", "remount,bind,ro", folder)
    return 0


def _mount(*command: str) -> None:
    subprocess.run(command, check=True)


PROGRAMS = {
    "pct": pct,
    "pvesh": pvesh,
    "pveversion": pveversion,
    "pve-guests": pve_guests,
    "pve-quorum": pve_quorum,
}


def main(program: str, words: list[str]) -> int:
    """Run one of the programs; errors go to standard error as Proxmox prints them."""
    try:
        return PROGRAMS[program](this_node(synchronous=True), words)
    except ApiError as error:
        print(error.for_terminal(), file=sys.stderr)
        return FAILED
    except faults.Dropped:
        hang_up()
        return FAILED
    except BrokenPipeError:
        return FAILED
