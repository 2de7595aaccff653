# SPDX-License-Identifier: GPL-3.0-or-later
"""The lists of scenario ``links`` are complete; what they expect is tried on the rig itself."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible.module_utils.slipway.gpu import cuda_codes

SCENARIO = Path(__file__).resolve().parents[3] / "molecule" / "links"
LISTED = yaml.safe_load((SCENARIO / "vars/cases.yml").read_text())


def test_the_list_has_all_that_the_rig_can_do() -> None:
    kinds = {line.split()[0] for case in LISTED["links_cases"] for line in case["faults"]}
    # `latency` and `occupied` are no hazards of links; calls that fail are in the second list.
    assert kinds == {
        *("dropped", "zeros", "mirror", "partial", "stale", "late", "garbage", "implausible", "hang", "error"),
        *("no-access", "false-access", "slow", "staged", "link", "collapse"),
    }


def test_each_code_of_cuinit_is_listed_with_its_cause() -> None:
    """What the modules say to each is tested with them, in ``test_cuda_start``."""
    listed = {case["code"]: case["says"] for case in LISTED["links_codes"]}
    # Those of calls about peers and kernels are no answers to cuInit.
    others = {0, 205, 217, 221, 226, 700, 704, 705, 711, 719}
    assert set(listed) == set(cuda_codes.CODES) - others
    assert {code for code, says in listed.items() if says not in cuda_codes.cause(code)} == set()
