# SPDX-License-Identifier: GPL-3.0-or-later
"""The way that an SSH configuration describes."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.slipway.pve.client import ApiError
from ansible.module_utils.slipway.pve.sshroute import Hop, route


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own ~/.ssh/config, which is not there yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("getpass.getuser", lambda: "me")
    (tmp_path / ".ssh").mkdir()
    return tmp_path / ".ssh/config"


def test_without_a_configuration_there_is_one_hop(own: Path) -> None:
    assert route(None, "pve1", "root") == [Hop("pve1", "pve1", 22, "root")]
    assert route(None, "192.0.2.1", "root", 2222, "/k") == [Hop("192.0.2.1", "192.0.2.1", 2222, "root", ("/k",), False)]


def test_the_node_is_what_the_file_says_and_what_is_given_wins(own: Path) -> None:
    (own.parent / "id").touch()
    own.write_text(
        "Host pve*\n  HostName %h.example.com\n  Port 2022\n  User admin\n  IdentityFile ~/.ssh/id\n"
        "  IdentityFile ~/.ssh/missing\nHost *\n  IdentitiesOnly yes\n  Port 7\n"
    )
    key = str(own.parent / "id")
    assert route(None, "pve1", "root") == [Hop("pve1", "pve1.example.com", 2022, "root", (key,), False)]
    assert route(None, "pve1", "root", 22, "/k") == [Hop("pve1", "pve1.example.com", 22, "root", ("/k",), False)]
    assert route(None, "other", "root")[0].port == 7


def test_jump_hosts_come_first_and_have_settings_of_their_own(own: Path) -> None:
    own.write_text(
        "Host pve1\n  ProxyJump ops@inner:2200,[2001:db8::1]:23,ssh://last\n  ProxyCommand never\n"
        "Host inner\n  HostName 192.0.2.7\n  ProxyJump outer\n"
        "Host outer\n  ProxyCommand connect %h %p %r\n  User gate\n"
        "Host last\n  ProxyJump nowhere\n"
    )
    assert route(None, "pve1", "root") == [
        Hop("outer", "outer", 22, "gate", command="connect outer 22 gate"),
        Hop("inner", "192.0.2.7", 2200, "ops"),
        Hop("2001:db8::1", "2001:db8::1", 23, "me"),
        Hop("last", "last", 22, "me"),
        Hop("pve1", "pve1", 22, "root"),
    ]


def test_no_proxy_is_none(own: Path) -> None:
    own.write_text("Host pve1\n  ProxyJump none\nHost pve2\n  ProxyCommand none\nHost *\n  ProxyJump gate\n")
    assert [hop.name for hop in route(None, "pve1", "root")] == ["pve1"]
    own.write_text("Host pve2\n  ProxyCommand none\nHost *\n  ProxyCommand gate\n")
    assert route(None, "pve2", "root")[0].command is None


def test_the_node_is_root_also_for_its_proxy_command(own: Path) -> None:
    own.write_text("Host *\n  User admin\n  ProxyCommand connect %r@%h:%p\n")
    assert route(None, "pve1", "root", 2222)[0].command == "connect root@pve1:2222"


def test_included_files_are_read_where_they_are_named(own: Path) -> None:
    (own.parent / "more.d").mkdir()
    (own.parent / "more.d/1").write_text("Host other\n  Port 1\n")
    (own.parent / "more.d/2").write_text("Host pve1\n  Port 2\n")
    # What stands behind the inclusion is of all hosts, not of the last one in the file.
    own.write_text("Include more.d/*\nPort 3\n")
    assert [route(None, host, "root")[0].port for host in ("other", "pve1", "third")] == [1, 2, 3]


def test_another_file_can_be_named(own: Path, tmp_path: Path) -> None:
    own.write_text("Port 1\n")
    (tmp_path / "mine").write_text("Port 2\n")
    assert route(str(tmp_path / "mine"), "pve1", "root")[0].port == 2
    with pytest.raises(FileNotFoundError):
        route(str(tmp_path / "missing"), "pve1", "root")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Host pve1\n  ProxyJump pve1\n", "lead in a circle"),
        ("Host pve1\n  Port many\n", "invalid literal"),
        ("NoValue\n", "Unparsable line"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(own: Path, text: str, cause: str) -> None:
    own.write_text(text)
    with pytest.raises(ApiError) as refused:
        route(None, "pve1", "root")
    assert refused.value.cause.startswith("the SSH configuration in ~/.ssh/config cannot be used (")
    assert cause in refused.value.cause
