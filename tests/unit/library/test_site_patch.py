# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches of one package: applied, taken back, restored, and refused."""

from __future__ import annotations

import os
import stat
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.patching import transaction
from ansible.modules import site_patch
from patched_environment import BARE, DOS, FILES, MAIN, OTHER, Environment, make_wheel, patch, sha256

Run = t.Callable[..., dict[str, t.Any]]
BETTER = MAIN.replace(b"128", b"64")
BEST = BETTER.replace(b"return LIMIT", b"return min(LIMIT, 32)")
LIMIT = patch("limit", {"pkg/main.py": (MAIN, BETTER)})
MINIMUM = patch("minimum", {"pkg/main.py": (BETTER, BEST)})
NEW = b"def added():\n    return 1\n"
MANY = patch(
    "many",
    {
        "pkg/main.py": (MAIN, BETTER),
        "pkg/extra/new.py": (None, NEW),
        "pkg/other.py": (OTHER, None),
        "pkg/dos.txt": (DOS, DOS.replace(b"two", b"2")),
        "pkg/bare.txt": (BARE, BARE + b" one"),
    },
)


class Patching:
    """The module for one environment, with its record below the test's folder."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        self.environment = Environment(folder / "venv")
        self.records = folder / "records"
        self.folder = folder
        self.run_module = run_module

    def __call__(self, *patches: dict[str, t.Any], check: bool = False, **options: t.Any) -> dict[str, t.Any]:
        given = {"venv": str(self.environment.venv), "patches": list(patches), "record_directory": str(self.records)}
        return self.run_module(site_patch, {**given, **options}, check)

    def read(self, path: str) -> bytes | None:
        return self.environment.read(path)


@pytest.fixture
def patching(tmp_path: Path, run_module: Run) -> Patching:
    return Patching(tmp_path, run_module)


def states(result: dict[str, t.Any]) -> dict[str, str]:
    return {one["id"]: one["state"] for one in result["patches"]}


def found(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    return [(one["id"], one["severity"]) for one in result["findings"]]


def test_applies_repeats_and_takes_back_to_the_byte(patching: Patching) -> None:
    first = patching(MANY)
    assert (first["rc"], first["changed"], first["restart_required"], states(first)) == (
        0,
        True,
        True,
        {"many": "applied"},
    )
    assert patching.environment.files == {
        "pkg/__init__.py": b"",
        "pkg/main.py": BETTER,
        "pkg/extra/new.py": NEW,
        "pkg/dos.txt": b"one\r\n2\r\nthree\r\n",
        "pkg/bare.txt": b"first\nlast one",
    }
    assert {one["path"]: (one["before"], one["after"]) for one in first["files"]}["pkg/other.py"] == (
        sha256(OTHER),
        "absent",
    )
    again = patching(MANY)
    assert (again["rc"], again["changed"], again["files"], again["restart_required"]) == (0, False, [], False)
    back = patching(MANY, state="reverted")
    assert (back["rc"], back["changed"], states(back)) == (0, True, {"many": "pristine"})
    assert patching.environment.files == FILES
    assert not (patching.environment.site / "pkg/extra").exists()
    assert patching(MANY, state="reverted")["changed"] is False


def test_check_mode_shows_it_and_writes_nothing(patching: Patching) -> None:
    before = sorted(patching.folder.rglob("*"))
    planned = patching(LIMIT, check=True)
    assert (planned["changed"], planned["restart_required"], states(planned)) == (True, True, {"limit": "applied"})
    assert planned["diff"] == [
        {
            "before_header": f"{patching.environment.venv}: pkg/main.py",
            "after_header": f"{patching.environment.venv}: pkg/main.py",
            "before": MAIN.decode(),
            "after": BETTER.decode(),
        }
    ]
    assert sorted(patching.folder.rglob("*")) == before and patching.read("pkg/main.py") == MAIN
    done = patching(LIMIT)
    assert (done["files"], done["diff"]) == (planned["files"], planned["diff"])


def test_two_patches_on_one_file_lie_on_each_other(patching: Patching) -> None:
    assert states(patching(LIMIT, MINIMUM)) == {"limit": "applied", "minimum": "applied"}
    assert patching.read("pkg/main.py") == BEST
    assert patching(LIMIT, MINIMUM)["changed"] is False
    covered = patching(LIMIT, state="reverted")
    assert (covered["rc"], found(covered)) == (1, [("PATCH_COVERED", "fail")])
    assert "minimum lies on it, in pkg/main.py" in covered["msg"] and patching.read("pkg/main.py") == BEST
    assert states(patching(MINIMUM, state="reverted")) == {"minimum": "pristine", "limit": "applied"}
    assert patching.read("pkg/main.py") == BETTER
    patching(LIMIT, MINIMUM)
    assert states(patching(LIMIT, MINIMUM, state="reverted")) == {"limit": "pristine", "minimum": "pristine"}
    assert patching.read("pkg/main.py") == MAIN


def test_the_second_alone_is_refused_and_both_are_not_begun_when_one_does_not_fit(patching: Patching) -> None:
    alone = patching(MINIMUM)
    assert (alone["rc"], found(alone)) == (1, [("PATCH_FOREIGN", "fail")])
    beside = patch("beside", {"pkg/main.py": (MAIN, MAIN + b"# end\n"), "pkg/other.py": (OTHER, b"NAME = 'x'\n")})
    both = patching(LIMIT, beside)
    assert both["rc"] == 1 and "pkg/main.py is not what it was made from once limit is in it" in both["msg"]
    assert patching.environment.files == FILES


def test_exactly_the_declared_ones(patching: Patching) -> None:
    other = patch("other", {"pkg/other.py": (OTHER, b"NAME = 'mine'\n")})
    patching(LIMIT, MINIMUM, other)
    left = patching(LIMIT, exclusive=True)
    assert states(left) == {"limit": "applied", "minimum": "pristine", "other": "pristine"}
    assert (patching.read("pkg/main.py"), patching.read("pkg/other.py")) == (BETTER, OTHER)
    none = patching(exclusive=True)
    assert (none["changed"], patching.environment.files) == (True, FILES)
    assert patching(exclusive=True)["changed"] is False


def test_a_patch_that_changed_replaces_its_older_self_and_what_lies_on_it_stays(patching: Patching) -> None:
    patching(LIMIT)
    lower = MAIN.replace(b"128", b"32")
    changed = patching(patch("limit", {"pkg/main.py": (MAIN, lower)}))
    assert changed["patches"][0]["before"] == "outdated" and states(changed) == {"limit": "applied"}
    assert patching.read("pkg/main.py") == lower
    patching(LIMIT, MINIMUM)
    reworded = {**LIMIT, "files": LIMIT["files"], "diff": "From: somebody\n\n" + LIMIT["diff"]}
    assert patching(reworded, MINIMUM)["restart_required"] is False
    assert patching.read("pkg/main.py") == BEST


def test_what_upstream_has_is_left_alone(patching: Patching) -> None:
    upstream = MAIN.replace(b"LIMIT = 128", b"LIMIT = 60 + 4")
    patching.environment.install("1.1", {**FILES, "pkg/main.py": upstream})
    by_version = {**LIMIT, "superseded_in": "1.1"}
    by_hash = {**LIMIT, "files": [{**LIMIT["files"][0], "upstream": [sha256(upstream)]}]}
    for one in (by_version, by_hash):
        for state in ("applied", "reverted"):
            result = patching(one, state=state)
            assert (result["rc"], result["changed"], states(result)) == (0, False, {"limit": "upstream"})
            assert patching.read("pkg/main.py") == upstream
    assert found(patching(by_version)) == [("PATCH_UPSTREAM", "info")]


def test_an_equivalent_of_somebody_else_is_told_and_left(patching: Patching) -> None:
    variant = MAIN.replace(b"128", b"0x40")
    patching.environment.write("pkg/main.py", variant)
    known = {
        **LIMIT,
        "files": [{**LIMIT["files"][0], "equivalents": [{"sha256": sha256(variant), "what": "the closed one"}]}],
    }
    result = patching(known)
    assert (result["rc"], result["changed"], states(result)) == (0, False, {"limit": "equivalent"})
    assert (found(result), result["findings"][0]["detail"]) == ([("PATCH_EQUIVALENT", "info")], "the closed one")
    assert patching(known, state="reverted")["changed"] is False
    assert patching.read("pkg/main.py") == variant


@pytest.mark.parametrize("state", ["applied", "reverted"])
def test_a_file_that_somebody_changed_is_refused_and_the_difference_shown(patching: Patching, state: str) -> None:
    patching(LIMIT)
    patching.environment.write("pkg/main.py", BETTER + b"torch.save(x, '/tmp/x.pt')\n")
    for check in (True, False):
        refused = patching(LIMIT, state=state, check=check)
        assert (refused["rc"], found(refused)) == (1, [("PATCH_FOREIGN", "fail")])
        assert "differs from what the patch makes of it: @@ -7,0 +8 @@ | +torch.save(x, '/tmp/x.pt')" in refused["msg"]
        assert "state: restored" in refused["msg"]
    assert patching.read("pkg/main.py") == BETTER + b"torch.save(x, '/tmp/x.pt')\n"


def test_without_the_original_the_first_line_that_differs_is_named(patching: Patching) -> None:
    patching.environment.write("pkg/main.py", MAIN.replace(b"128", b"129"))
    assert "line 3 is 'LIMIT = 129\\n', and the diff was made from 'LIMIT = 128\\n'" in patching(LIMIT)["msg"]
    patching.environment.write("pkg/main.py", MAIN + b"# far away\n" * 5)
    assert "it differs elsewhere" in patching(LIMIT)["msg"]


def test_half_of_a_patch_is_refused(patching: Patching) -> None:
    patching.environment.write("pkg/main.py", BETTER)
    mixed = patching(MANY)
    assert (mixed["rc"], found(mixed)) == (1, [("PATCH_MIXED", "fail")])
    assert "pkg/main.py is applied; pkg/other.py is pristine" in mixed["msg"]
    assert patching(MANY, state="reverted")["rc"] == 1


def test_a_version_that_it_is_not_made_for_is_refused(patching: Patching) -> None:
    patching.environment.install("1.2")
    refused = patching(LIMIT)
    assert (refused["rc"], found(refused)) == (1, [("PATCH_VERSION_UNKNOWN", "fail")])
    assert "made for 1.0, and pkg 1.2 is installed" in refused["msg"]
    patching.environment.install("1.2", {**FILES, "pkg/main.py": b"something else\n"})
    nothing = patching(LIMIT, state="reverted")
    assert (nothing["rc"], nothing["changed"], states(nothing)) == (0, False, {"limit": "other_version"})


def test_a_version_bump_under_an_applied_patch_drops_the_record_and_what_was_left(patching: Patching) -> None:
    patching(MANY)
    patching.environment.install("1.1")
    assert patching.read("pkg/extra/new.py") == NEW, "no RECORD has it, so no installer removes it"
    after = patching({**MANY, "superseded_in": "1.1"})
    assert (after["rc"], states(after), found(after)) == (
        0,
        {"many": "upstream"},
        [("PATCH_STALE", "info"), ("PATCH_UPSTREAM", "info")],
    )
    assert patching.environment.files == FILES
    assert patching({**MANY, "superseded_in": "1.1"})["changed"] is False


def test_a_file_that_the_new_version_brings_itself_is_not_taken_for_a_leftover(patching: Patching) -> None:
    patching(MANY)
    patching.environment.install("1.1", {**FILES, "pkg/extra/new.py": NEW})
    patching({**MANY, "superseded_in": "1.1"})
    assert patching.read("pkg/extra/new.py") == NEW


def test_an_environment_that_was_built_again_is_patched_again(patching: Patching) -> None:
    patching(LIMIT, MINIMUM)
    patching.environment.write("pkg/main.py", MAIN)
    again = patching(LIMIT, MINIMUM)
    assert (again["rc"], [one["before"] for one in again["patches"]]) == (0, ["pristine", "pristine"])
    assert patching.read("pkg/main.py") == BEST


def test_what_is_exactly_the_patch_is_taken_over_and_can_be_taken_back(patching: Patching) -> None:
    patching.environment.write("pkg/main.py", BEST)
    adopted = patching(LIMIT, MINIMUM)
    assert (adopted["rc"], adopted["changed"], adopted["files"]) == (0, True, [])
    assert patching(LIMIT, MINIMUM)["changed"] is False
    assert patching(state="reverted", exclusive=True)["rc"] == 0
    assert patching.read("pkg/main.py") == MAIN
    patching.environment.write("pkg/main.py", BEST)
    assert patching(LIMIT, MINIMUM, state="reverted")["rc"] == 0
    assert patching.read("pkg/main.py") == MAIN


def test_a_lost_record_and_a_lost_original(patching: Patching) -> None:
    patching(LIMIT)
    for original in patching.records.rglob("originals/*"):
        original.unlink()
    lost = patching(state="reverted", exclusive=True)
    assert (lost["rc"], found(lost)) == (1, [("PATCH_ORIGINAL_LOST", "fail")])
    assert patching(LIMIT, state="reverted")["rc"] == 0, "its diff leads back as well"
    assert patching.read("pkg/main.py") == MAIN


def test_a_package_that_is_there_twice_keeps_its_record(patching: Patching) -> None:
    patching(LIMIT)
    twice = patching.environment.site / "pkg-0.9.dist-info"
    twice.mkdir()
    (twice / "METADATA").write_text("Metadata-Version: 2.1\nName: pkg\nVersion: 0.9\n")
    assert found(patching(LIMIT)) == [("PATCH_PACKAGE_MISSING", "fail")]
    assert patching(state="reverted", exclusive=True)["rc"] == 0
    assert patching.read("pkg/main.py") == MAIN


def test_the_lower_one_alone_does_not_go_while_the_upper_one_is_meant_to_stay(patching: Patching) -> None:
    patching(LIMIT, MINIMUM)
    refused = patching(MINIMUM, exclusive=True)
    assert (refused["rc"], found(refused)) == (1, [("PATCH_FOREIGN", "fail")])
    assert patching.read("pkg/main.py") == BEST


def test_what_lies_on_what_lies_on_it_keeps_it_there_too(patching: Patching) -> None:
    both = patch("both", {"pkg/main.py": (BETTER, BEST), "pkg/new.py": (None, NEW)})
    top = patch("top", {"pkg/new.py": (NEW, NEW + b"\n")})
    patching(LIMIT, both, top)
    refused = patching(LIMIT, state="reverted")
    assert found(refused) == [("PATCH_COVERED", "fail"), ("PATCH_COVERED", "fail")]
    assert patching.read("pkg/main.py") == BEST


def test_a_file_that_is_changed_while_it_is_patched_is_not_overwritten(
    patching: Patching, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = transaction._write

    def meanwhile(path: Path, *rest: t.Any) -> None:
        real(path, *rest)
        if path.name == ".main.py.slipway":
            patching.environment.write("pkg/main.py", b"mine\n")

    monkeypatch.setattr(transaction, "_write", meanwhile)
    refused = patching(MANY)
    assert refused["rc"] == 1 and "pkg/main.py was changed by somebody else meanwhile" in refused["msg"]
    assert patching.environment.files == {**FILES, "pkg/main.py": b"mine\n"}


def test_a_new_folder_is_as_the_one_above_whatever_the_umask(patching: Patching) -> None:
    before = os.umask(0o077)
    try:
        patching(MANY)
    finally:
        os.umask(before)
    made = patching.environment.site / "pkg/extra"
    assert stat.S_IMODE(made.stat().st_mode) == stat.S_IMODE(made.parent.stat().st_mode)
    assert stat.S_IMODE((made / "new.py").stat().st_mode) == 0o644


def test_a_missing_package_and_a_folder_that_is_no_environment(patching: Patching) -> None:
    absent = {**LIMIT, "package": "elsewhere"}
    assert found(patching(absent)) == [("PATCH_PACKAGE_MISSING", "fail")]
    assert (patching(absent, state="reverted")["rc"], patching.read("pkg/main.py")) == (0, MAIN)
    (patching.environment.venv / "pyvenv.cfg").unlink()
    refused = patching(LIMIT)
    assert (refused["rc"], found(refused)) == (1, [("VENV_FOREIGN", "fail")])
    assert refused["msg"].startswith(f"Cannot apply patches of environment '{patching.environment.venv}' on ")


# --- Files as they lie there ---


def test_a_hard_link_is_broken_and_mode_and_mtime_are_those_of_a_new_file(patching: Patching) -> None:
    target, cached = patching.environment.site / "pkg/main.py", patching.folder / "cache.py"
    os.link(target, cached)
    target.chmod(0o444)
    os.utime(target, (1, 1))
    assert patching(LIMIT)["rc"] == 0
    assert (cached.read_bytes(), target.read_bytes()) == (MAIN, BETTER)
    assert (stat.S_IMODE(target.stat().st_mode), target.stat().st_nlink) == (0o444, 1)
    assert patching(LIMIT, state="reverted")["rc"] == 0
    assert (cached.read_bytes(), target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (MAIN, MAIN, 0o444)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owners_are_kept_also_of_a_file_that_went_and_came_back(patching: Patching) -> None:
    for path in ("pkg/main.py", "pkg/other.py"):
        os.chown(patching.environment.site / path, 1234, 2345)
    (patching.environment.site / "pkg/other.py").chmod(0o640)
    patching(MANY)
    facts = (patching.environment.site / "pkg/main.py").stat()
    assert (facts.st_uid, facts.st_gid) == (1234, 2345)
    patching(MANY, state="reverted")
    for path, mode in (("pkg/main.py", 0o644), ("pkg/other.py", 0o640)):
        facts = (patching.environment.site / path).stat()
        assert (facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)) == (1234, 2345, mode)


@pytest.mark.parametrize("linked", ["pkg/main.py", "pkg"])
def test_nothing_is_written_through_a_symbolic_link(patching: Patching, linked: str) -> None:
    target = patching.environment.site / linked
    outside = patching.folder / "outside"
    target.rename(outside)
    target.symlink_to(outside)
    refused = patching(LIMIT)
    assert (refused["rc"], found(refused)) == (1, [("PATCH_PATH_UNSAFE", "fail")])
    assert "symbolic link" in refused["msg"]
    assert (outside if outside.is_file() else outside / "main.py").read_bytes() == MAIN


def test_bytecode_of_touched_files_goes_and_that_of_others_stays(patching: Patching) -> None:
    cache = patching.environment.site / "pkg/__pycache__"
    cache.mkdir()
    names = [
        "main.cpython-312.pyc",
        "main.cpython-312.opt-1.pyc",
        "main_other.cpython-312.pyc",
        "other.cpython-312.pyc",
    ]
    for name in names:
        (cache / name).write_bytes(b"stale")
    patching(LIMIT)
    assert sorted(path.name for path in cache.iterdir()) == ["main_other.cpython-312.pyc", "other.cpython-312.pyc"]


def test_a_renamed_file(patching: Patching) -> None:
    moved = {
        **patch("moved", {}),
        "files": [
            {"path": "pkg/main.py", "before": sha256(MAIN), "after": "absent"},
            {"path": "pkg/core.py", "before": "absent", "after": sha256(BETTER)},
        ],
        "diff": "diff --git a/pkg/main.py b/pkg/core.py\nsimilarity index 90%\nrename from pkg/main.py\nrename to pkg/core.py\n"
        "--- a/pkg/main.py\n+++ b/pkg/core.py\n@@ -3 +3 @@\n-LIMIT = 128\n+LIMIT = 64\n",
    }
    (patching.environment.site / "pkg/main.py").chmod(0o750)
    assert patching(moved)["rc"] == 0
    assert (patching.read("pkg/main.py"), patching.read("pkg/core.py")) == (None, BETTER)
    assert stat.S_IMODE((patching.environment.site / "pkg/core.py").stat().st_mode) == 0o750
    patching(moved, state="reverted")
    assert patching.environment.files == FILES
    assert stat.S_IMODE((patching.environment.site / "pkg/main.py").stat().st_mode) == 0o750


def test_links_to_one_environment_have_one_record(patching: Patching) -> None:
    link = patching.folder / "current"
    link.symlink_to(patching.environment.venv)
    assert patching(LIMIT, venv=str(link))["changed"] is True
    assert patching(LIMIT)["changed"] is False


def test_the_unit_is_named_where_files_changed(patching: Patching) -> None:
    assert patching(LIMIT, unit="slipway-inference.service")["units"] == ["slipway-inference.service"]
    assert patching(LIMIT, unit="slipway-inference.service")["units"] == []


# --- The wheel's files back ---


def test_restored_without_a_record_and_in_spite_of_everything(patching: Patching) -> None:
    _wheel, line = make_wheel(patching.folder / "wheels")
    environment = patching.environment
    environment.write("pkg/main.py", b"import pdb; pdb.set_trace()\n")
    (environment.site / "pkg/other.py").unlink()
    planned = patching(LIMIT, state="restored", wheels=str(patching.folder / "wheels"), lock_content=line, check=True)
    assert environment.read("pkg/main.py") == b"import pdb; pdb.set_trace()\n"
    done = patching(LIMIT, state="restored", wheels=str(patching.folder / "wheels"), lock_content=line)
    for result in (planned, done):
        assert (result["rc"], result["changed"], states(result)) == (0, True, {"limit": "pristine"})
        assert result["patches"][0]["before"] == "foreign"
        assert {one["path"] for one in result["files"]} == {"pkg/main.py", "pkg/other.py"}
    assert environment.files == FILES
    assert (
        patching(LIMIT, state="restored", wheels=str(patching.folder / "wheels"), lock_content=line)["changed"] is False
    )
    assert patching(LIMIT)["rc"] == 0


def test_restored_takes_away_what_patches_made_and_forgets_them(patching: Patching) -> None:
    _wheel, line = make_wheel(patching.folder / "wheels")
    (patching.environment.venv / "slipway.lock").write_text(line)
    patching(MANY)
    assert states(patching(state="restored", exclusive=True, wheels=str(patching.folder / "wheels"))) == {
        "many": "pristine"
    }
    assert patching.environment.files == FILES
    assert patching(exclusive=True)["changed"] is False
    patching(MANY)
    patching.environment.write("pkg/extra/new.py", NEW + b"# mine\n")
    left = patching(MANY, state="restored", wheels=str(patching.folder / "wheels"))
    assert (left["rc"], found(left)) == (0, [("PATCH_FOREIGN", "warn")])
    assert patching.environment.files == {**FILES, "pkg/extra/new.py": NEW + b"# mine\n"}


def test_a_wheel_is_compared_with_the_lock_or_with_record(patching: Patching) -> None:
    wheels = patching.folder / "wheels"
    _wheel, line = make_wheel(wheels)
    wheel, _line = make_wheel(wheels, files={**FILES, "pkg/main.py": b"evil\n"})
    patching.environment.write("pkg/main.py", b"edited\n")
    other = patching(LIMIT, state="restored", wheels=str(wheels), lock_content=line)
    assert (other["rc"], found(other)) == (1, [("HASH_MISMATCH", "fail")])
    unlocked = patching(LIMIT, state="restored", wheels=str(wheels))
    assert (unlocked["rc"], found(unlocked)) == (1, [("HASH_MISMATCH", "fail")])
    assert "not the file that the environment's RECORD has" in unlocked["msg"]
    wheel.unlink()
    assert found(patching(LIMIT, state="restored", wheels=str(wheels))) == [("PACKAGE_UNAVAILABLE", "fail")]
    assert found(patching(LIMIT, state="restored")) == [("PACKAGE_UNAVAILABLE", "fail")]
    assert patching.read("pkg/main.py") == b"edited\n"
    make_wheel(wheels)
    assert patching(LIMIT, state="restored", wheels=str(wheels))["rc"] == 0
    assert patching.environment.files == FILES


# --- Patches that cannot be used ---


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"diff": LIMIT["diff"].rstrip("\n")}, "its last line has no end, so it was cut off"),
        ({"diff": "".join(LIMIT["diff"].splitlines(keepends=True)[:-1])}, "it ends inside a hunk, so it was cut off"),
        ({"diff": LIMIT["diff"].replace("pkg/main.py", "../../etc/passwd")}, "climbs out of site-packages"),
        (
            {"diff": LIMIT["diff"].replace("pkg/main.py", "pkg/other.py")},
            "files names it, and its diff does not change it",
        ),
        ({"versions": [1.0]}, "version 1.0 is a number; put it into quotes"),
        ({"versions": []}, "versions is missing"),
        ({"superseded_in": "soon"}, "'soon' is no version"),
        ({"superceded_in": "1.1"}, "no patch has a key superceded_in"),
        ({"files": [{**LIMIT["files"][0], "before": "1234"}]}, "neither a sha256 in hex nor 'absent'"),
        ({"files": [{**LIMIT["files"][0], "before": "absent"}]}, "which is there before and after"),
        ({"id": "../limit"}, "its id has other characters"),
    ],
)
def test_a_patch_that_is_not_sound_is_refused(patching: Patching, change: dict[str, t.Any], words: str) -> None:
    refused = patching({**LIMIT, **change})
    assert (refused["rc"], found(refused)) == (1, [("PATCH_INVALID", "fail")])
    assert words in refused["msg"]
    assert patching.environment.files == FILES


def test_a_file_in_the_place_of_a_folder_is_refused(patching: Patching) -> None:
    before = patching.environment.files
    inside = patch("inside", {"pkg/new": (None, NEW), "pkg/new/more.py": (None, NEW)})
    assert found(patching(inside)) == [("PATCH_INVALID", "fail")]
    one, other = (patch(name, {path: (None, NEW)}) for name, path in (("one", "pkg/new/more.py"), ("other", "pkg/new")))
    assert found(patching(one, other)) == [("PATCH_INVALID", "fail")]
    assert patching.environment.files == before


def test_a_hash_that_the_diff_does_not_lead_to_is_refused(patching: Patching) -> None:
    wrong = {**LIMIT, "files": [{**LIMIT["files"][0], "after": "0" * 64}]}
    refused = patching(wrong)
    assert (refused["rc"], found(refused)) == (1, [("PATCH_INVALID", "fail")])
    assert f"would have sha256 {sha256(BETTER)}" in refused["msg"]
    assert found(patching(LIMIT, LIMIT)) == [("PATCH_INVALID", "fail")]


def test_a_folder_is_read_where_the_module_runs(patching: Patching) -> None:
    folder = patching.folder / "limit"
    folder.mkdir()
    (folder / "change.diff").write_text(LIMIT["diff"])
    (folder / "patch.yml").write_text(
        "id: limit\nsummary: A patch of a test.\npackage: pkg\nversions: ['1.0']\n"
        f"files:\n  - {{path: pkg/main.py, before: {sha256(MAIN)}, after: {sha256(BETTER)}}}\n"
    )
    assert states(patching(t.cast("dict[str, t.Any]", str(folder)))) == {"limit": "applied"}
    (folder / "patch.yml").write_text("id: [")
    assert found(patching(t.cast("dict[str, t.Any]", str(folder)))) == [("PATCH_INVALID", "fail")]
