# SPDX-License-Identifier: GPL-3.0-or-later
"""A node behind SSH: a server of paramiko's own on the loopback, with the programs that a test gives it."""

from __future__ import annotations

import shlex
import socket
import threading
import typing as t
from contextlib import suppress
from pathlib import Path

import paramiko
import pytest

HOST_KEY = paramiko.RSAKey.generate(2048)
OTHER_KEY = paramiko.RSAKey.generate(2048)


class Server(paramiko.ServerInterface):
    """Lets one key of root's in, and answers each command with (standard output, standard error, exit status)."""

    def __init__(self, answers: dict[str, tuple[str, str, int]]) -> None:
        self.answers = answers
        self.commands: list[list[str]] = []
        self.allowed: paramiko.PKey | None = None
        # Whether the client knows that its command runs: what comes before that it would not understand.
        self.granted = threading.Event()
        # After how many commands the connection is closed, and how often one is closed in place of an answer.
        self.hang_ups = 0
        self.drops = 0
        # Where it was asked to connect to, as a jump host.
        self.tunnels: list[tuple[str, int]] = []
        self.users: list[str] = []

    def respond(self, words: list[str]) -> tuple[str, str, int]:
        """What a command says and how it ends; a test may put its own in this place."""
        return self.answers.get(" ".join(words[1:3]), ("", "400 no such thing\n", 255))

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        good = key == self.allowed
        self.users.append(username)
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_direct_tcpip_request(self, chanid: int, origin: t.Any, destination: tuple[str, int]) -> int:
        self.tunnels.append(destination)
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        words = shlex.split(command.decode())
        self.commands.append(words)
        out, err, status = self.respond(words)

        def answer() -> None:
            self.granted.wait(60)
            self.granted.clear()
            if self.drops > 0:
                self.drops -= 1
                channel.get_transport().close()
                return
            # The client may be gone as soon as it has what it wants.
            with suppress(OSError, EOFError):
                channel.sendall(out.encode())
                channel.sendall_stderr(err.encode())
                channel.send_exit_status(status)
                channel.close()
            if self.hang_ups > 0:
                self.hang_ups -= 1
                channel.get_transport().close()

        threading.Thread(target=answer, daemon=True).start()
        return True


class Node:
    """The server, the options that reach it, and its known_hosts file."""

    def __init__(self, folder: Path, host_key: paramiko.PKey = HOST_KEY) -> None:
        self.host_key = host_key
        self.server = Server({})
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        key = paramiko.RSAKey.generate(2048)
        key.write_private_key_file(str(folder / "key"))
        self.server.allowed = key
        self.known_hosts = folder / "known_hosts"
        self.trust(host_key)
        self.options: dict[str, t.Any] = {
            "api_backend": "ssh_paramiko",
            "api_host": "127.0.0.1",
            "api_ssh_port": self.port,
            "api_ssh_private_key_file": str(folder / "key"),
            "api_ssh_known_hosts_file": str(self.known_hosts),
            "api_timeout_seconds": 60,
            "timeout_seconds": 60,
        }
        threading.Thread(target=self._serve, daemon=True).start()

    def trust(self, key: paramiko.PKey) -> None:
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {key.get_name()} {key.get_base64()}\n")

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.host_key)
            transport.start_server(event=threading.Event(), server=self.server)
            threading.Thread(target=self._pass_on, args=[transport], daemon=True).start()

    def _pass_on(self, transport: paramiko.Transport) -> None:
        """Connect each tunnel with where it leads to."""
        while transport.is_active():
            channel = transport.accept(1)
            if channel is None or len(self.server.tunnels) == 0:
                continue
            far = socket.create_connection(self.server.tunnels[-1])
            for source, target in ((channel, far), (far, channel)):
                threading.Thread(target=_pump, args=[source, target], daemon=True).start()


def _pump(source: t.Any, target: t.Any) -> None:
    with suppress(OSError):
        while data := source.recv(4096):
            target.sendall(data)
    target.close()


def node_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node that has its files in ``folder``, which is also the home of whoever reaches it."""
    # With no SSH configuration, keys and hosts of whoever runs the tests.
    monkeypatch.setenv("HOME", str(folder))
    made = Node(folder)
    really = paramiko.Channel.exec_command

    def exec_command(channel: paramiko.Channel, command: str) -> None:
        really(channel, command)
        made.server.granted.set()

    monkeypatch.setattr(paramiko.Channel, "exec_command", exec_command)
    return made
