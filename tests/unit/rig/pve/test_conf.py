# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest
from pve import conf


def test_real_parser_and_writer_agree(shared_data: Path) -> None:
    cases = json.loads((shared_data / "pve-golden.json").read_text())["configs"]
    assert len(cases) >= 19
    for name, case in cases.items():
        parsed, warnings = conf.parse(101, case["input"])
        assert (name, parsed) == (name, case["parsed"])
        assert (name, warnings) == (name, case["warnings"])
        assert (name, conf.write(parsed)) == (name, case["written"])


def test_sections_are_kept_apart_and_written_in_order() -> None:
    text = (
        "lxc.mount.entry: a b none bind\nswap: 0\n#note\n[second]\nmemory: 32\nlxc.idmap: u 0 1 2\n"
        "[PVE:pending]\ndelete: tags\n[first]\nmemory: 16\n"
    )
    parsed, warnings = conf.parse(7, text)
    assert warnings == []
    assert conf.write(parsed) == (
        "#note\nswap: 0\nlxc.mount.entry: a b none bind\n\n[pve:pending]\ndelete: tags\n"
        "\n[first]\nmemory: 16\n\n[second]\nmemory: 32\nlxc.idmap: u 0 1 2\n"
    )


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        ("onboot: maybe", "unable to parse value of 'onboot' - type check ('boolean') failed - got 'maybe'\n"),
        ("cpulimit: x", "unable to parse value of 'cpulimit' - type check ('number') failed - got 'x'\n"),
        ("delete: tags", "property 'delete' is only allowed in [pve:pending]\n"),
        ("lxc.made.up: 1", "unable to parse config: lxc.made.up: 1\n"),
        ("nonsense", "unable to parse config: nonsense\n"),
    ],
)
def test_bad_lines_are_only_warned_of(line: str, warning: str) -> None:
    assert conf.parse(7, line + "\n")[1] == [f"vm 7 - {warning}"]


def test_description_survives_a_round_trip() -> None:
    parsed, _ = conf.parse(7, conf.write({"description": "100 %: größer\n\nend\n"}))
    assert parsed["description"] == "100 %: größer\n\nend\n"


def test_pending_values_are_merged_unless_current_ones_are_asked_for() -> None:
    parsed, _ = conf.parse(7, "cores: 1\ntags: a\n[pve:pending]\ndelete: tags\ncores: 2\nswap: 5\n")
    assert conf.merged(parsed) == {"cores": 2, "swap": 5, "digest": parsed["digest"]}
    assert conf.current(parsed) == {"cores": 1, "tags": "a", "digest": parsed["digest"]}
    assert [item for item in conf.pending_items(parsed) if item["key"] != "digest"] == [
        {"key": "cores", "value": 1, "pending": 2},
        {"key": "tags", "value": "a", "delete": 1},
        {"key": "swap", "pending": 5},
    ]
