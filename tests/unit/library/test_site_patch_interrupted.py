# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of ``site_patch`` that is killed at each of its calls of the system, or has no room: the next one completes or undoes it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.modules import site_patch
from patched_environment import BARE, FILES, MAIN, OTHER, Environment, make_wheel, patch

Run = t.Callable[..., dict[str, t.Any]]
BETTER = MAIN.replace(b"128", b"64")
MANY = patch(
    "many",
    {
        "pkg/main.py": (MAIN, BETTER),
        "pkg/extra/new.py": (None, b"NEW = 1\n"),
        "pkg/other.py": (OTHER, None),
        "pkg/bare.txt": (BARE, BARE + b" one"),
    },
)
PATCHED = {
    **{path: content for path, content in FILES.items() if path != "pkg/other.py"},
    "pkg/main.py": BETTER,
    "pkg/extra/new.py": b"NEW = 1\n",
    "pkg/bare.txt": BARE + b" one",
}
# The calls that change what is on disk.
CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "fchmod", "fchown", "chown")


def counted(kill_at: int, made: list[str], name: str, real: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
    """A call that kills its process in its turn, or in the middle of itself if it writes."""

    def call(*arguments: t.Any, **options: t.Any) -> t.Any:
        made.append(name)
        if len(made) == kill_at:
            if name == "write":
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return None if name == "fsync" else real(*arguments, **options)

    return call


class Interrupted:
    """An environment, and the module run in a child that may be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start: dict[str, bytes] = {}

    def fresh(self, state: str) -> None:
        """An environment from which a run to this state has everything to do."""
        for name in ("venv", "records"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.environment = Environment(self.folder / "venv")
        if state == "reverted":
            self.run("applied")
        if state == "restored":
            self.environment.write("pkg/main.py", b"edited\n")
            (self.environment.site / "pkg/bare.txt").unlink()
        self.start = self.environment.files

    def arguments(self, state: str) -> dict[str, t.Any]:
        return {
            "venv": str(self.folder / "venv"),
            "patches": [MANY],
            "state": state,
            "record_directory": str(self.folder / "records"),
            "wheels": str(self.folder / "wheels"),
            "exclusive": False,
            "packages": [],
            "lock_content": "",
            "unit": "none.service",
        }

    def run(self, state: str, check: bool = False) -> dict[str, t.Any]:
        """The next run, in this process; without main(), as there are hundreds of them."""
        return site_patch.run(self.arguments(state), check)

    def refusal(self, state: str) -> str:
        with pytest.raises(SlipwayError) as refused:
            self.run(state)
        return str(refused.value)

    def killed(self, state: str, kill_at: int) -> int:
        """Run the module in a child and kill it at a call; whether it was killed or came to its end is its status."""
        child = os.fork()
        if not child:
            made: list[str] = []
            for name in CALLS:
                setattr(os, name, counted(kill_at, made, name, getattr(os, name)))
            self.run(state)
            os._exit(0)
        return os.waitpid(child, 0)[1]

    def calls(self, state: str, step: int = 1) -> t.Iterator[int]:
        """Every call that a run to this state makes, or every third: each time the environment is as it was left by the kill."""
        for kill_at in range(1, 1000, step):
            self.fresh(state)
            if not os.WIFSIGNALED(self.killed(state, kill_at)):
                return
            yield kill_at

    @property
    def litter(self) -> list[str]:
        """What no finished run leaves anywhere."""
        names = [str(path.relative_to(self.folder)) for path in self.folder.rglob("*")]
        return [name for name in names if ".slipway" in name or name.endswith((".part", "journal.json"))]


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Interrupted]:
    monkeypatch.setattr(
        os, "fsync", lambda handle: None
    )  # a process that is killed loses nothing of what it has written
    memory = Path("/dev/shm")  # hundreds of environments are made and removed
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        make_wheel(Path(folder) / "wheels")
        yield Interrupted(Path(folder))


GOALS = {"applied": PATCHED, "reverted": FILES, "restored": FILES}


@pytest.mark.parametrize("state", GOALS)
def test_killed_at_every_call_and_completed_or_undone_by_the_next_run(interrupted: Interrupted, state: str) -> None:
    between = kill_at = 0
    for kill_at in interrupted.calls(state):
        left = {path: content for path, content in interrupted.environment.files.items() if ".slipway" not in path}
        for path, content in left.items():
            assert content in (interrupted.start.get(path), GOALS[state].get(path)), f"{path} is torn at call {kill_at}"
        between += left not in (interrupted.start, GOALS[state])
        planned = interrupted.run(state, check=True)
        done = interrupted.run(state)
        assert interrupted.environment.files == GOALS[state], (kill_at, done)
        assert planned["patches"] == done["patches"], kill_at
        assert interrupted.litter == [], kill_at
        assert interrupted.run(state)["changed"] is False, kill_at
    assert between, "no kill hit the moments that the journal is for"
    assert kill_at > 30


@pytest.mark.parametrize("wanted", ["applied", "reverted"])
def test_the_next_run_may_want_the_other_state(interrupted: Interrupted, wanted: str) -> None:
    killed = "reverted" if wanted == "applied" else "applied"
    for kill_at in interrupted.calls(killed, step=3):
        interrupted.run(wanted)
        assert interrupted.environment.files == GOALS[wanted], kill_at
        # Where nothing was begun and nothing is to be done, the record's folder may keep what waited to become the journal.
        assert [name for name in interrupted.litter if name.startswith("venv/") or name.endswith("journal.json")] == []


def cut_off_while_committing(interrupted: Interrupted) -> None:
    """Leave an environment with one file renamed and the others waiting."""
    for _kill_at in interrupted.calls("applied"):
        if interrupted.environment.files.get("pkg/bare.txt") == PATCHED["pkg/bare.txt"]:
            assert interrupted.environment.files["pkg/main.py"] == MAIN
            return
    raise AssertionError("never between two renames")


def test_a_restart_is_asked_for_by_the_run_that_completes(interrupted: Interrupted) -> None:
    cut_off_while_committing(interrupted)
    done = interrupted.run("applied")
    assert (done["changed"], done["restart_required"]) == (True, True)
    assert {one["path"] for one in done["files"]} == {file["path"] for file in MANY["files"]}
    assert ("PATCH_INTERRUPTED", "info") in [(one["id"], one["severity"]) for one in done["findings"]]


def test_it_is_undone_where_what_waited_is_gone(interrupted: Interrupted) -> None:
    cut_off_while_committing(interrupted)
    for waiting in interrupted.environment.site.rglob(".*.slipway"):
        waiting.unlink()
    done = interrupted.run("reverted")
    assert (interrupted.environment.files, interrupted.litter) == (FILES, [])
    assert "has been undone" in done["findings"][0]["detail"]


def test_a_file_that_somebody_changed_meanwhile_stops_it_and_restored_goes_on(interrupted: Interrupted) -> None:
    cut_off_while_committing(interrupted)
    interrupted.environment.write("pkg/bare.txt", b"mine")
    for state in ("applied", "reverted"):
        assert "pkg/bare.txt is neither what it was nor what it was to become" in interrupted.refusal(state)
    assert interrupted.environment.files["pkg/bare.txt"] == b"mine"
    interrupted.run("restored")
    assert (interrupted.environment.files, interrupted.litter) == (FILES, [])


@pytest.mark.parametrize(
    "torn", ["", '{"phase": "committing"', '{"phase": 1, "versions": [1], "steps": [], "folders": 1}']
)
def test_a_journal_that_is_torn_stops_it_and_restored_goes_on(interrupted: Interrupted, torn: str) -> None:
    cut_off_while_committing(interrupted)
    next((interrupted.folder / "records").rglob("journal.json")).write_text(torn)
    for state in ("applied", "reverted"):
        assert "patch_state=restored" in interrupted.refusal(state)
    interrupted.run("restored")
    assert (interrupted.environment.files, interrupted.litter) == (FILES, [])


def test_another_version_makes_it_void(interrupted: Interrupted) -> None:
    cut_off_while_committing(interrupted)
    newer = {**FILES, "pkg/main.py": b"newer\n", "pkg/bare.txt": b"newer"}
    interrupted.environment.install("2.0", newer)
    interrupted.run("reverted")
    assert (interrupted.environment.files, interrupted.litter) == (newer, [])


# --- No room ---


@pytest.fixture
def small_disk(tmp_path: Path) -> t.Iterator[Path]:
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a tmpfs here")
    yield disk
    subprocess.run(["umount", disk], check=True)


LONG = b"".join(b"LINE_%05d = 0\n" % number for number in range(6000))  # 90 KB


@pytest.mark.parametrize("full", ["environment", "record"])
def test_a_full_disk_changes_nothing(small_disk: Path, tmp_path: Path, run_module: Run, full: str) -> None:
    files = {**FILES, "pkg/long.py": LONG}
    environment = Environment((small_disk if full == "environment" else tmp_path) / "venv", files=files)
    records = (small_disk if full == "record" else tmp_path) / "records"
    long = patch("long", {"pkg/main.py": (MAIN, BETTER), "pkg/long.py": (LONG, LONG.replace(b"00 = 0", b"00 = 1"))})
    given = {"venv": str(environment.venv), "patches": [long], "record_directory": str(records)}
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (120 if full == "environment" else 200) * 1024)
    refused = run_module(site_patch, given)
    assert refused["rc"] == 1 and "No space left on device" in refused["msg"]
    assert (environment.files, list(environment.site.rglob("*.slipway"))) == (files, [])
    filler.unlink()
    assert run_module(site_patch, given)["rc"] == 0
    assert environment.read("pkg/main.py") == BETTER
    filler.write_bytes(b"x" * (140 if full == "environment" else 20) * 1024)
    assert run_module(site_patch, {**given, "state": "reverted"})["rc"] == (1 if full == "environment" else 0)
    filler.unlink()
    assert run_module(site_patch, {**given, "state": "reverted"})["rc"] == 0
    assert environment.files == files


def test_a_disk_that_fails_between_two_renames_is_undone_or_completed_at_once(
    interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted.fresh("applied")
    real, renamed = os.replace, []

    def failing(source: t.Any, target: t.Any) -> None:
        if str(target).endswith("main.py") and not renamed:
            renamed.append(target)
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", failing)
    assert "Input/output error" in interrupted.refusal("applied")
    assert (interrupted.environment.files, interrupted.litter) == (PATCHED, [])
