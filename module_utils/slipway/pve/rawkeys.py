# SPDX-License-Identifier: GPL-3.0-or-later
"""The raw ``lxc.*`` keys that Proxmox takes in a container's file; a line with any other is lost at its next write. Pure.

As in pve-container 6.1.10 (PVE/LXC/Config.pm, is_valid_lxc_conf_key). A newer one may know more, so what it reads back
decides, and not this table.
"""

from __future__ import annotations

import re

# Keys that Proxmox makes itself and refuses in the file.
GENERATED = ("lxc.rootfs.path", "lxc.rootfs.options")
# Everything below these is taken; lxc.limit is the name that lxc.prlimit had before LXC 3.
_FAMILIES = re.compile(r"lxc\.(cgroup2?|prlimit|limit|net)\.")
_ENDS_BY_START = {
    "apparmor": "profile allow_incomplete allow_nesting raw",
    "cap": "drop keep",
    "console": "logfile path",
    "devtty": "dir",
    "environment": "runtime hooks",
    "hook": "autodev pre-start pre-mount mount start stop post-stop clone destroy version",
    "init": "cmd cwd",
    "log": "level file",
    "mount": "fstab entry auto",
    "network": "type flags link mtu name hwaddr ipv4 ipv4.gateway ipv6 ipv6.gateway script.up script.down",
    "pty": "max",
    "rootfs": "mount",
    "seccomp": "profile notify.proxy notify.cookie",
    "selinux": "context",
    "signal": "halt reboot stop",
    "start": "auto delay order",
    "sysctl.fs": "mqueue",
    "sysctl.kernel": "msgmax msgmnb msgmni sem shmall shmmax shmmni shm_rmid_forced",
    "tty": "max",
    "uts": "name",
}
_ALONE = "arch autodev environment group idmap include kmsg"
# Names from before LXC 3, taken with a warning.
_OLD = (
    "aa_profile aa_allow_incomplete console devttydir haltsignal rebootsignal stopsignal id_map init_cmd loglevel logfile "
    "mount pts se_context seccomp tty utsname"
)
_KEYS = frozenset(
    [f"lxc.{start}.{end}" for start, ends in _ENDS_BY_START.items() for end in ends.split()]
    + [f"lxc.{key}" for key in f"{_ALONE} {_OLD}".split()]
)


def known(key: str) -> bool:
    """Whether Proxmox takes a line with this key."""
    return key in _KEYS or bool(_FAMILIES.match(key))
