# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the Proxmox side into the root file system of a node that does not run yet."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import typing as t
from pathlib import Path

from .access import hash_password, user_cfg
from .local import ACCESS_LOG

HERE = Path(__file__).resolve().parent
PACKAGE_FOLDER = "usr/share/rig/pve"
PROGRAM = """#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-3.0-or-later
import sys

sys.path.insert(0, "/usr/share/rig")
from pve.cli import main

sys.exit(main("{name}", sys.argv[1:]))
"""
PROGRAMS = {
    "pct": "usr/sbin/pct",
    "pvesh": "usr/bin/pvesh",
    "pveversion": "usr/bin/pveversion",
    "pve-guests": "usr/share/rig/bin/pve-guests",
    "pve-quorum": "usr/share/rig/bin/pve-quorum",
}
ENABLED = ["pveproxy.service", "pve-guests.service"]
STORAGE_CFG = """dir: local
\tpath /var/lib/vz
\tcontent iso,vztmpl,backup,snippets

zfspool: local-zfs
\tpool rpool/data
\tcontent images,rootdir
\tsparse 1
"""
CERTIFICATE_DAYS = "825"


def install(rootfs: Path, node: dict[str, t.Any]) -> None:
    """Install into ``rootfs``; done twice it renews code, users and passwords and keeps guests and certificates.

    ``node``: ``name``, ``address``, ``root_password``, ``users`` (a list of ``userid``, and optionally ``password``, ``acl``: a
    list of ``path`` and ``role``, and ``tokens``: a list of ``id``, ``secret`` and optionally ``privsep`` and an ``acl`` of
    the token's own), and optionally ``roles`` (name to list of privileges).
    """
    _programs(rootfs)
    _units(rootfs)
    _state(rootfs, node)
    _certificates(rootfs / "etc/pve", node["name"], node["address"])


def _programs(rootfs: Path) -> None:
    package = rootfs / PACKAGE_FOLDER
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(HERE, package, ignore=shutil.ignore_patterns("__pycache__", "units"))
    for name, where in PROGRAMS.items():
        _write(rootfs / where, PROGRAM.format(name=name), 0o755)


def _units(rootfs: Path) -> None:
    for unit in (HERE / "units").iterdir():
        _write(rootfs / "etc/systemd/system" / unit.name, unit.read_text(), 0o644)
    for name in ENABLED:
        _link(rootfs / "etc/systemd/system/multi-user.target.wants" / name, f"/etc/systemd/system/{name}")
    # Debian's own ways to give containers a bridge and to start them: Proxmox has neither, and waiting for that bridge would
    # keep the node's boot from ending for half a minute.
    for name in ("lxc-net.service", "lxc.service"):
        _link(rootfs / "etc/systemd/system" / name, "/dev/null")


def _state(rootfs: Path, node: dict[str, t.Any]) -> None:
    etc_pve = rootfs / "etc/pve"
    for folder in (f"nodes/{node['name']}/lxc", f"nodes/{node['name']}/qemu-server", "priv"):
        (etc_pve / folder).mkdir(parents=True, exist_ok=True)
    (etc_pve / "priv").chmod(0o700)
    for name in ("lxc", "qemu-server"):
        _link(etc_pve / name, f"nodes/{node['name']}/{name}")
    _link(etc_pve / "local", f"nodes/{node['name']}")
    users = node.get("users", [])
    _write(etc_pve / "storage.cfg", STORAGE_CFG, 0o640)
    _write(etc_pve / "user.cfg", user_cfg(users, node.get("roles", {})), 0o640)
    passwords = {"root@pam": node["root_password"]} | {u["userid"]: u["password"] for u in users if u.get("password")}
    shadow = "".join(f"{user}:{hash_password(password)}\n" for user, password in passwords.items())
    _write(etc_pve / "priv/shadow.cfg", shadow, 0o600)
    tokens = "".join(f"{u['userid']}!{k['id']} {k['secret']}\n" for u in users for k in u.get("tokens", []))
    _write(etc_pve / "priv/token.cfg", tokens, 0o600)
    if not (etc_pve / "priv/authkey.key").exists():
        _write(etc_pve / "priv/authkey.key", os.urandom(32).hex(), 0o600)
    for folder in ("var/lib/vz/template/cache", "rpool/data", "var/log/pve/tasks", "var/log/pveproxy"):
        (rootfs / folder).mkdir(parents=True, exist_ok=True)
    (rootfs / ACCESS_LOG).touch()
    # The IDs that unprivileged guests live in.
    for name in ("subuid", "subgid"):
        _write(rootfs / "etc" / name, "root:100000:65536\n", 0o644)


def _certificates(etc_pve: Path, name: str, address: str) -> None:
    """A certificate authority of the node's own, and a certificate from it for the node's name and address."""
    authority, authority_key = etc_pve / "pve-root-ca.pem", etc_pve / "priv/pve-root-ca.key"
    certificate, key = etc_pve / f"nodes/{name}/pve-ssl.pem", etc_pve / f"nodes/{name}/pve-ssl.key"
    if certificate.exists():
        return
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", CERTIFICATE_DAYS]
    constraints = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
    extensions = [word for line in constraints for word in ("-addext", line)]
    _openssl(
        "req",
        "-x509",
        *new_key,
        *extensions,
        "-subj",
        "/CN=Proxmox Virtual Environment",
        "-keyout",
        authority_key,
        "-out",
        authority,
    )
    with tempfile.TemporaryDirectory() as scratch:
        request, extra = Path(scratch, "request"), Path(scratch, "extensions")
        extra.write_text(
            f"subjectAltName=IP:127.0.0.1,IP:{address},DNS:localhost,DNS:{name}\n"
            "basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\nauthorityKeyIdentifier=keyid\n"
        )
        _openssl("req", "-new", *new_key, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        signed: list[str | Path] = [
            "-CA",
            authority,
            "-CAkey",
            authority_key,
            "-days",
            CERTIFICATE_DAYS,
            "-extfile",
            extra,
        ]
        _openssl(
            "x509",
            "-req",
            "-in",
            request,
            *signed,
            "-CAserial",
            Path(scratch, "serial"),
            "-CAcreateserial",
            "-out",
            certificate,
        )
    for secret in (key, authority_key):
        secret.chmod(0o600)


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(mode)
    path.write_text(text)
    path.chmod(mode)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
