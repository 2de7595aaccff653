# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/first-host.md says what the code says: variables, sentences, findings, addresses and commands."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from ansible.module_utils.slipway import findings

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/first-host.md").read_text()


def test_every_variable_exists() -> None:
    roles = [path.parents[1].name for path in (ROOT / "roles").glob("*/meta/argument_specs.yml")]
    named = set(re.findall(rf"\b(?:{'|'.join(roles)})_\w+", TEXT))
    assert {"pve_host_allow_reboot", "pve_host_driver_sha256"} <= named
    for name in named:
        assert any(name in path.read_text() for path in (ROOT / "roles").glob("*/defaults/main.yml")), name


def test_what_it_says_that_is_said_is_said() -> None:
    rows = TEXT.partition("| it says | do |")[2]
    said = [
        phrase for row in re.findall(r"^\| (`.+?) \|", rows, re.MULTILINE) for phrase in re.findall(r"`([^`]+)`", row)
    ]
    assert len(said) > 8
    sources = [
        *(ROOT / "roles").rglob("*.yml"),
        *(ROOT / "module_utils").rglob("*.py"),
        *(ROOT / "molecule").rglob("*.yml"),
    ]
    everything = " ".join(re.sub(r"\s+", " ", path.read_text()) for path in sources)
    for phrase in said:
        # OpenSSH's own words, which nothing here repeats.
        assert phrase == "Host key verification failed" or phrase in findings.CATALOGUE or phrase in everything, phrase


def test_addresses_and_names_are_those_of_the_example() -> None:
    hosts = yaml.safe_load((ROOT / "inventory/example/hosts.yml").read_text())["all"]["children"]
    known = {name for group in hosts.values() for name in group["hosts"]}
    addresses = {host["ansible_host"] for group in hosts.values() for host in group["hosts"].values()}
    assert set(re.findall(r"198\.51\.100\.\d+", TEXT)) <= addresses
    assert set(re.findall(r"\b(?:pve|infer)\d\b", TEXT)) <= known


def test_the_token_is_the_one_that_operations_describes() -> None:
    commands = re.findall(r"^ +(pveum .+)$", TEXT, re.MULTILINE)
    assert len(commands) == 6
    assert commands == re.findall(r"^ +(pveum .+)$", (ROOT / "docs/operations.md").read_text(), re.MULTILINE)
