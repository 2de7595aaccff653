# SPDX-License-Identifier: GPL-3.0-or-later
"""The Proxmox API as root on a node: proxmoxer's paramiko backend, which runs ``pvesh`` there.

proxmoxer's own session adds unknown host keys silently and takes every word on standard error (a locale warning) for a
failure. The subclass here verifies host keys and goes by the exit status.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import typing as t
import weakref
from contextlib import suppress
from functools import partial

import paramiko
from paramiko.pkey import UnknownKeyType
from proxmoxer.backends.command_base import JsonSimpleSerializer, shell_join
from proxmoxer.backends.ssh_paramiko import SshParamikoSession
from proxmoxer.core import ProxmoxResource

from .client import ApiError, Client, Fate, Patience, give_up_unreached, persist
from .permissions import ROOT
from .sshroute import Hop, route

# OSError covers what sockets raise: refused, unreachable, timed out, unknown host; and a key file that is not there.
ERRORS = (paramiko.SSHException, OSError, EOFError)
OWN_KNOWN_HOSTS = "~/.ssh/known_hosts"


class UnknownHostKey(paramiko.SSHException):
    """The host is in no known_hosts file."""


class NoAnswer(paramiko.SSHException):
    """No connection came about in time."""


class RefuseUnknown(paramiko.RejectPolicy):
    """Reject a host that is not known, with an exception that can be told from others by its type."""

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> t.NoReturn:
        raise UnknownHostKey(f"{key.get_name()} {key.fingerprint}")


class Serializer(JsonSimpleSerializer):
    """Reads what pvesh says. Proxmoxer's own takes characters inside texts (U+2028) for ends of lines, and then finds no JSON."""

    def loads(self, response: t.Any) -> t.Any:
        content = response.content
        lines = (content.decode("utf-8", "replace") if isinstance(content, bytes) else content).split("\n")
        for first in range(len(lines)):  # words such as "trying to acquire lock" may come before it
            with suppress(ValueError):
                return json.loads("\n".join(lines[first:]))
        return {"errors": content}


class VerifiedSession(SshParamikoSession):
    """A session that trusts only host keys that it was given, on every machine on the way.

    The node's own must be in ``known_hosts`` where that is given, and in the user's file otherwise. That of a jump host,
    which is the user's way to many machines, may be in either.
    """

    ssh_client: paramiko.SSHClient

    def __init__(self, hops: t.Sequence[Hop], known_hosts: str | None, work_seconds: int, **arguments: t.Any) -> None:
        self.hops = hops
        self.known_hosts = known_hosts
        self.work_seconds = work_seconds
        # All connections to the node's, in the order in which they were made, and the program that is the first.
        self.way: list[t.Any] = []
        # At the end of the process too, and there before paramiko ends them in any order.
        weakref.finalize(self, _close, self.way)
        node = hops[-1]
        super().__init__(node.host, node.user, port=node.port, **arguments)

    def _connect(self) -> paramiko.SSHClient:
        _close(self.way)
        *jumps, node = self.hops
        through: t.Any = self._by_command(self.hops[0])
        for hop, following in zip(jumps, self.hops[1:]):
            try:
                through = _tunnel(self._logged_in(hop, through), following, self.timeout)
            except ERRORS as error:
                found = _explain_login(error, hop, self.known_hosts)
                cause = f"on the way there, at '{hop.name}', {found.cause}"
                raise ApiError(cause, found.remedy, fate=found.fate) from error
        return self._logged_in(node, through)

    def _by_command(self, hop: Hop) -> socket.socket | None:
        if not hop.command:
            return None
        ours, theirs = socket.socketpair()
        with theirs:
            # Through a shell, as ssh does it: the line is the user's own and may have quotes in it.
            self.way.append(
                subprocess.Popen(
                    ["/bin/sh", "-c", f"exec {hop.command}"], stdin=theirs.fileno(), stdout=theirs.fileno()
                )
            )
        return ours

    def _logged_in(self, hop: Hop, through: t.Any) -> paramiko.SSHClient:
        client = paramiko.SSHClient()
        self.way.append(client)
        client.set_missing_host_key_policy(RefuseUnknown())
        # The user's own file if None.
        client.load_system_host_keys(self.known_hosts)
        only = _key(hop.keys[0]) if len(hop.keys) == 1 and not hop.agent else None
        own = os.path.expanduser(OWN_KNOWN_HOSTS)
        if hop is not self.hops[-1] and os.path.exists(own):
            client.load_host_keys(own)
        try:
            client.connect(
                hop.host,
                port=hop.port,
                username=hop.user,
                sock=through,
                # Loaded here: given a file name, paramiko tries it as every kind of key and reports only the last failure.
                pkey=only,
                key_filename=None if only else list(hop.keys),  # type: ignore[arg-type] # it takes several
                look_for_keys=not hop.keys,
                allow_agent=hop.agent,
                timeout=self.timeout,
                banner_timeout=self.timeout,
                auth_timeout=self.timeout,
            )
        except TimeoutError as error:
            # Told from a silence of pvesh, in which work may be done.
            raise NoAnswer(f"no answer within {self.timeout} seconds") from error
        except paramiko.SSHException as error:
            transport = client.get_transport()
            # What it says of itself is of the last kind of key that it tried to read the last file as, or that there is none.
            if type(error) is paramiko.SSHException and transport and transport.is_active():
                raise paramiko.AuthenticationException(str(error)) from error
            raise
        # A call is several small packets: without this each waits for the other side's delayed acknowledgement (40 ms).
        if (transport := client.get_transport()) and isinstance(transport.sock, socket.socket) and not hop.command:
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def _exec(self, cmd: list[str]) -> tuple[str, str, int]:
        out, errors, status = self.run(cmd)
        if status == 0:
            return out, "", status
        if "UPID:" in out:
            # The task was started and is what failed: its own status and log say more than pvesh does.
            return out, "", status
        return "", errors + out or f"pvesh ended with exit status {status}", status

    def run(self, cmd: list[str]) -> tuple[str, str, int]:
        """Run a command and return its output, its standard error and its exit status."""
        try:
            return self._run(cmd)
        except TimeoutError:
            # pvesh may still be at work over this connection.
            raise
        except ERRORS:
            # It may be dead without a sign of it. The next call makes another.
            _close(self.way)
            raise

    def _run(self, cmd: list[str]) -> tuple[str, str, int]:
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
        if status < 0:
            raise paramiko.SSHException("the connection was closed before the command had ended")
        return out, errors, status


def _close(way: list[t.Any]) -> None:
    """Close what leads to a node, the innermost first, and forget it."""
    while way:
        last = way.pop()
        if isinstance(last, paramiko.SSHClient):
            last.close()
        else:
            # Its input has just ended.
            with suppress(subprocess.TimeoutExpired):
                last.wait(1)
                continue
            last.terminate()


def _tunnel(client: paramiko.SSHClient, hop: Hop, timeout_seconds: float) -> paramiko.Channel:
    """A connection from the machine that ``client`` is logged in to on to the next one."""
    transport = client.get_transport()
    if transport is None:
        raise paramiko.SSHException("the connection was closed")
    return transport.open_channel("direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=timeout_seconds)


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
    known_hosts = params.get("api_ssh_known_hosts_file")
    try:
        hops = route(
            params.get("api_ssh_config_file"),
            params["api_host"],
            ROOT.partition("@")[0],
            params.get("api_ssh_port"),
            params.get("api_ssh_private_key_file"),
        )
    except OSError as error:
        raise ApiError(
            f"'{error.filename}' cannot be read ({error.strerror})", "Correct api_ssh_config_file"
        ) from error
    hop = hops[-1]

    def log_in() -> VerifiedSession:
        try:
            return VerifiedSession(
                hops,
                known_hosts=known_hosts,
                work_seconds=max(params["api_timeout_seconds"], params.get("timeout_seconds") or 0),
                timeout=params["api_timeout_seconds"],
            )
        except ERRORS as error:
            raise _explain_login(error, hop, known_hosts) from error

    patience = Patience()
    session = persist(log_in, give_up_unreached, patience)
    resource = ProxmoxResource(base_url="", session=session, serializer=Serializer())
    explain = partial(_explain, hop=hop, known_hosts=known_hosts)
    return Client(resource, ROOT, params["api_host"], explain, ERRORS, patience, answered=True, shell=session.run)


def _explain_login(error: Exception, hop: Hop, known_hosts: str | None) -> ApiError:
    """The same while logging in, where only a connection that was lost leaves a hope: nothing else comes and goes."""
    found = _explain(error, hop, known_hosts)
    lost = (EOFError, ConnectionError, TimeoutError)
    if found.fate is Fate.OPEN and not isinstance(error, lost) and not isinstance(error.__context__, lost):
        found.fate = Fate.FINAL
    return found


def _explain(error: Exception, hop: Hop, known_hosts: str | None) -> ApiError:
    file = known_hosts or OWN_KNOWN_HOSTS
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
        return ApiError(
            f"no SSH key was accepted for {hop.user}",
            f"Check api_ssh_private_key_file, or IdentityFile of the SSH configuration, and {hop.user}'s authorized_keys there",
        )
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
