# SPDX-License-Identifier: GPL-3.0-or-later
"""What patches account for in an audit: those of the record, those that are declared, and those that nobody wants any more."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.modules import site_audit, site_patch
from patched_environment import MAIN, OTHER, Environment, patch

Run = t.Callable[..., dict[str, t.Any]]
BETTER = MAIN.replace(b"128", b"64")
BEST = BETTER.replace(b"return LIMIT", b"return min(LIMIT, 32)")
NEW = b"def added():\n    return 1\n"
LIMIT = patch("limit", {"pkg/main.py": (MAIN, BETTER)})
MINIMUM = patch("minimum", {"pkg/main.py": (BETTER, BEST)})
MANY = patch("many", {"pkg/extra/new.py": (None, NEW), "pkg/other.py": (OTHER, None)})


class Patched:
    """Both modules for one environment, with its record below the test's folder."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        self.environment = Environment(folder / "venv")
        self.given = {"venv": str(self.environment.venv), "record_directory": str(folder / "records")}
        self.run_module = run_module

    def apply(self, *patches: dict[str, t.Any]) -> None:
        assert self.run_module(site_patch, {**self.given, "patches": list(patches)})["rc"] == 0

    def __call__(self, **options: t.Any) -> dict[str, t.Any]:
        return self.run_module(site_audit, {**self.given, **options})


@pytest.fixture
def patched(tmp_path: Path, run_module: Run) -> Patched:
    return Patched(tmp_path, run_module)


def files(result: dict[str, t.Any]) -> list[tuple[str, str, list[str]]]:
    return [(one["path"], one["state"], one["patches"]) for one in result["files"]]


def found(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    return [(one["id"], one["subject"]) for one in result["findings"]]


def test_what_the_record_says_is_no_fault(patched: Patched) -> None:
    assert (files(patched()), found(patched())) == ([], [])
    patched.apply(LIMIT, MINIMUM, MANY)
    done = patched()
    assert found(done) == []
    assert files(done) == [
        ("pkg/main.py", "patched", ["limit", "minimum"]),
        ("pkg/other.py", "patched", ["many"]),
        ("pkg/extra/new.py", "patched", ["many"]),
    ]
    assert done["totals"]["patched"] == 3


def test_a_patched_file_that_was_edited_is_modified(patched: Patched) -> None:
    patched.apply(LIMIT)
    path = patched.environment.site / "pkg/main.py"
    path.write_bytes(path.read_bytes() + b"breakpoint()\n")
    line = len(BETTER.splitlines()) + 1
    # Compared with what the patch replaced, which is kept beside the record.
    assert found(patched()) == [("SITE_DEBUG_CODE", f"pkg/main.py:{line}"), ("SITE_FILE_MODIFIED", "pkg/main.py")]
    assert "not at hand" not in patched()["findings"][0]["detail"]


def test_a_patch_of_another_version_says_nothing(patched: Patched) -> None:
    patched.apply(LIMIT)
    info = next(patched.environment.site.glob("pkg-*.dist-info"))
    info.rename(info.with_name("pkg-9.9.dist-info"))
    assert ("SITE_FILE_MODIFIED", "pkg/main.py") in found(patched())


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ([LIMIT], []),
        (["limit"], []),
        ([], [("SITE_PATCH_UNDECLARED", "limit")]),
        ([MANY], [("SITE_PATCH_UNDECLARED", "limit"), ("SITE_PATCH_ABSENT", "many")]),
        (["limit", "other"], [("SITE_PATCH_ABSENT", "other")]),
    ],
)
def test_against_what_is_declared(patched: Patched, declared: list[t.Any], expected: list[tuple[str, str]]) -> None:
    patched.apply(LIMIT)
    assert found(patched(patches=declared)) == expected


def test_a_declared_patch_counts_without_a_record(patched: Patched) -> None:
    (patched.environment.site / "pkg/main.py").write_bytes(BETTER)
    assert found(patched()) == [("SITE_FILE_MODIFIED", "pkg/main.py")]
    assert found(patched(patches=[LIMIT])) == []
    assert files(patched(patches=[LIMIT])) == [("pkg/main.py", "patched", ["limit"])]


def test_a_patch_that_cannot_be_read_is_refused(patched: Patched) -> None:
    failed = patched(patches=[{"id": "x"}])
    assert failed["rc"] == 1
    assert failed["msg"].startswith("Cannot read option 'patches' on ")
    assert [one["id"] for one in failed["findings"]] == ["PATCH_INVALID"]
