# SPDX-License-Identifier: GPL-3.0-or-later
"""Users, tokens, tickets and access control lists, kept in the files that Proxmox keeps them in.

``user.cfg`` has users, tokens, roles and lists; secrets lie below ``priv/``: ``token.cfg`` (one token a line), ``shadow.cfg`` (scrypt
hashes) and ``authkey.key`` (the key that signs tickets).
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import os
import time
import typing as t
from pathlib import Path

from .errors import forbidden, unauthorized

TICKET_LIFETIME_SECONDS = 7200
VM_CONFIG = {
    f"VM.Config.{part}" for part in ["CDROM", "CPU", "Cloudinit", "Disk", "HWType", "Memory", "Network", "Options"]
}
VM_USER = {"VM.Audit", "VM.Backup", "VM.Console", "VM.PowerMgmt", "VM.Config.CDROM", "VM.Config.Cloudinit"}
VM_ALL = (
    VM_USER | VM_CONFIG | {f"VM.{part}" for part in ["Allocate", "Clone", "Migrate", "Snapshot", "Snapshot.Rollback"]}
)
DATASTORE = {f"Datastore.{part}" for part in ["Allocate", "AllocateSpace", "AllocateTemplate", "Audit"]}
SYS = {f"Sys.{part}" for part in ["AccessNetwork", "Audit", "Console", "Incoming", "Modify", "PowerMgmt", "Syslog"]}
SDN = {"SDN.Allocate", "SDN.Audit", "SDN.Use"}
POOL = {"Pool.Allocate", "Pool.Audit"}
MAPPING = {"Mapping.Audit", "Mapping.Modify", "Mapping.Use"}
ADMIN = {"Permissions.Modify", "User.Modify", "Group.Allocate", "Realm.Allocate", "Realm.AllocateUser"}
EVERYTHING = VM_ALL | DATASTORE | SYS | SDN | POOL | MAPPING | ADMIN
# Paths of which GET /access/permissions tells in any case.
TOP_PATHS = ("/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms")
ROLES: dict[str, set[str]] = {
    "Administrator": EVERYTHING,
    "NoAccess": set(),
    "PVEAdmin": EVERYTHING - {"Permissions.Modify", "Realm.Allocate", "Sys.Modify", "Sys.PowerMgmt", "Sys.Incoming"},
    "PVEAuditor": {privilege for privilege in EVERYTHING if privilege.endswith(".Audit")},
    "PVEDatastoreAdmin": DATASTORE,
    "PVEDatastoreUser": {"Datastore.AllocateSpace", "Datastore.Audit"},
    "PVEPoolUser": {"Pool.Audit"},
    "PVESDNAdmin": SDN,
    "PVESDNUser": {"SDN.Audit", "SDN.Use"},
    "PVESysAdmin": {"Permissions.Modify", "Sys.Audit", "Sys.Console", "Sys.Syslog"},
    "PVETemplateUser": {"VM.Audit", "VM.Clone"},
    "PVEVMAdmin": VM_ALL,
    "PVEVMUser": VM_USER,
}


def hash_password(password: str, salt: bytes | None = None) -> str:
    """``salt$hash`` of a password, both in base64."""
    salt = salt or os.urandom(16)
    key = hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)
    return f"{base64.b64encode(salt).decode()}${base64.b64encode(key).decode()}"


def _matches(password: str, stored: str) -> bool:
    return hmac.compare_digest(hash_password(password, base64.b64decode(stored.partition("$")[0])), stored)


@dataclasses.dataclass
class Access:
    """What user.cfg and the files below priv/ say."""

    users: set[str] = dataclasses.field(default_factory=lambda: {"root@pam"})
    separated: dict[str, bool] = dataclasses.field(default_factory=dict)  # token -> has privileges of its own
    roles: dict[str, set[str]] = dataclasses.field(default_factory=lambda: dict(ROLES))
    lists: list[tuple[str, bool, str, str]] = dataclasses.field(default_factory=list)  # path, propagate, who, role
    secrets: dict[str, str] = dataclasses.field(default_factory=dict)
    passwords: dict[str, str] = dataclasses.field(default_factory=dict)
    key: bytes = b""

    @classmethod
    def load(cls, etc_pve: Path) -> Access:
        """Read the files below ``etc_pve``."""
        access = cls(key=(etc_pve / "priv/authkey.key").read_bytes())
        for line in (etc_pve / "user.cfg").read_text().splitlines():
            kind, *fields = line.split(":")
            if kind == "user":
                access.users.add(fields[0])
            elif kind == "token":
                access.separated[fields[0]] = fields[2] == "1"
            elif kind == "role":
                access.roles[fields[0]] = set(fields[1].split(","))
            elif kind == "acl":
                access.lists += [
                    (fields[1], fields[0] == "1", who, role)
                    for who in fields[2].split(",")
                    for role in fields[3].split(",")
                ]
        access.secrets = _pairs(etc_pve / "priv/token.cfg", " ")
        access.passwords = _pairs(etc_pve / "priv/shadow.cfg", ":")
        return access

    def log_in(self, user: str, password: str) -> dict[str, t.Any]:
        """A ticket and the token that writes must show beside it. Raises ApiError 401."""
        known = user in self.users and user in self.passwords and _matches(password, self.passwords[user])
        if not known and not self._fresh(password, user):  # a ticket that still holds is as good as the password
            raise unauthorized("authentication failure")
        return {"username": user, "ticket": self._sign("PVE", user), "CSRFPreventionToken": self._sign("CSRF", user)}

    def by_token(self, header: str) -> str:
        """The identity of ``PVEAPIToken=user@realm!id=secret``. Raises ApiError 401."""
        name, _, secret = header.removeprefix("PVEAPIToken=").partition("=")
        user, _, token = name.partition("!")
        if user not in self.users:
            raise unauthorized(f"no such user ('{user}')")
        if name not in self.separated or name not in self.secrets:
            raise unauthorized(f"no such token '{token}' for user '{user}'")
        if not hmac.compare_digest(secret.encode(), self.secrets[name].encode()):
            raise unauthorized("invalid token value!")
        return name

    def by_ticket(self, ticket: str, csrf: str | None, writes: bool) -> str:
        """The user of a ticket; a write must bring the CSRF token that came with it. Raises ApiError 401."""
        user = ticket.split(":")[1] if ticket.count(":") >= 3 else ""
        if user not in self.users or not self._fresh(ticket, user):
            raise unauthorized("permission denied - invalid PVE ticket")
        if writes and not (csrf and self._holds("CSRF", user, csrf)):
            raise unauthorized("Permission denied - invalid csrf token")
        return user

    def _sign(self, kind: str, user: str, at: int | None = None) -> str:
        stamp = f"{int(time.time()) if at is None else at:08X}"
        mac = hmac.new(self.key, f"{kind}:{user}:{stamp}".encode(), "sha256").digest()
        signature = base64.b64encode(mac).decode()
        return f"{stamp}:{signature}" if kind == "CSRF" else f"{kind}:{user}:{stamp}::{signature}"

    def _fresh(self, ticket: str, user: str) -> bool:
        return ticket.startswith(f"PVE:{user}:") and self._holds("PVE", user, ticket)

    def _holds(self, kind: str, user: str, signed: str) -> bool:
        stamp = signed.split(":")[0 if kind == "CSRF" else 2]
        try:
            at = int(stamp, 16)
        except ValueError:
            return False
        young = -300 <= time.time() - at <= TICKET_LIFETIME_SECONDS
        return young and hmac.compare_digest(self._sign(kind, user, at), signed)

    def privileges(self, identity: str, path: str) -> set[str]:
        """Privileges of a user or token on a path."""
        return set(self.rights(identity, path))

    def rights(self, identity: str, path: str) -> dict[str, int]:
        """Privileges of a user or token on a path, each with whether it is handed down to the paths below.

        A separated token has at most what it and its user both have.
        """
        if identity == "root@pam":
            return dict.fromkeys(EVERYTHING, 1)
        user, _, token = identity.partition("!")
        if not token:
            return self._listed(user, path)
        own = dict.fromkeys(EVERYTHING, 1) if user == "root@pam" else self._listed(user, path)
        if not self.separated.get(identity, True):
            return own
        listed = self._listed(identity, path)
        return {privilege: own[privilege] and listed[privilege] for privilege in own.keys() & listed.keys()}

    def tree(self, identity: str) -> dict[str, dict[str, int]]:
        """Privileges on every path that Proxmox has at the top or in a list; paths without any are left out."""
        paths = {"/", *TOP_PATHS, *(listed for listed, _, _, _ in self.lists)}
        found = {path: self.rights(identity, path) for path in sorted(paths)}
        return {path: privileges for path, privileges in found.items() if privileges}

    def _listed(self, who: str, path: str) -> dict[str, int]:
        """The roles of the longest listed path on the way to ``path`` hold; shorter ones only as long as none is longer."""
        best: dict[str, dict[str, int]] = {}
        for listed, propagate, name, role in self.lists:
            below = listed == "/" or path.startswith(listed.rstrip("/") + "/")
            if name == who and (listed == path or (propagate and below)):
                best.setdefault(listed, {})[role] = int(propagate)
        roles = best[max(best, key=len)] if best else {}
        if "NoAccess" in roles:
            return {}
        found: dict[str, int] = {}
        for role, handed_down in roles.items():
            for privilege in self.roles.get(role, set()):
                found[privilege] = max(found.get(privilege, 0), handed_down)
        return found

    def has(self, identity: str, path: str, privileges: list[str], any_of: bool = False) -> bool:
        """Whether an identity has all (or any) of the privileges on a path."""
        owned = self.privileges(identity, path)
        return any(p in owned for p in privileges) if any_of else all(p in owned for p in privileges)

    def check(self, identity: str, path: str, privileges: list[str], any_of: bool = False) -> None:
        """Raise ApiError 403 where the privileges are missing."""
        if not self.has(identity, path, privileges, any_of):
            raise forbidden(f"{path}, {'|'.join(privileges)}")


def _pairs(path: Path, separator: str) -> dict[str, str]:
    if not path.exists():
        return {}
    lines = (line.partition(separator) for line in path.read_text().splitlines() if line)
    return {name: value for name, _, value in lines}


def user_cfg(users: list[dict[str, t.Any]], roles: dict[str, list[str]]) -> str:
    """The text of user.cfg. A user has ``userid``, ``tokens`` (``id``, ``privsep``, ``acl``) and ``acl`` (``path``, ``role``)."""
    lines = ["user:root@pam:1:0::::::"]
    for user in users:
        if user["userid"] != "root@pam":
            lines.append(f"user:{user['userid']}:1:0::::::")
        for token in user.get("tokens", []):
            lines.append(f"token:{user['userid']}!{token['id']}:0:{int(token.get('privsep', False))}::")
    lines += [f"role:{name}:{','.join(privileges)}:" for name, privileges in roles.items()]
    for user in users:
        owners = [(user["userid"], user)]
        owners += [(f"{user['userid']}!{token['id']}", token) for token in user.get("tokens", [])]
        for who, owner in owners:
            lines += [f"acl:1:{entry['path']}:{who}:{entry['role']}:" for entry in owner.get("acl", [])]
    return "".join(line + "\n" for line in lines)
