# SPDX-License-Identifier: GPL-3.0-or-later
"""inventory/example: what it sets exists, what a user fills in is marked and listed, and the fleet scenario fills in exactly that."""

from __future__ import annotations

import importlib.util
import re
import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "inventory/example"
FILES = sorted(path for path in EXAMPLE.rglob("*") if path.name.endswith((".yml", ".yml.example")))
# Ansible's own, and those that only lead to others.
NOT_OF_A_ROLE = {"ansible_host", "ansible_user", "ansible_ssh_private_key_file", "ansible_ssh_common_args", "profile"}


def fill_module() -> t.Any:
    spec = importlib.util.spec_from_file_location("fill", ROOT / "molecule/fleet/fill.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILL = fill_module()


def role_variables() -> set[str]:
    names: set[str] = set()
    for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"):
        names |= set(yaml.safe_load(path.read_text())["argument_specs"]["main"].get("options", {}))
    return names


def set_names(path: Path) -> set[str]:
    """The variables that a file sets, and those that a comment of it offers to set."""
    text = path.read_text()
    offered = set(re.findall(r"^ *# ([a-z]\w*): ?\S", text, re.MULTILINE))
    data = yaml.safe_load(text)
    if path.name != "hosts.yml":
        return set(data) | offered
    groups = data["all"]["children"].values()
    return {name for group in groups for host in group["hosts"].values() for name in host} | offered


def marked(path: Path) -> list[str]:
    """The lines with the mark, without it."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    return [line.removesuffix(" # <- yours") for line in lines if "<- yours" in line and not line.startswith("#")]


def test_there_is_an_example() -> None:
    assert [str(path.relative_to(EXAMPLE)) for path in FILES] == [
        "group_vars/all/main.yml",
        "group_vars/all/vault.yml.example",
        "group_vars/inference.yml",
        "group_vars/pve_nodes.yml",
        "hosts.yml",
    ]
    assert sum(len(marked(path)) for path in FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_exists(path: Path) -> None:
    assert {
        name for name in set_names(path) - role_variables() - NOT_OF_A_ROLE if not name.startswith("vault_")
    } == set()


def test_every_secret_comes_from_the_vault_and_the_vault_has_it() -> None:
    used = {name for path in FILES for name in re.findall(r"\{\{ (vault_\w+)", path.read_text())}
    assert used == {"vault_pve_token_secrets", "vault_inference_api_key"}
    assert used == set(yaml.safe_load((EXAMPLE / "group_vars/all/vault.yml.example").read_text()))
    for path in FILES:
        for name, value in re.findall(r"^(\w+(?:secret|api_key)): (.*)", path.read_text(), re.MULTILINE):
            assert name.startswith("vault_") or value.startswith('"{{ vault_'), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_marked_is_what_the_scenario_fills_in(path: Path) -> None:
    table = FILL.values()["marked"][str(path.relative_to(EXAMPLE))]
    assert sorted(marked(path)) == sorted(table)


def test_the_scenario_knows_no_other_file() -> None:
    assert set(FILL.values()["marked"]) == {str(path.relative_to(EXAMPLE)) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_addresses_and_paths_of_an_example_are_all_marked(path: Path) -> None:
    for line in path.read_text().splitlines():
        if not line.lstrip().startswith("#") and re.search(r"198\.51\.100\.|: [~/]|/srv/|\.run\b", line):
            assert line.endswith("# <- yours"), line


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_readme_lists_what_is_marked(path: Path) -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \|", (EXAMPLE / "README.md").read_text(), re.MULTILINE)
    name = str(path.relative_to(EXAMPLE)).removesuffix(".example")
    listed = [word for file, words in rows if file == name for word in re.findall(r"`(\w+)`", words)]
    assert sorted(set(listed)) == sorted({line.split(":")[0] for line in marked(path)})
    assert len(listed) == len(set(listed))


def test_filling_in_changes_only_marked_values() -> None:
    text = "a: 1 # <- yours\nb: 2\n  c: [x, y] # <- yours\n# d: 4\n"
    assert (
        FILL.fill(text, {"a: 1": "{rig[n]}", "c: [x, y]": '"z"'}, {"rig": {"n": 7}})
        == 'a: 7 # <- yours\nb: 2\n  c: "z" # <- yours\n# d: 4\n'
    )


def test_a_marked_value_without_a_value_of_the_scenario_is_an_error() -> None:
    with pytest.raises(KeyError, match="b: 2"):
        FILL.fill("a: 1 # <- yours\nb: 2 # <- yours\n", {"a: 1": "7"}, {})


def test_what_lies_beside_the_inventory_is_not_read_as_one() -> None:
    patterns = re.search(r"^ignore_patterns = (.+)$", (ROOT / "ansible.cfg").read_text(), re.MULTILINE)
    assert patterns
    ignored = [
        name
        for name in (
            "known_hosts",
            "known_hosts.old",
            "pve1.pem",
            "reports",
            "hosts.yml",
            "group_vars",
            "10-cluster.yml",
        )
        if any(re.search(pattern.strip(), name) for pattern in patterns[1].split(","))
    ]
    assert ignored == ["known_hosts", "known_hosts.old", "pve1.pem", "reports"]
