# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests of one node measure one after the other, those of several nodes at one time."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from evaluate import evaluate


@pytest.mark.parametrize(
    ("nodes", "at_once"), [(["n1"], 0), (["n1", "n2"], 0), (["n1", "n1"], 1), (["n1", "n2", "n1"], 1)]
)
def test_guests_that_share_a_node_do_not_measure_at_one_time(root: Path, nodes: list[str], at_once: int) -> None:
    hosts = {f"guest{number}": {"gpu_container_node": node} for number, node in enumerate(nodes)}
    given = {"hostvars": hosts, "ansible_play_hosts": list(hosts)}
    assert int(evaluate("{{ __acceptance_at_once }}", given, root / "roles/acceptance")) == at_once


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("links_measure.yml", "Links | Copy between the GPUs"),
        ("all_reduce_measure.yml", "All-reduce | Reduce over all GPUs"),
        ("speed_measure.yml", "Speed | Load the server"),
    ],
)
def test_all_measurements_keep_to_it(root: Path, file: str, name: str) -> None:
    text = (root / "roles/acceptance/tasks" / file).read_text()
    (measured,) = [
        task for block in yaml.safe_load(text) for task in block.get("block", [block]) if task["name"] == name
    ]
    assert measured["throttle"] == "{{ __acceptance_at_once }}"
