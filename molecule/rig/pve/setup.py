# SPDX-License-Identifier: GPL-3.0-or-later
"""Files inside a guest that Proxmox writes: keys and identity once at creation, name, network and resolver at each start."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
from pathlib import Path

from .conf import Conf
from .formats import parse_property_string, split_list
from .schema import NETWORK


@dataclasses.dataclass(frozen=True)
class GuestRoot:
    """The root file system of a guest that does not run, whose files belong to shifted IDs."""

    path: Path
    offset: int  # user and group 0 of the guest on the node

    def inside(self, name: str) -> Path:
        """A path on the node; a link in the guest never leads out of it."""
        target = self.path / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(self.path.resolve()):
            raise ValueError(f"{name} leads out of the guest")
        return target

    def own(self, path: Path, mode: int) -> None:
        """Give a file or folder to the guest's root; the mode comes last, because chown clears bits."""
        os.chown(path, self.offset, self.offset, follow_symlinks=False)
        path.chmod(mode)

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write a file as the guest's root would."""
        target = self.inside(name)
        for parent in reversed(target.relative_to(self.path).parents):
            folder = self.path / parent
            if folder.stat().st_uid < self.offset:
                os.chown(folder, self.offset, self.offset)
        target.unlink(missing_ok=True)
        target.write_text(text)
        self.own(target, mode)

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link."""
        link = self.inside(name)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        os.chown(link, self.offset, self.offset, follow_symlinks=False)

    def read(self, name: str) -> str:
        """A file's text, empty if it is not there."""
        path = self.inside(name)
        return path.read_text() if path.exists() else ""


def os_type(root: GuestRoot) -> str:
    """The distribution that os-release names, in Proxmox's words."""
    found = re.search(r'^ID="?([a-z]+)"?$', root.read("usr/lib/os-release") or root.read("etc/os-release"), re.M)
    return found[1] if found and found[1] in ("debian", "ubuntu") else "unmanaged"


def after_creation(root: GuestRoot, password: str | None, ssh_public_keys: str | None) -> list[str]:
    """Identity, host keys, login. Returns the lines that the task's log shows."""
    root.write("etc/machine-id", "")
    # The one unit that fails in an unprivileged guest: debugfs is not to be mounted there.
    root.link("etc/systemd/system/sys-kernel-debug.mount", "/dev/null")
    root.link(
        "etc/systemd/system/multi-user.target.wants/systemd-networkd.service",
        "/usr/lib/systemd/system/systemd-networkd.service",
    )
    if ssh_public_keys:
        root.write("root/.ssh/authorized_keys", ssh_public_keys.rstrip("\n") + "\n", 0o600)
        root.own(root.inside("root/.ssh"), 0o700)
    if password:
        digest = subprocess.run(
            ["openssl", "passwd", "-6", "-stdin"], input=password, capture_output=True, text=True, check=True
        ).stdout.strip()
        shadow = re.sub(r"(?m)^root:[^:]*:", lambda _: f"root:{digest}:", root.read("etc/shadow"))
        owner = root.inside("etc/shadow").stat()
        root.write("etc/shadow", shadow, 0o640)
        os.chown(root.inside("etc/shadow"), owner.st_uid, owner.st_gid)
    return _host_keys(root)


def _host_keys(root: GuestRoot) -> list[str]:
    """New SSH host keys: those of the template would be the same in every guest."""
    said = []
    for old in root.inside("etc/ssh/x").parent.glob("ssh_host_*"):
        old.unlink()
    for kind in ("ecdsa", "ed25519"):
        name = f"ssh_host_{kind}_key"
        said.append(f"Creating SSH host key '{name}' - this may take some time ...")
        key = root.inside(f"etc/ssh/{name}")
        command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "root@guest", "-f", str(key)]
        subprocess.run(command, check=True)
        root.own(key, 0o600)
        root.own(key.with_name(f"{name}.pub"), 0o644)
    return said


def before_start(root: GuestRoot, vmid: int, content: Conf, node_resolv_conf: str) -> None:
    """Name, addresses and resolver from the configuration."""
    hostname = content.get("hostname", f"CT{vmid}")
    short = hostname.split(".")[0]
    networks = [parse_property_string(NETWORK, content[key]) for key in sorted(content) if re.fullmatch(r"net\d+", key)]
    addresses = [network["ip"].split("/")[0] for network in networks if "/" in network.get("ip", "")]
    names = " ".join(dict.fromkeys([hostname, short]))
    root.write("etc/hostname", short + "\n")
    hosts = f"127.0.0.1 localhost\n::1 localhost\n{(addresses or ['127.0.1.1'])[0]} {names}\n"
    root.write("etc/hosts", with_section(root.read("etc/hosts"), hosts))
    for old in root.inside("etc/systemd/network/x").parent.glob("*.network"):
        if "# written by Proxmox" in old.read_text():
            old.unlink()
    for network in networks:
        root.write(f"etc/systemd/network/{network['name']}.network", network_unit(network))
    resolver = resolv_conf(content) or node_resolv_conf
    root.write("etc/resolv.conf", with_section(root.read("etc/resolv.conf"), resolver))


def with_section(text: str, section: str) -> str:
    """A file with Proxmox's section in it, at the top at first; what others wrote around it stays."""
    begin, end = "# --- BEGIN PVE ---\n", "# --- END PVE ---\n"
    before, found, rest = text.partition(begin)
    after = rest.partition(end)[2] if found else before
    return f"{before if found else ''}{begin}{section.rstrip(chr(10))}\n{end}{after}"


def network_unit(network: dict[str, str]) -> str:
    """A systemd-networkd unit for one interface."""
    lines = ["# written by Proxmox", "[Match]", f"Name={network['name']}", "", "[Network]"]
    dhcp = {"ip": "ipv4", "ip6": "ipv6"}
    asked = [family for key, family in dhcp.items() if network.get(key) == "dhcp"]
    if asked:
        lines.append(f"DHCP={'yes' if len(asked) == 2 else asked[0]}")
    lines += [f"Address={network[key]}" for key in ("ip", "ip6") if "/" in network.get(key, "")]
    lines += [f"Gateway={network[key]}" for key in ("gw", "gw6") if key in network]
    lines.append(f"IPv6AcceptRA={'true' if network.get('ip6') == 'auto' else 'false'}")
    return "\n".join(lines) + "\n"


def resolv_conf(content: Conf) -> str:
    """The resolver that the configuration asks for, empty if it asks for none."""
    domains = split_list(content.get("searchdomain", ""))
    lines = [f"search {' '.join(domains)}"] if domains else []
    lines += [f"nameserver {server}" for server in split_list(content.get("nameserver", ""))]
    return "".join(line + "\n" for line in lines)
