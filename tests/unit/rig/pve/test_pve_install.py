# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from pve.node import Node


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_secrets_are_closed_and_programs_are_there(node: Node) -> None:
    private = node.etc_pve / "priv"
    assert _mode(private) == 0o700
    secrets = [*private.iterdir(), node.etc_pve / "nodes/node1/pve-ssl.key"]
    assert {path.name: _mode(path) for path in secrets} == dict.fromkeys(
        ("authkey.key", "pve-root-ca.key", "pve-ssl.key", "shadow.cfg", "token.cfg"), 0o600
    )
    everything = "".join(path.read_text() for path in private.iterdir())
    assert "a-root-password" not in everything and "a-user-password" not in everything
    assert _mode(node.root / "usr/sbin/pct") == 0o755
    wanted = node.root / "etc/systemd/system/multi-user.target.wants/pveproxy.service"
    assert (node.root / str(wanted.readlink()).lstrip("/")).is_file()
    assert (node.etc_pve / "lxc").resolve() == node.conf_path(1).parent.resolve()
    assert not list((node.root / "usr/share/rig/pve").glob("**/__pycache__"))


def test_second_installation_keeps_guests_and_certificates(node: Node, guest: int) -> None:
    from pve.install import install

    before = (node.etc_pve / "pve-root-ca.pem").read_bytes()
    install(node.root, {"name": "node1", "address": "127.0.0.1", "root_password": "new-password", "users": []})
    assert (node.etc_pve / "pve-root-ca.pem").read_bytes() == before
    assert node.vmids() == [101]
    assert node.access.log_in("root@pam", "new-password")["username"] == "root@pam"
    assert node.access.users == {"root@pam"}
