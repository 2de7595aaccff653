# SPDX-License-Identifier: GPL-3.0-or-later
"""What lxc-start leaves on standard error (``/run/pve/ct-<vmid>.stderr``), and what Proxmox shows of it. Pure."""

from __future__ import annotations

import re

HOOK = "/usr/share/lxc/hooks/lxc-pve-prestart-hook"
STATUS = 2  # what Perl's die makes of a hook that found something missing
ERRORS = [
    ("utils", "run_buffer", 571, "Script exited with status {status}"),
    ("start", "lxc_init", 845, 'Failed to run lxc.hook.pre-start for container "{vmid}"'),
    ("start", "__lxc_start", 2034, 'Failed to initialize container "{vmid}"'),
]


def shown(vmid: int, text: str) -> list[str]:
    """The lines without what names program and time in front of them, as Proxmox puts them into a task's log."""
    prefix = re.compile(rf"^\s*(?:lxc-start:?\s+{vmid}:?\s*\S+\s*)?(.*?)\s*$")
    return [prefix.sub(r"\1", line) for line in text.splitlines()]


def failed_hook(vmid: int, why: str, debug: bool) -> str:
    """What LXC says when Proxmox's hook before the start fails: why is only there where debugging was asked for.

    On the rig the work of that hook is done by the task itself, before LXC is called.
    """
    errors = [(part, where, line, said.format(status=STATUS, vmid=vmid)) for part, where, line, said in ERRORS]
    lines = [f"lxc-start: {vmid}: ../src/lxc/{part}.c: {where}: {line} {said}" for part, where, line, said in errors]
    if debug:
        start = f"lxc-start {vmid} 20260101000000.000 "
        output = f"Script exec {HOOK} {vmid} lxc pre-start produced output: {why}"
        lines += [f"{start}DEBUG    utils - ../src/lxc/utils.c:run_buffer:560 - {output}", ""]
        lines += [
            f"{start}ERROR    {part} - ../src/lxc/{part}.c:{where}:{line} - {said}"
            for part, where, line, said in errors
        ]
    return "".join(line + "\n" for line in lines)
