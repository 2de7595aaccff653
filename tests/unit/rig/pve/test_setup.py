# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from pve import setup

GUEST = {
    "hostname": "infer1.example.org",
    "net0": "name=eth0,bridge=vmbr0,gw=192.0.2.1,ip=192.0.2.21/24,ip6=auto",
    "net1": "name=eth1,bridge=vmbr1,ip=dhcp",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> setup.GuestRoot:
    monkeypatch.setattr("os.chown", lambda *args, **kwargs: None)
    return setup.GuestRoot(tmp_path / "rootfs", 100000)


def test_what_others_wrote_stays(root: setup.GuestRoot) -> None:
    root.write("etc/resolv.conf", "options rotate\n")
    for _ in range(2):
        setup.before_start(root, 101, GUEST, "nameserver 192.0.2.53\n")
        root.write("etc/hosts", root.read("etc/hosts") + "192.0.2.99 mirror\n")
    section = "# --- BEGIN PVE ---\n127.0.0.1 localhost\n::1 localhost\n192.0.2.21 infer1.example.org infer1\n# --- END PVE ---\n"
    assert root.read("etc/hosts") == section + "192.0.2.99 mirror\n" * 2
    assert root.read("etc/resolv.conf") == (
        "# --- BEGIN PVE ---\nnameserver 192.0.2.53\n# --- END PVE ---\noptions rotate\n"
    )
    assert root.read("etc/hostname") == "infer1\n"


def test_networks_come_and_go_with_the_configuration(root: setup.GuestRoot) -> None:
    root.write("etc/systemd/network/own.network", "[Match]\n")
    setup.before_start(root, 101, GUEST, "")
    assert root.read("etc/systemd/network/eth0.network") == (
        "# written by Proxmox\n[Match]\nName=eth0\n\n[Network]\nAddress=192.0.2.21/24\nGateway=192.0.2.1\nIPv6AcceptRA=true\n"
    )
    assert "DHCP=ipv4\n" in root.read("etc/systemd/network/eth1.network")
    setup.before_start(root, 101, {"net1": GUEST["net1"]}, "")
    assert sorted(path.name for path in (root.path / "etc/systemd/network").iterdir()) == [
        "eth1.network",
        "own.network",
    ]


def test_resolver_of_the_configuration_goes_before_the_nodes(root: setup.GuestRoot) -> None:
    setup.before_start(
        root, 101, {"nameserver": "192.0.2.1 192.0.2.2", "searchdomain": "a.test"}, "nameserver 9.9.9.9\n"
    )
    assert root.read("etc/resolv.conf").splitlines()[1:-1] == [
        "search a.test",
        "nameserver 192.0.2.1",
        "nameserver 192.0.2.2",
    ]


def test_keys_are_new_and_closed(root: setup.GuestRoot) -> None:
    root.write("etc/shadow", "root:*:20000:0:99999:7:::\ndaemon:*:20000::::::\n", 0o640)
    root.write("etc/ssh/ssh_host_rsa_key", "the template's")
    setup.after_creation(root, "a-password", None)
    keys = sorted((root.path / "etc/ssh").iterdir())
    assert [(key.name, oct(key.stat().st_mode & 0o777)) for key in keys] == [
        ("ssh_host_ecdsa_key", "0o600"),
        ("ssh_host_ecdsa_key.pub", "0o644"),
        ("ssh_host_ed25519_key", "0o600"),
        ("ssh_host_ed25519_key.pub", "0o644"),
    ]
    shadow = root.read("etc/shadow").splitlines()
    assert shadow[0].startswith("root:$6$") and shadow[1] == "daemon:*:20000::::::"
    assert (root.path / "etc/shadow").stat().st_mode & 0o777 == 0o640


def test_a_link_in_the_guest_does_not_lead_out(root: setup.GuestRoot, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    root.path.mkdir()
    (root.path / "etc").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match="leads out"):
        root.write("etc/hostname", "x")
    assert list((tmp_path / "outside").iterdir()) == []
