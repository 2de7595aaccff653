# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.python import lock

A, B = "a" * 64, "b" * 64


def test_reads_what_uv_writes() -> None:
    text = f"""
# a comment
Slip_One[extra]==1.0 \\
    --hash=sha256:{A} \\
    --hash=sha256:{B}
    # via something
slip.two==2.0+cpu ; python_version < "3.13" and sys_platform == 'linux' --hash=sha256:{A}  # at the end
"""
    assert lock.parse(text) == [
        lock.Requirement("slip-one", "1.0", (f"sha256:{A}", f"sha256:{B}")),
        lock.Requirement(
            "slip-two", "2.0+cpu", (f"sha256:{A}",), "python_version < \"3.13\" and sys_platform == 'linux'"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "finding_id", "part"),
    [
        ("slip-one==1.0\n", "LOCK_UNHASHED", "1 of its 1 packages have no hash: slip-one"),
        (f"a==1 --hash=sha256:{A}\nb==1\nc==2\n", "LOCK_UNHASHED", "2 of its 3 packages have no hash: b, c"),
        ("", "LOCK_INVALID", "names no package"),
        (f"slip>=1 --hash=sha256:{A}", "LOCK_INVALID", "line 1 (slip)"),
        (f"slip==1.* --hash=sha256:{A}", "LOCK_INVALID", "line 1 (slip)"),
        (f"slip --hash=sha256:{A}", "LOCK_INVALID", "line 1 (slip)"),
        (f"a==1 --hash=sha256:{A}\n\nb==1 --hash=md5:{'0' * 32}", "LOCK_INVALID", "line 3 has a hash"),
        ("a==1 --hash=sha256:12", "LOCK_INVALID", "line 1 has a hash"),
        ("--index-url https://user:geheim@mirror.example/simple", "LOCK_INVALID", "option (--index-url)"),
        (f"slip @ https://user:geheim@mirror.example/x.whl --hash=sha256:{A}", "LOCK_INVALID", "line 1 (slip)"),
    ],
)
def test_refuses_what_is_no_lock(text: str, finding_id: str, part: str) -> None:
    with pytest.raises(SlipwayError) as caught:
        lock.parse(text)
    assert [one.id for one in caught.value.findings] == [finding_id]
    assert part in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_takes_what_the_markers_want() -> None:
    text = (
        f"a==1 ; python_version < '3.13' --hash=sha256:{A}\n"
        f"a==2 ; python_version >= '3.13' --hash=sha256:{A}\nb==3 --hash=sha256:{A}"
    )
    requirements = lock.parse(text)
    assert lock.wanted(requirements, {"python_version": "3.12"}) == {"a": "1", "b": "3"}
    assert lock.wanted(requirements, {"python_version": "3.13"}) == {"a": "2", "b": "3"}
    with pytest.raises(SlipwayError, match=r"the marker of a \(python_version < '3.13'\) cannot be read"):
        lock.wanted(requirements, {})


def test_refuses_two_versions_of_one_package() -> None:
    with pytest.raises(SlipwayError, match="a is there in two versions, 1 and 2"):
        lock.wanted(lock.parse(f"a==1 --hash=sha256:{A}\nA==2 --hash=sha256:{A}"), {})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.0", "1.0.0", True),
        ("1.0-rc1", "1.0rc1", True),
        ("1.10", "1.1", False),
        ("2.9.1+cpu", "2.9.1", False),
        ("2.9.1+CU128.1", "2.9.1+cu128-1", True),
        ("0.5.10.post1", "0.5.10-post1", True),
        ("1!2.0", "2.0", False),
        ("?", "1", False),
    ],
)
def test_versions(one: str, other: str, same: bool) -> None:
    assert lock.same_version(one, other) is same


def test_reads_real_locks(shared_data: Path) -> None:
    counts = {path.name: len(lock.parse(path.read_text())) for path in (shared_data / "stacks").glob("*.lock")}
    assert counts["glm-5-sglang-0.5.9.cp312-linux-x86_64.lock"] == 170
    assert counts["kimi-k2.5-vllm-0.16.0.cp312-linux-x86_64.lock"] == 163
