# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that Proxmox would refuse: the limits are compared with the published description, the sentences written out."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.pve import values

NET = {"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24", "gw": "192.0.2.1"}
GOOD: dict[str, t.Any] = {
    "vmid": 101,
    "node": "pve1",
    "hostname": "infer-1.example.com",
    "ostemplate": "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
    "rootfs": {"storage": "local-zfs", "size_gib": 64},
    "cores": 0,
    "memory_mib": 16,
    "swap_mib": 0,
    "net": [NET, {"id": 31, "name": "eth1", "ip": "dhcp", "ip6": "2001:db8::5/64", "gw6": "fe80::1", "tag": 4094}],
    "features": {"nesting": True, "mount": "nfs;cifs"},
    "devices": [{"path": "/dev/nvidia0", "gid": 44, "mode": "0660"}],
    "mounts": [{"path": "/var/cache", "storage": "tank", "size_gib": 1}],
    "startup": "order=2,up=30",
    "tags": ["gpu", "a.b+c_d-e"],
    "ssh_public_keys": ["ssh-ed25519 AAAAC3Nz me@here\n", "# a comment\necdsa-sha2-nistp256 AAAA"],
}


def test_nothing_is_wrong_with_good_ones() -> None:
    assert values.faults(GOOD) == []
    assert values.faults({"vmid": 101, "node": "pve1"}) == []


def test_limits_are_those_of_the_published_description(shared_data: Path) -> None:
    published = json.loads((shared_data / "pve-api-lxc.json").read_text())["POST /nodes/{node}/lxc"]["parameters"]
    options = published["properties"]
    keys = {"vmid": "vmid", "memory_mib": "memory", "swap_mib": "swap"}
    for option, key in keys.items():
        least, most = values.NUMBERS[option]
        assert (least, most) == (int(options[key]["minimum"]), options[key].get("maximum")), option
    # Proxmox begins at one core; 0 is this module's word for all of them.
    assert values.NUMBERS["cores"] == (int(options["cores"]["minimum"]) - 1, options["cores"]["maximum"])
    assert options["description"]["maxLength"] == values.DESCRIPTION_LENGTH
    network = options["net[n]"]["format"]
    assert (network["tag"]["minimum"], network["tag"]["maximum"]) == (1, 4094)
    assert (network["mtu"]["minimum"], network["mtu"]["maximum"]) == (64, 65535)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("vmid", 99, "'vmid' is 99; it must be 100 or more, and 999999999 at most"),
        ("cores", -1, "'cores' is -1; it must be 0 or more, and 8192 at most"),
        ("cores", 8193, "'cores' is 8193; it must be 0 or more, and 8192 at most"),
        ("memory_mib", 15, "'memory_mib' is 15; it must be 16 or more"),
        ("swap_mib", -1, "'swap_mib' is -1; it must be 0 or more"),
        ("hostname", "infer_1", "'hostname' is 'infer_1'; it must be a DNS name"),
        ("hostname", "-a", "'hostname' is '-a'; it must be a DNS name"),
        ("hostname", "a" * 64, "it must be a DNS name: letters, digits and hyphens, in parts of 63 at most"),
        ("tags", ["good", "not good"], "'tags' has 'not good'; a tag is made of letters, digits and _ - + ."),
        ("tags", ["-a"], "'tags' has '-a'"),
        ("startup", "first", "'startup' is 'first'; it must be like order=2,up=30,down=60"),
        ("description", "x" * 8193, "'description' has 8193 characters; 8192 is the most"),
        ("ostemplate", "debian-13.tar.zst", "'ostemplate' is 'debian-13.tar.zst'; it must be STORAGE:vztmpl/FILE"),
        ("ostemplate", "local:iso/debian.iso", "it must be STORAGE:vztmpl/FILE, with a file that ends in .tar.zst"),
        ("rootfs", {"storage": "tank", "size_gib": 0}, "size_gib of 'rootfs' is 0; it must be 1 or more"),
        ("rootfs", {"storage": "a b", "size_gib": 8}, "storage of 'rootfs' is 'a b', which is no name that a storage"),
        ("features", {"mount": "nfs,cifs"}, "'features' has mount 'nfs,cifs'; it must be names of file systems"),
        (
            "mounts",
            [{"path": "cache", "storage": "tank", "size_gib": 8}],
            "'cache' in 'mounts' is not an absolute path",
        ),
        ("mounts", [{"path": "/a", "storage": "tank", "size_gib": -2}], "size_gib of '/a' in 'mounts' is -2"),
        ("ssh_public_keys", ["AAAA"], "entry 1 of 'ssh_public_keys' is not a public key"),
        ("devices", [{"path": "/dev/nvidia0", "mode": "660"}], "mode '660' of '/dev/nvidia0' in 'devices' is not four"),
        ("devices", [{"path": "/dev/nvidia0", "gid": -1}], "gid of '/dev/nvidia0' in 'devices' is -1; it must be 0"),
        ("devices", [{"path": "/etc/passwd"}], "'/etc/passwd' in 'devices' is not a device path that Proxmox accepts"),
        ("devices", [{"path": "/dev/a/.."}], "it must be below /dev/"),
        ("net", [NET, NET], "'net' has two entries with id 0"),
        ("net", [NET | {"id": 32}], "id of net32 in 'net' is 32; it must be 0 or more, and 31 at most"),
        ("net", [NET | {"tag": 0}], "tag of net0 in 'net' is 0; it must be 1 or more, and 4094 at most"),
        ("net", [NET | {"mtu": 63}], "mtu of net0 in 'net' is 63"),
        (
            "net",
            [NET | {"name": "eth0,x"}],
            "name of net0 in 'net' is 'eth0,x'; it must be of letters, digits and - _ .",
        ),
        ("net", [NET | {"bridge": "a" * 16}], "and 15 at most"),
        ("net", [NET | {"hwaddr": "01:00:00:00:00:01"}], "it must be a unicast address"),
        ("net", [NET | {"ip": "192.0.2.21"}], "ip of net0 in 'net' is '192.0.2.21'; it must be an IPv4 address with a"),
        ("net", [NET | {"ip": "192.0.2.300/24"}], "a prefix length of 8 to 32, or dhcp or manual"),
        ("net", [NET | {"ip": "10.0.0.1/7"}], "a prefix length of 8 to 32, or dhcp or manual"),
        ("net", [NET | {"ip": "10.0.0.1/255.0.0.0"}], "ip of net0 in 'net' is '10.0.0.1/255.0.0.0'"),
        ("net", [NET | {"ip": "auto"}], "ip of net0 in 'net' is 'auto'"),
        (
            "net",
            [NET | {"ip6": "192.0.2.1/24"}],
            "an IPv6 address with a prefix length of 8 to 128, or dhcp or auto or",
        ),
        ("net", [NET | {"gw": "192.0.2.1/24"}], "gw of net0 in 'net' is '192.0.2.1/24'; it must be an IPv4 address"),
        ("net", [NET | {"gw6": "192.0.2.1"}], "gw6 of net0 in 'net' is '192.0.2.1'; it must be an IPv6 address"),
    ],
)
def test_what_is_refused(option: str, value: t.Any, text: str) -> None:
    [(named, sentence)] = values.faults(GOOD | {option: value})
    assert named == option
    assert text in sentence


def test_every_wrong_option_is_named() -> None:
    wrong = {"cores": -1, "memory_mib": 1, "tags": ["!"], "net": [NET | {"ip": "x", "tag": 5000}]}
    assert [option for option, _ in values.faults(GOOD | wrong)] == ["cores", "memory_mib", "tags", "net", "net"]


@pytest.mark.parametrize(
    ("network", "told"),
    [
        (NET, []),
        ({"ip": "dhcp", "gw": "192.0.2.1"}, []),
        (
            {"ip": "192.0.2.21/32", "gw": "198.51.100.1"},
            [],
        ),  # as at some hosters: Proxmox makes a route to it on the link
        ({"ip": "192.0.2.0/31", "gw": "192.0.2.1"}, []),
        ({"ip6": "2001:db8::5/64", "gw6": "fe80::1"}, []),
        ({"ip6": "2001:db8::/64", "gw6": "2001:db8::1"}, []),
        (
            NET | {"gw": "192.0.3.1"},
            [("PVE_GATEWAY_UNREACHABLE", "gw 192.0.3.1 of net0 is not in the subnet 192.0.2.0/24 of ip 192.0.2.21/24")],
        ),
        (
            NET | {"gw": "192.0.2.255"},
            [("PVE_GATEWAY_UNREACHABLE", "gw 192.0.2.255 of net0 is the broadcast address of the subnet 192.0.2.0/24")],
        ),
        (NET | {"gw": "192.0.2.21"}, [("PVE_ADDRESS_UNUSABLE", "ip 192.0.2.21/24 of net0 is also its gw")]),
        (
            NET | {"ip": "192.0.2.0/24"},
            [("PVE_ADDRESS_UNUSABLE", "ip 192.0.2.0/24 of net0 is the network address of its subnet 192.0.2.0/24")],
        ),
        (
            NET | {"ip": "192.0.2.255/24"},
            [("PVE_ADDRESS_UNUSABLE", "ip 192.0.2.255/24 of net0 is the broadcast address of its subnet 192.0.2.0/24")],
        ),
        (
            {"ip6": "2001:db8::5/64", "gw6": "2001:db8:1::1"},
            [
                (
                    "PVE_GATEWAY_UNREACHABLE",
                    "gw6 2001:db8:1::1 of net0 is not in the subnet 2001:db8::/64 of ip6 2001:db8::5/64",
                )
            ],
        ),
    ],
)
def test_addresses_that_do_not_fit(network: dict[str, t.Any], told: list[tuple[str, str]]) -> None:
    assert list(values.addresses({"id": 0, **network})) == told
