# SPDX-License-Identifier: GPL-3.0-or-later
"""The API over SSH, against a server of paramiko's own on the loopback: host keys, keys, and what pvesh says."""

from __future__ import annotations

import shlex
import socket
import threading
import typing as t
from pathlib import Path

import paramiko
import pytest
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.pve import tasks
from ansible.module_utils.slipway.pve.client import ApiError
from ansible.module_utils.slipway.pve.connect import connect

HOST_KEY = paramiko.RSAKey.generate(2048)
OTHER_KEY = paramiko.RSAKey.generate(2048)
UPID = "UPID:node1:0000ABCD:123456789:6731F2A0:vzstart:101:root@pam:"


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

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        good = username == "root" and key == self.allowed
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        words = shlex.split(command.decode())
        self.commands.append(words)
        out, err, status = self.answers.get(" ".join(words[1:3]), ("", "400 no such thing\n", 255))

        def answer() -> None:
            self.granted.wait(60)
            self.granted.clear()
            if self.drops > 0:
                self.drops -= 1
                channel.get_transport().close()
                return
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

    def __init__(self, folder: Path) -> None:
        self.server = Server({})
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        key = paramiko.RSAKey.generate(2048)
        key.write_private_key_file(str(folder / "key"))
        self.server.allowed = key
        self.known_hosts = folder / "known_hosts"
        self.trust(HOST_KEY)
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
            transport = paramiko.Transport(connection)
            transport.add_server_key(HOST_KEY)
            transport.start_server(event=threading.Event(), server=self.server)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Node]:
    made = Node(tmp_path)
    really = paramiko.Channel.exec_command

    def exec_command(channel: paramiko.Channel, command: str) -> None:
        really(channel, command)
        made.server.granted.set()

    monkeypatch.setattr(paramiko.Channel, "exec_command", exec_command)
    yield made
    made.listener.close()


def test_calls_are_pvesh_as_root(node: Node) -> None:
    node.server.answers = {
        "get /cluster/nextid": ('"101"\n', "perl: warning: Setting locale failed.\n", 0),
        "set /nodes/node1/lxc/101/config": ("", "", 0),
    }
    api = connect(node.options)
    assert api.identity == "root@pam"
    # A warning on standard error is no failure.
    assert api.call("get", "cluster/nextid", vmid=101) == "101"
    api.call("put", "nodes/node1/lxc/101/config", description="it's\ntwo lines", delete=None)
    assert node.server.commands == [
        ["pvesh", "get", "/cluster/nextid", "-vmid", "101", "--output-format", "json"],
        ["pvesh", "set", "/nodes/node1/lxc/101/config", "-description", "it's\ntwo lines", "--output-format", "json"],
    ]


def test_the_user_of_the_other_backend_is_not_looked_at(node: Node) -> None:
    node.options |= {"api_user": "deploy@pve", "api_token_id": "slipway", "api_token_secret": "x"}
    assert connect(node.options).identity == "root@pam"


def test_a_refusal_has_its_status_and_words(node: Node) -> None:
    node.server.answers = {
        "get /cluster/nextid": ("", "400 Parameter verification failed.\nvmid: VM 101 already exists\n", 255),
        "create /nodes/node1/lxc": ("extracting\n", "unable to create CT 101\n", 25),
    }
    api = connect(node.options)
    with pytest.raises(ApiError, match=r"400 Parameter .* vmid: VM 101 already exists") as refused:
        api.call("get", "cluster/nextid", vmid=101)
    assert refused.value.status == 400
    with pytest.raises(ApiError, match="unable to create CT 101 extracting") as failed:
        api.call("post", "nodes/node1/lxc", vmid=101)
    assert failed.value.status == 500


@pytest.mark.parametrize(("noise", "status"), [("", 0), ("WARN: old systemd\n", 255)])
def test_a_task_is_found_behind_the_output_of_its_worker(node: Node, noise: str, status: int) -> None:
    node.server.answers = {"create /nodes/node1/lxc/101/status/start": (f'starting\n"{UPID}"\n', noise, status)}
    answer = connect(node.options).call("post", "nodes/node1/lxc/101/status/start")
    assert tasks.upid_of(answer) == UPID


def connecting(node: Node) -> str:
    with pytest.raises(SlipwayError) as refused:
        connect(node.options)
    assert str(refused.value).startswith("Cannot connect to the Proxmox API on 127.0.0.1: ")
    return str(refused.value)


def test_an_unknown_host_key_is_refused_and_not_added(node: Node) -> None:
    node.known_hosts.write_text("")
    assert "its SSH host key (ssh-rsa SHA256:" in connecting(node)
    assert node.known_hosts.read_text() == "" and node.server.commands == []


def test_another_host_key_is_refused(node: Node) -> None:
    node.trust(OTHER_KEY)
    assert "is not the one in" in connecting(node)


def test_a_key_that_may_not_log_in(node: Node) -> None:
    node.server.allowed = OTHER_KEY
    assert "root's SSH key was refused" in connecting(node)


def test_a_key_with_a_passphrase(node: Node) -> None:
    OTHER_KEY.write_private_key_file(node.options["api_ssh_private_key_file"], password="secret")
    assert "has a passphrase" in connecting(node)


def test_a_file_that_is_missing_is_named(node: Node) -> None:
    node.options["api_ssh_private_key_file"] = "/nonexistent/key"
    assert "the file '/nonexistent/key' does not exist" in connecting(node)


def test_a_node_that_is_away(node: Node) -> None:
    with socket.socket() as bound:  # and does not listen, so that nobody else can
        bound.bind(("127.0.0.1", 0))
        node.options["api_ssh_port"] = bound.getsockname()[1]
        assert "it cannot be reached over SSH (Connection refused). " in connecting(node)


def test_a_connection_that_was_closed_is_made_again(node: Node) -> None:
    node.server.answers = {"get /nodes": ("[]", "", 0)}
    node.server.hang_ups = 1
    client = connect(node.options)
    assert client.call("get", "nodes") == client.call("get", "nodes") == []


def test_a_connection_that_breaks_within_a_call(node: Node) -> None:
    node.server.answers = {"get /nodes": ("[]", "", 0), "create /nodes/node1/lxc": (f'"{UPID}"', "", 0)}
    client = connect(node.options)
    client.patience.sleep = lambda _seconds: None
    node.server.drops = 2
    assert client.call("get", "nodes") == []
    assert len(node.server.commands) == 3
    node.server.drops = 1
    assert client.call("post", "nodes/node1/lxc", lambda: "found", vmid=101) == "found"
    assert len(node.server.commands) == 4


def test_a_lock_that_another_process_holds_is_waited_for(node: Node) -> None:
    held = "can't lock file '/run/lock/lxc/pve-config-101.lock' - got timeout\n"
    node.server.answers = {"create /nodes/node1/lxc/101/status/start": ("", held, 255)}
    client = connect(node.options)

    def sleep(_seconds: float) -> None:
        node.server.answers["create /nodes/node1/lxc/101/status/start"] = (f'"{UPID}"', "", 0)

    client.patience.sleep = sleep
    assert client.call("post", "nodes/node1/lxc/101/status/start") == UPID
