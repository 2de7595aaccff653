# SPDX-License-Identifier: GPL-3.0-or-later
"""The Proxmox API as root on a node: proxmoxer's paramiko backend, which runs ``pvesh`` there.

proxmoxer's own session adds unknown host keys silently and takes every word on standard error (a locale warning) for a
failure. The subclass here verifies host keys and goes by the exit status.
"""

from __future__ import annotations

import socket
import typing as t
from functools import partial

import paramiko
from paramiko.pkey import UnknownKeyType
from proxmoxer.backends.command_base import JsonSimpleSerializer, shell_join
from proxmoxer.backends.ssh_paramiko import SshParamikoSession
from proxmoxer.core import ProxmoxResource

from .client import ApiError, Client, Fate, Patience, give_up_unreached, persist
from .permissions import ROOT

# OSError covers what sockets raise: refused, unreachable, timed out, unknown host; and a key file that is not there.
ERRORS = (paramiko.SSHException, OSError, EOFError)


class UnknownHostKey(paramiko.SSHException):
    """The host is in no known_hosts file."""


class NoAnswer(paramiko.SSHException):
    """No connection came about in time."""


class RefuseUnknown(paramiko.RejectPolicy):
    """Reject a host that is not known, with an exception that can be told from others by its type."""

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> t.NoReturn:
        raise UnknownHostKey(f"{key.get_name()} {key.fingerprint}")


class VerifiedSession(SshParamikoSession):
    """A session that trusts only host keys that it was given."""

    ssh_client: paramiko.SSHClient

    def __init__(self, host: str, known_hosts: str | None, work_seconds: int, **arguments: t.Any) -> None:
        self.known_hosts = known_hosts
        self.work_seconds = work_seconds
        super().__init__(host, ROOT.partition("@")[0], **arguments)

    def _connect(self) -> paramiko.SSHClient:
        try:
            return self._logged_in()
        except TimeoutError as error:
            # Told from a silence of pvesh, in which work may be done.
            raise NoAnswer(f"no answer within {self.timeout} seconds") from error

    def _logged_in(self) -> paramiko.SSHClient:
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(RefuseUnknown())
        if self.known_hosts:
            client.load_host_keys(self.known_hosts)
        else:
            client.load_system_host_keys()
        client.connect(
            self.host,
            port=self.port,
            username=self.user,
            # Loaded here: given a file name, paramiko tries it as every kind of key and reports only the last failure.
            pkey=_key(self.private_key_file) if self.private_key_file else None,
            # A key that was named is the only one that is tried: others could lock us out of a strict server.
            look_for_keys=not self.private_key_file,
            allow_agent=not self.private_key_file,
            timeout=self.timeout,
            banner_timeout=self.timeout,
            auth_timeout=self.timeout,
        )
        return client

    def _exec(self, cmd: list[str]) -> tuple[str, str, int]:
        transport = self.ssh_client.get_transport()
        if transport is None or not transport.is_active():
            # It was dropped: whether the command before is repeated is not for here to say, that this one is sent is.
            self.ssh_client = self._connect()
            transport = self.ssh_client.get_transport()
        if transport is None:
            raise paramiko.SSHException("the connection was closed")
        channel = transport.open_session(timeout=self.timeout)
        # pvesh works to the end before it answers, so a silence may last as long as a task.
        channel.settimeout(self.work_seconds)
        channel.exec_command(shell_join(cmd))
        out = channel.makefile("rb", -1).read().decode(errors="replace")
        errors = channel.makefile_stderr("rb", -1).read().decode(errors="replace")
        status = channel.recv_exit_status()
        if status == 0:
            return out, "", status
        if "UPID:" in out:
            # The task was started and is what failed: its own status and log say more than pvesh does.
            return out, "", status
        return "", errors + out or f"pvesh ended with exit status {status}", status


def _key(path: str) -> paramiko.PKey:
    try:
        return paramiko.PKey.from_path(path)
    except TypeError as error:
        # What the cryptography package says of an encrypted key without a passphrase.
        raise ApiError(f"the SSH key '{path}' has a passphrase", "Name a key without one, or use an agent") from error
    except (ValueError, UnknownKeyType) as error:
        raise ApiError(f"'{path}' is not an SSH key that can be read ({error})", "Name a private key file") from error


def connect(params: t.Mapping[str, t.Any]) -> Client:
    """Connect to ``api_host`` as root. Raises ApiError."""
    host = params["api_host"]
    explain = partial(_explain, known_hosts=params.get("api_ssh_known_hosts_file"))

    def log_in() -> VerifiedSession:
        try:
            return VerifiedSession(
                host,
                known_hosts=params.get("api_ssh_known_hosts_file"),
                work_seconds=max(params["api_timeout_seconds"], params.get("timeout_seconds") or 0),
                private_key_file=params.get("api_ssh_private_key_file"),
                port=params["api_ssh_port"],
                timeout=params["api_timeout_seconds"],
            )
        except ERRORS as error:
            raise explain(error) from error

    patience = Patience()
    session = persist(log_in, give_up_unreached, patience)
    resource = ProxmoxResource(base_url="", session=session, serializer=JsonSimpleSerializer())
    return Client(resource, ROOT, host, explain, ERRORS, patience, answered=True)


def _explain(error: Exception, known_hosts: str | None) -> ApiError:
    file = known_hosts or "~/.ssh/known_hosts"
    if isinstance(error, UnknownHostKey):
        return ApiError(
            f"its SSH host key ({error}) is not in {file}",
            "Read the key on the node itself (/etc/ssh/ssh_host_ed25519_key.pub) and add it to that file",
        )
    if isinstance(error, paramiko.BadHostKeyException):
        return ApiError(
            f"its SSH host key {error.key.fingerprint} is not the one in {file}",
            "Find out why it changed; if the node was installed anew, replace the line in that file",
        )
    if isinstance(error, paramiko.AuthenticationException):
        return ApiError("root's SSH key was refused", "Check api_ssh_private_key_file and root's authorized_keys there")
    if isinstance(error, FileNotFoundError):
        return ApiError(f"the file '{error.filename}' does not exist", "Correct the api_ssh_* option that names it")
    if isinstance(error, TimeoutError):
        return ApiError(
            "no answer came in time; pvesh may still be at work there",
            "Look at the node's task list, then run again, with a longer timeout_seconds if it is slow",
            fate=Fate.OPEN,
        )
    reason: t.Any = error
    fate = Fate.OPEN
    if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError):
        # One error an address that was tried; the first says enough.
        reason = next(iter(error.errors.values()))
    if reason is not error or isinstance(error, (NoAnswer, socket.gaierror)):
        fate = Fate.UNREACHED
    return ApiError(
        f"it cannot be reached over SSH ({getattr(reason, 'strerror', None) or reason})",
        "Check address, port and sshd on the node",
        fate=fate,
    )
