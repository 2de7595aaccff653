# SPDX-License-Identifier: GPL-3.0-or-later
"""The public interface of every role: defaults and argument specs say the same, since Ansible compares neither."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
import yaml

ROLES = sorted(path.parent.parent for path in (Path(__file__).parents[3] / "roles").glob("*/defaults/main.yml"))
PYTHON_TYPES = {"str": str, "path": str, "int": int, "bool": bool, "list": list, "dict": dict}


def options(role: Path) -> dict[str, dict[str, t.Any]]:
    return yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]


def defaults(role: Path) -> dict[str, t.Any]:
    return yaml.safe_load((role / "defaults/main.yml").read_text())


def test_there_are_roles() -> None:
    assert len(ROLES) >= 9


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_and_specs_name_the_same_variables(role: Path) -> None:
    assert set(defaults(role)) == set(options(role))


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_variable_bears_the_name_of_its_role(role: Path) -> None:
    assert [name for name in defaults(role) if not name.startswith(f"{role.name}_")] == []


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_default_has_the_type_and_value_that_the_spec_says(role: Path) -> None:
    for name, value in defaults(role).items():
        option = options(role)[name]
        if "{{" in str(value):  # it depends on other variables, so no spec can say it
            assert "default" not in option, name
            continue
        if option["type"] != "raw":
            assert isinstance(value, PYTHON_TYPES[option["type"]]), name
        if not option.get("required"):
            assert option["default"] == value, name


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_default_is_explained_by_a_comment_above_it(role: Path) -> None:
    lines = (role / "defaults/main.yml").read_text().splitlines()
    for above, line in zip(lines, lines[1:]):
        if re.match(r"\w+:", line):
            assert above.startswith("# ") and not above.startswith("# ---"), line


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_what_is_secret_is_never_logged(role: Path) -> None:
    for name, option in options(role).items():
        if re.search(r"secret|password|api_key$", name):
            assert option.get("no_log") is True, name


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_role_names_no_group(role: Path) -> None:
    for path in (*role.glob("tasks/*.yml"), *role.glob("vars/*.yml"), *role.glob("templates/*")):
        assert not re.search(r"\bgroups\[|\bgroup_names\b", path.read_text()), path
