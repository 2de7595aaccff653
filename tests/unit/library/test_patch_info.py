# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be known of patches before there is an environment."""

from __future__ import annotations

import typing as t

import pytest
from ansible.modules import patch_info
from patched_environment import MAIN, patch

Run = t.Callable[..., dict[str, t.Any]]
BETTER = MAIN.replace(b"128", b"64")
LIMIT = patch("limit", {"pkg/main.py": (MAIN, BETTER)})
HASH = "--hash=sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("patches", "lock", "expected"),
    [
        ([LIMIT], f"pkg==1.0 {HASH}\n", []),
        ([LIMIT], "", []),
        ([LIMIT], f"pkg==1.2 {HASH}\n", [("PATCH_VERSION_UNKNOWN", "limit")]),
        ([{**LIMIT, "superseded_in": "1.1"}], f"pkg==1.2 {HASH}\n", []),
        ([LIMIT], f"other==1.0 {HASH}\n", [("PATCH_PACKAGE_MISSING", "limit")]),
        ([LIMIT, LIMIT], "", [("PATCH_INVALID", "limit")]),
        (
            [{**LIMIT, "diff": "nothing\n"}, {"id": "empty"}],
            "",
            [("PATCH_INVALID", "limit"), ("PATCH_INVALID", "empty")],
        ),
        ([LIMIT, patch("on", {"pkg/main.py": (BETTER, BETTER + b"#\n")})], f"pkg==1.0 {HASH}\n", []),
        (
            [LIMIT, patch("beside", {"pkg/main.py": (MAIN, MAIN + b"#\n")})],
            f"pkg==1.0 {HASH}\n",
            [("PATCH_INVALID", "beside")],
        ),
    ],
)
def test_what_would_be_refused_is_foreseen(
    run_module: Run, patches: list[t.Any], lock: str, expected: list[tuple[str, str]]
) -> None:
    result = run_module(patch_info, {"patches": patches, "lock_content": lock})
    assert (result["rc"], result["changed"]) == (0, False)
    assert [(one["id"], one["subject"]) for one in result["findings"]] == expected


def test_a_lock_that_is_none(run_module: Run) -> None:
    refused = run_module(patch_info, {"patches": [LIMIT], "lock_content": "pkg>=1\n"})
    assert refused["rc"] == 1 and refused["msg"].startswith("Cannot read patches and lock on ")
