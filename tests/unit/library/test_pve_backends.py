# SPDX-License-Identifier: GPL-3.0-or-later
"""One scenario over both ways to the API: the same tasks send the same and give the same."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.modules import pve_container
from ssh_node import node_in

GUEST = {
    "node": "node1",
    "vmid": 101,
    "hostname": "infer1",
    "ostemplate": "local:vztmpl/debian-13.tar.zst",
    "rootfs": {"storage": "local-zfs", "size_gib": 8},
    "memory_mib": 4096,
    "description": 'it\'s the "first"\nof two lines, 100% $HOME; naïve',
    "tags": ["gpu"],
    "net": [{"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24"}],
    "devices": [{"path": "/dev/nvidia0", "gid": 44, "mode": "0660"}],
    "ssh_public_keys": ["ssh-ed25519 AAAA a@b"],
}
REFUSED = (
    400,
    "Parameter verification failed.",
    {"data": None, "errors": {"hostname": "value does not look like one"}},
)
LOCKED = (500, "can't lock file '/run/lock/lxc/pve-config-101.lock' - got timeout", {"data": None})
BROKEN = (500, "storage 'tank' is not online", {"data": None})
TASK = "nodes/node1/tasks/UPID:node1:0000ABCD:00001234:6731F2A0:vzstart:101:deploy@pve!slipway:"
STATUS = "nodes/node1/lxc/101/status"
# Options of the module, and what a path answers in place of the usual.
STEPS: dict[str, tuple[dict[str, t.Any], dict[str, list[t.Any]]]] = {
    "created": ({}, {}),
    "unchanged": ({}, {}),
    "changed": ({"memory_mib": 8192, "tags": []}, {}),
    "unset": ({"description": "", "devices": []}, {}),
    "refused": ({"hostname": "-"}, {"PUT nodes/node1/lxc/101/config": [REFUSED]}),
    "broken": ({"hostname": "b"}, {"PUT nodes/node1/lxc/101/config": [BROKEN] * 9}),
    "waited for": ({"state": "started"}, {f"POST {STATUS}/start": [LOCKED, LOCKED]}),
    "warned": (
        {"state": "restarted"},
        {
            f"{TASK.replace('vzstart', 'vzreboot')}/status": [{"status": "stopped", "exitstatus": "WARNINGS: 1"}],
            f"{TASK.replace('vzstart', 'vzreboot')}/log": [[{"n": 1, "t": "WARN: old systemd"}]],
        },
    ),
    "stopped": ({"state": "stopped"}, {}),
    "failed": (
        {"state": "started"},
        {
            # A start that failed is tried once more, for its reason.
            f"{TASK}/status": [{"status": "stopped", "exitstatus": "startup for container '101' failed"}] * 2,
            f"{TASK}/log": [[{"n": 1, "t": "Device /dev/nvidia-uvm does not exist"}]] * 3,
        },
    ),
    "destroyed": ({"state": "absent", "purge": True}, {}),
    "absent": ({"state": "absent"}, {}),
}


def pvesh(proxmox: t.Any, words: list[str]) -> tuple[str, str, int]:
    """The program on that node: the same answers, said as pvesh says them."""
    program, verb, path, *rest = words
    if program == "sh":
        # Nothing is recorded on this node.
        return "", "", 127
    assert program == "pvesh" and rest[-2:] == ["--output-format", "json"]
    method = {"create": "POST", "set": "PUT"}.get(verb, verb.upper())
    path = path.removeprefix("/")
    arguments = {name.removeprefix("-"): value for name, value in zip(rest[:-2:2], rest[1:-2:2])}
    proxmox.requests.append((method, path, dict(arguments)))
    key = next((key for key in (f"{method} {path}", path) if proxmox.answers.get(key)), None)
    answer = proxmox.answers[key].pop(0) if key else proxmox._answer(method, path.split("/"), arguments)
    if not isinstance(answer, tuple):
        return json.dumps(answer) + "\n", "", 0
    status, reason, data = answer
    options = "".join(f"{name}: {text}\n" for name, text in data.get("errors", {}).items())
    # It says a status only where the API has one of its own.
    return "", f"{'' if status == 500 else f'{status} '}{reason}\n{options}", 255


def scenario(run: t.Callable[..., dict[str, t.Any]], proxmox: t.Any, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """The result and the requests of each step, first in check mode and then for real."""
    told: dict[str, t.Any] = {}
    for name, (more, answers) in STEPS.items():
        for check in (True, False):
            proxmox.answers = {path: list(replies) for path, replies in answers.items()}
            proxmox.answers["access/ticket"] = [{"ticket": "PVE:root@pam:1", "CSRFPreventionToken": "csrf"}]
            proxmox.requests.clear()
            result = run(pve_container, GUEST | more | options, check=check)
            requests = [request for request in proxmox.requests if request[1] != "access/ticket"]
            told[f"{name}{', in check mode' if check else ''}"] = (result, requests)
    return told


def test_both_ways_send_and_give_the_same(
    run_module: t.Callable[..., dict[str, t.Any]], proxmox: t.Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = node_in(tmp_path, monkeypatch)
    monkeypatch.setattr(node.server, "respond", lambda words: pvesh(proxmox, words))
    over_https = {"api_host": "127.0.0.1", "api_user": "root@pam", "api_password": "7-letters"}
    over_ssh = {**node.options, "timeout_seconds": 300}
    first = scenario(run_module, proxmox, over_https | {"timeout_seconds": 300})
    second = scenario(run_module, proxmox, over_ssh)
    node.listener.close()
    for name in first:
        assert second[name] == first[name], name
    results = {name: result for name, (result, _) in first.items()}
    assert [name for name, result in results.items() if result["rc"]] == ["refused", "broken", "failed"]
    assert {name for name, result in results.items() if result.get("changed") is False} == {
        *("unchanged", "unchanged, in check mode", "absent", "absent, in check mode"),
    }
    assert "hostname: value does not look like one" in results["refused"]["msg"]
    assert "Device /dev/nvidia-uvm does not exist" in results["failed"]["msg"]
    assert results["warned"]["findings"][0]["detail"] == "WARN: old systemd"
    assert all(method == "GET" for name in first if "check" in name for method, _, _ in first[name][1])
