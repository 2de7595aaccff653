# SPDX-License-Identifier: GPL-3.0-or-later
"""What state a file is in, whose it is, and what its name says."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.python import ownership, states
from ansible.module_utils.slipway.python.record import Entry
from ansible.module_utils.slipway.python.site import Distribution

ONE, TWO, PATCH = "1" * 64, "2" * 64, "3" * 64
PATCHES = {PATCH: ("limit",)}


def owner(digest: str, algorithm: str = "sha256", number: int = 0) -> tuple[int, Entry]:
    return number, Entry("a.py", algorithm if digest else "", digest, 5)


@pytest.mark.parametrize(
    ("owners", "there", "digests", "patches", "state"),
    [
        ([owner(ONE)], True, {"sha256": ONE}, {}, "pristine"),
        ([owner(ONE)], True, {"sha256": TWO}, {}, "modified"),
        ([owner(ONE), owner(TWO, number=1)], True, {"sha256": TWO}, {}, "pristine"),
        ([owner(ONE), owner("")], True, {"sha256": TWO}, {}, "modified"),
        ([owner(ONE, "sha512")], True, {"sha512": ONE}, {}, "pristine"),
        ([owner(ONE, "sha512")], True, {"sha256": ONE}, {}, "modified"),
        ([owner("")], True, {"sha256": TWO}, {}, "unhashed"),
        ([owner(ONE)], True, {"sha256": PATCH}, PATCHES, "patched"),
        ([owner(ONE)], True, {"sha256": TWO}, PATCHES, "modified"),
        ([owner(ONE)], True, {"sha256": ONE}, PATCHES, "pristine"),
        ([owner(ONE)], True, None, PATCHES, "unread"),
        ([owner(ONE)], False, None, PATCHES, "missing"),
        ([owner(ONE)], False, None, {"absent": ("gone",)}, "patched"),
    ],
)
def test_states(
    owners: list[tuple[int, Entry]],
    there: bool,
    digests: dict[str, str] | None,
    patches: dict[str, tuple[str, ...]],
    state: str,
) -> None:
    assert states.of_recorded(owners, there, digests, patches) == state


@pytest.mark.parametrize(
    ("path", "code", "run", "leftover"),
    [
        ("a/b.py", True, True, False),
        ("a/kernel.cuh", True, True, False),
        ("a/_C.abi3.so", False, True, False),
        ("a/lib/libx.so.1.2", False, True, False),
        ("a/alone.pyc", False, True, False),
        ("a/data.json", False, False, False),
        ("a/some.sound", False, False, False),
        ("a/b.py.orig", False, False, True),
        ("a/b.py~", False, False, True),
        ("a/.b.py.swp", False, False, True),
        ("/s/~orch/a.txt", False, False, True),
    ],
)
def test_what_a_name_says(path: str, code: bool, run: bool, leftover: bool) -> None:
    assert (states.is_code(path), states.is_run(path), states.is_leftover(path)) == (code, run, leftover)


def test_whose_a_file_is() -> None:
    entries = (
        Entry("pkg/__init__.py", "sha256", ONE, 5),
        Entry("pkg/__pycache__/__init__.cpython-312.pyc", "", "", None),
        Entry("../../../bin/pkg", "sha256", ONE, 5),
        Entry("/etc/pkg.conf", "sha256", ONE, 5),
        Entry("pkg-1.dist-info/RECORD", "", "", None),
    )
    old = Distribution("old", "1", "/v/lib/python3.12/site-packages/old.egg-info", None, ("old", "old.egg-info"))
    site = "/v/lib/python3.12/site-packages"
    found = ownership.owners(site, [Distribution("pkg", "1", f"{site}/pkg-1.dist-info", entries), old])
    assert sorted(found.files) == ["/etc/pkg.conf", "/v/bin/pkg", f"{site}/pkg/__init__.py"]
    owners = [
        found.of(f"{site}/{path}") for path in ("pkg/__init__.py", "pkg/deep/er/x.py", "pkg-1.dist-info/x", "x.py")
    ]
    assert owners == [0, 0, 0, -1]
    assert [ownership.claimant(found, site, f"{site}/{path}") for path in ("old/a.py", "old.py", "older.py")] == [
        1,
        1,
        -1,
    ]
