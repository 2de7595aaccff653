# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig's network on the controller: one bridge on a free subnet, with NAT to the outside in an nftables table of its own."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from pathlib import Path

FORWARD = Path("/proc/sys/net/ipv4/ip_forward")


def _run(*command: str, stdin: str | None = None, check: bool = True) -> str:
    return subprocess.run(command, check=check, input=stdin, text=True, stdout=subprocess.PIPE).stdout


def free_prefix() -> str:
    """The first of 10.87.0.0/24, 10.87.1.0/24, ... that overlaps no address and no route here, as ``10.87.N``."""
    taken = [
        ipaddress.ip_network(f"{address['local']}/{address['prefixlen']}", strict=False)
        for link in json.loads(_run("ip", "-json", "-4", "address", "show"))
        for address in link.get("addr_info", [])
    ]
    for route in json.loads(_run("ip", "-json", "-4", "route", "show", "table", "all")):
        if route.get("dst", "default") != "default":
            taken.append(ipaddress.ip_network(route["dst"], strict=False))
    for number in range(256):
        prefix = f"10.87.{number}"
        if not any(net.overlaps(ipaddress.ip_network(f"{prefix}.0/24")) for net in taken):
            return prefix
    raise SystemExit("rig: no free subnet in 10.87.0.0/16; remove an address or a route there.")


def uplink_mtu() -> int:
    """The MTU of the default route's link, so that nothing of the rig sends packets that the way out refuses."""
    routes = json.loads(_run("ip", "-json", "-4", "route", "show", "default"))
    if not routes:
        return 1500
    return int(json.loads(_run("ip", "-json", "link", "show", "dev", routes[0]["dev"]))[0]["mtu"])


def up(bridge: str, table: str, prefix: str, mtu: int) -> None:
    """Make bridge and table anew. Both names belong to this rig alone, so what bears them is a leftover of it."""
    down(bridge, table)
    _run("ip", "link", "add", bridge, "mtu", str(mtu), "type", "bridge")
    _run("ip", "address", "add", f"{prefix}.1/24", "dev", bridge)
    _run("ip", "link", "set", bridge, "up")
    FORWARD.write_text("1\n")
    rules = f"""table ip {table} {{
        chain outward {{
            type nat hook postrouting priority srcnat; policy accept;
            ip saddr {prefix}.0/24 ip daddr != {prefix}.0/24 masquerade
        }}
    }}
    """
    _run("nft", "-f", "-", stdin=rules)


def is_up(bridge: str, table: str, prefix: str) -> bool:
    """Whether both are there, and on this subnet."""
    links = json.loads(_run("ip", "-json", "-4", "address", "show"))
    addresses = [(link["ifname"], address["local"]) for link in links for address in link.get("addr_info", [])]
    return (bridge, f"{prefix}.1") in addresses and f"table ip {table}" in _run("nft", "list", "tables")


def down(bridge: str, table: str) -> None:
    """Remove bridge and table if they are there."""
    if bridge in [link["ifname"] for link in json.loads(_run("ip", "-json", "link", "show"))]:
        _run("ip", "link", "delete", bridge)
    if f"table ip {table}" in _run("nft", "list", "tables"):
        _run("nft", "delete", "table", "ip", table)


def resolver() -> str:
    """The nameservers that a machine of the rig can reach: not systemd-resolved's stub on the controller's loopback."""
    for path in ("/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"):
        if Path(path).exists():
            lines = [line for line in Path(path).read_text().splitlines() if line.startswith(("nameserver", "search"))]
            if any(line.startswith("nameserver") and not line.split()[1].startswith("127.") for line in lines):
                return "\n".join(lines) + "\n"
    raise SystemExit("rig: no nameserver in /etc/resolv.conf that a container can reach; add one.")
