# SPDX-License-Identifier: GPL-3.0-or-later
"""The files by which uv and pip keep to a lock, beside what is somebody else's."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest
import tomllib
from ansible.module_utils.slipway.python import constraints

LOCKED = {"torch": "2.9.1", "numpy": "2.4.2"}


def test_an_environment_gets_its_own(tmp_path: Path) -> None:
    wanted = constraints.of_environment(tmp_path, LOCKED)
    assert [one.differs for one in wanted] == [True, True]
    constraints.write(wanted)
    assert (tmp_path / "constraints.txt").read_text().splitlines()[1:] == ["numpy==2.4.2", "torch==2.9.1"]
    parser = configparser.RawConfigParser()
    parser.read(tmp_path / "pip.conf")
    assert parser["install"]["constraint"] == str(tmp_path / "constraints.txt")
    assert [one.differs for one in constraints.of_environment(tmp_path, LOCKED)] == [False, False]
    assert [one.differs for one in constraints.of_environment(tmp_path, {"torch": "2.9.1"})] == [True, False]


@pytest.mark.parametrize(
    "others", ["", 'index-strategy = "first-index"\n', "[pip]\nno-build = true\n", "# mine\r\n\r\n[pip]\r\n"]
)
def test_the_rest_of_uvs_file_is_its_owners(tmp_path: Path, others: str) -> None:
    path = tmp_path / "etc/uv/uv.toml"
    path.parent.mkdir(parents=True)
    path.write_bytes(others.encode())
    constraints.write([constraints.of_machine(path, LOCKED)])
    text = path.read_bytes().decode()
    assert text.endswith(others)
    assert tomllib.loads(text) == {**tomllib.loads(others), "constraint-dependencies": ["numpy==2.4.2", "torch==2.9.1"]}
    constraints.write([constraints.of_machine(path, {"torch": "2.10.0"})])
    assert path.read_bytes().decode().endswith(others)
    assert tomllib.loads(path.read_text())["constraint-dependencies"] == ["torch==2.10.0"]
    assert not constraints.of_machine(path, {"torch": "2.10.0"}).differs


def test_a_file_that_says_the_same_thing_itself_stays(tmp_path: Path) -> None:
    path = tmp_path / "uv.toml"
    path.write_text("  constraint-dependencies=[]\n")
    file = constraints.of_machine(path, LOCKED)
    assert (file.differs, file.foreign, [one.id for one in file.findings]) == (False, True, ["CONSTRAINTS_FOREIGN"])


def test_a_comment_about_it_is_no_such_thing(tmp_path: Path) -> None:
    path = tmp_path / "uv.toml"
    path.write_text("# constraint-dependencies = []\n")
    assert constraints.of_machine(path, LOCKED).differs


def test_pips_own_file_of_somebody_else_stays(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\ntimeout = 60\n")
    [mine, theirs] = constraints.of_environment(tmp_path, LOCKED)
    assert (mine.differs, theirs.differs, theirs.foreign) == (True, False, True)


def test_what_was_added_to_pips_file_stays(tmp_path: Path) -> None:
    constraints.write(constraints.of_environment(tmp_path, LOCKED))
    settings = tmp_path / "pip.conf"
    added = "\n[global]\nindex-url = file:///srv/mine\n"
    settings.write_text(settings.read_text() + added)
    files = constraints.of_environment(tmp_path, {"torch": "2.9.1"})
    assert [one.foreign for one in files] == [False, False]
    constraints.write(files)
    assert settings.read_text().endswith(added)
    moved = settings.read_text().replace(str(tmp_path), "/elsewhere")
    settings.write_text(moved)
    constraints.write(constraints.of_environment(tmp_path, LOCKED))
    assert settings.read_text() == moved.replace("/elsewhere", str(tmp_path))


def test_what_was_made_of_pips_file_stays(tmp_path: Path) -> None:
    theirs = f"{constraints.MARK}.\n[install]\nno-cache-dir = true\nconstraint = /mine.txt\n"
    (tmp_path / "pip.conf").write_text(theirs)
    file = constraints.of_environment(tmp_path, LOCKED)[1]
    assert (file.differs, file.foreign) == (False, True)


def test_a_login_in_uvs_file_stays_hidden_and_a_link_a_link(tmp_path: Path) -> None:
    own, path = tmp_path / "own.toml", tmp_path / "uv.toml"
    own.write_text('index-url = "file:///srv/mine"\n')
    own.chmod(0o600)
    path.symlink_to(own)
    constraints.write([constraints.of_machine(path, LOCKED)])
    assert path.is_symlink()
    assert own.stat().st_mode & 0o777 == 0o600
    assert "torch==2.9.1" in own.read_text()


def test_a_key_in_quotes_is_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "uv.toml"
    path.write_text('"constraint-dependencies" = ["torch<3"]\n')
    assert constraints.of_machine(path, LOCKED).foreign
