# SPDX-License-Identifier: GPL-3.0-or-later
"""The API over SSH, against a server of paramiko's own on the loopback: host keys, keys, and what pvesh says."""

from __future__ import annotations

import socket
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.pve import tasks
from ansible.module_utils.slipway.pve.client import ApiError
from ansible.module_utils.slipway.pve.connect import connect
from ssh_node import OTHER_KEY, Node, node_in

UPID = "UPID:node1:0000ABCD:123456789:6731F2A0:vzstart:101:root@pam:"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Node]:
    made = node_in(tmp_path, monkeypatch)
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
    with pytest.raises(
        ApiError, match="answered 400 Parameter verification failed; vmid: VM 101 already exists"
    ) as refused:
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
    assert "no SSH key was accepted for root" in connecting(node)


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


@pytest.fixture
def bastion(tmp_path: Path) -> t.Iterator[Node]:
    """A jump host with a key of its own."""
    (tmp_path / "bastion").mkdir()
    made = Node(tmp_path / "bastion", OTHER_KEY)
    yield made
    made.listener.close()


def configure(node: Node, bastion: Node, way: str) -> None:
    """Reach the node as ``pve1``, by what the user's own SSH configuration says of it and of the jump host."""
    folder = node.known_hosts.parent / ".ssh"
    folder.mkdir()
    (folder / "config").write_text(
        f"Host pve1\n  HostName 127.0.0.1\n  Port {node.port}\n  User nobody\n  {way}\n"
        f"  IdentityFile {node.options['api_ssh_private_key_file']}\n  IdentitiesOnly yes\n"
        f"Host bastion\n  HostName 127.0.0.1\n  Port {bastion.port}\n  User jump\n"
        f"  IdentityFile {bastion.options['api_ssh_private_key_file']}\n  IdentitiesOnly yes\n"
    )
    (folder / "known_hosts").write_text(bastion.known_hosts.read_text())
    node.options |= {"api_host": "pve1", "api_ssh_port": None, "api_ssh_private_key_file": None}
    node.server.answers = {"get /nodes": ("[]", "", 0)}


def test_the_node_is_reached_through_a_jump_host(node: Node, bastion: Node) -> None:
    configure(node, bastion, "ProxyJump bastion")
    assert connect(node.options).call("get", "nodes") == []
    assert bastion.server.tunnels == [("127.0.0.1", node.port)] and bastion.server.commands == []
    assert set(bastion.server.users) == {"jump"}
    # What works as root@pam is root, whoever the file says.
    assert set(node.server.users) == {"root"}


def test_a_connection_through_a_jump_host_is_made_again(node: Node, bastion: Node) -> None:
    configure(node, bastion, "ProxyJump bastion")
    node.server.hang_ups = 1
    client = connect(node.options)
    client.patience.sleep = lambda _seconds: None
    assert client.call("get", "nodes") == client.call("get", "nodes") == []
    assert len(bastion.server.tunnels) == 2


def test_the_host_key_of_a_jump_host_is_verified(node: Node, bastion: Node, tmp_path: Path) -> None:
    configure(node, bastion, "ProxyJump bastion")
    (tmp_path / ".ssh/known_hosts").write_text("")
    with pytest.raises(SlipwayError) as refused:
        connect(node.options)
    assert str(refused.value).startswith(
        "Cannot connect to the Proxmox API on pve1: on the way there, at 'bastion', its SSH host key (ssh-rsa SHA256:"
    )
    assert bastion.server.users == [] and (tmp_path / ".ssh/known_hosts").read_text() == ""


def test_that_of_the_node_is_verified_behind_a_jump_host_too(node: Node, bastion: Node) -> None:
    configure(node, bastion, "ProxyJump bastion")
    node.known_hosts.write_text("")
    with pytest.raises(SlipwayError, match=r"on pve1: its SSH host key \(ssh-rsa SHA256:"):
        connect(node.options)
    assert node.server.users == []


def test_a_jump_host_that_refuses_the_key_is_named(node: Node, bastion: Node) -> None:
    configure(node, bastion, "ProxyJump bastion")
    bastion.server.allowed = None
    with pytest.raises(SlipwayError, match="at 'bastion', no SSH key was accepted for jump"):
        connect(node.options)


def test_a_proxy_command_is_the_connection(node: Node, bastion: Node) -> None:
    relay = (
        "import socket,sys,os,threading\n"
        "far = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def out():\n"
        "    while data := far.recv(4096): os.write(1, data)\n"
        "threading.Thread(target=out, daemon=True).start()\n"
        "while data := os.read(0, 4096): far.sendall(data)\n"
    )
    script = node.known_hosts.with_name("relay.py")
    script.write_text(relay)
    configure(node, bastion, f"ProxyCommand {sys.executable} '{script}' %h %p")
    assert connect(node.options).call("get", "nodes") == []
    assert bastion.server.users == []


def test_several_keys_of_which_none_is_accepted(node: Node, bastion: Node) -> None:
    configure(node, bastion, f"IdentityFile {bastion.options['api_ssh_private_key_file']}")
    node.server.allowed = None
    with pytest.raises(
        SlipwayError, match=r"no SSH key was accepted for root\. Check api_ssh_private_key_file, or IdentityFile"
    ):
        connect(node.options)


def test_explicit_options_win(node: Node, bastion: Node) -> None:
    configure(node, bastion, "Compression no")
    own = Path(node.known_hosts.parent / ".ssh/config")
    own.write_text(own.read_text().replace(f"Port {node.port}", "Port 1").replace("/key", "/no-key"))
    node.options |= {"api_ssh_port": node.port, "api_ssh_private_key_file": str(node.known_hosts.with_name("key"))}
    assert connect(node.options).call("get", "nodes") == []
    node.options["api_ssh_config_file"] = "/nonexistent/config"
    with pytest.raises(SlipwayError, match="'/nonexistent/config' cannot be read"):
        connect(node.options)


def test_a_command_that_is_not_the_api_s(node: Node) -> None:
    node.server.answers = {"-c true": ("", "sh: no such thing\n", 1)}
    node.server.hang_ups = 1
    api = connect(node.options)
    for _ in range(2):
        assert api.run(["sh", "-c", "true"]) == ("", "sh: no such thing\n", 1)
    node.server.drops = 1
    assert api.run(["sh", "-c", "true"]) == ("", "sh: no such thing\n", 1)
