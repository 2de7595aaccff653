# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments for real, made by uv and by pip from tiny wheels; then broken by hand, and audited."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.modules import site_audit
from package_servers import make_wheel

Run = t.Callable[..., dict[str, t.Any]]
UV = Path(sys.executable).parent / "uv"
CODE = """\
LIMIT = 64


def save(x, path):
    import pickle

    with open(path, "wb") as file:
        pickle.dump(x, file)


def forward(x):
    return x + LIMIT
"""


class Environment:
    """An environment with two packages, the wheels that it came from, and the module with its arguments."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.lock = folder / "stack.lock"
        self.lock.write_text(
            make_wheel(self.wheels, "slip_one", "1.0", CODE) + make_wheel(self.wheels, "slip_two", "2.0", "")
        )
        self.venv = folder / "envs" / "first"
        self.run_module = run_module

    def make(self) -> None:
        self.uv("venv", "--no-project", "--python", sys.executable, str(self.venv))
        self.install("slip_one", "slip_two")

    def install(self, *arguments: str) -> None:
        python = str(self.venv / "bin/python")
        self.uv("pip", "install", "--link-mode", "copy", "--no-deps", "--python", python, *arguments)

    def uv(self, *arguments: str) -> None:
        subprocess.run([UV, "-q", *arguments], check=True)

    def __call__(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        return self.run_module(site_audit, {"venv": str(self.venv), **arguments}, check)

    def found(self, **arguments: t.Any) -> list[tuple[str, str]]:
        return [(one["id"], one["subject"]) for one in self(**arguments)["findings"]]

    @property
    def site(self) -> Path:
        return next(self.venv.glob("lib/python*/site-packages"))

    def edit(self, old: str, new: str) -> None:
        path = self.site / "slip_one.py"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))


@pytest.fixture
def environment(tmp_path: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch) -> Environment:
    for variable in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    made = Environment(tmp_path, run_module)
    made.make()
    return made


@pytest.mark.parametrize("depth", ["code", "all"])
@pytest.mark.parametrize("check", [False, True])
def test_an_untouched_environment_is_clean(environment: Environment, depth: str, check: bool) -> None:
    done = environment(check, depth=depth, lock=str(environment.lock))
    assert (done["rc"], done["changed"], done["findings"], done["files"], done["bytecode"]) == (0, False, [], [], [])
    assert [(one["name"], one["version"]) for one in done["packages"]] == [("slip-one", "1.0"), ("slip-two", "2.0")]
    assert {state: number for state, number in done["totals"].items() if state not in ("pristine", "unread")} == {
        "patched": 0,
        "modified": 0,
        "missing": 0,
        "extra": 0,
        "unhashed": 0,
    }
    assert done["totals"]["pristine"] >= 2


def test_it_stays_clean_when_it_has_been_used(environment: Environment) -> None:
    subprocess.run([environment.venv / "bin/python", "-m", "compileall", "-q", environment.site], check=True)
    assert list(environment.site.glob("__pycache__/*.pyc"))
    assert environment.found(depth="all") == []


def test_an_appended_dump_is_named_with_its_line(environment: Environment) -> None:
    environment.edit(
        "    return x + LIMIT\n", "    import torch\n    torch.save(x, '/tmp/x.pt')\n    return x + LIMIT\n"
    )
    done = environment()
    assert [(one["path"], one["package"], one["state"]) for one in done["files"]] == [
        ("slip_one.py", "slip-one", "modified")
    ]
    assert [(one["id"], one["subject"]) for one in done["findings"]] == [
        ("SITE_DEBUG_CODE", "slip_one.py:13"),
        ("SITE_FILE_MODIFIED", "slip_one.py"),
    ]
    debug = done["findings"][0]
    # The wheel's own pickle.dump is not blamed: uv's cache has the original.
    assert debug["detail"] == "tensor dump: torch.save(x, '/tmp/x.pt') writes data to disk, in /tmp/x.pt"
    assert "playbooks/patch.yml -e patch_state=restored" in debug["remedy"]
    assert done["debug_code"] == [
        {
            "path": "slip_one.py",
            "package": "slip-one",
            "line": 13,
            "kind": "tensor_dump",
            "what": "torch.save(x, '/tmp/x.pt') writes data to disk, in /tmp/x.pt",
            "compared": True,
        }
    ]


def test_without_the_wheel_lines_of_its_own_may_be_among_them(environment: Environment, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cache")
    environment.edit("LIMIT = 64", "LIMIT = 32")
    debug = environment()["findings"][0]
    assert (debug["id"], debug["subject"]) == ("SITE_DEBUG_CODE", "slip_one.py:8")
    assert "the wheel's own file is not at hand, so this line may be its own" in debug["detail"]
    assert environment.found(originals=[str(environment.wheels)]) == [("SITE_FILE_MODIFIED", "slip_one.py")]


def test_an_original_that_is_none_is_not_believed(environment: Environment, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cache")
    environment.edit("    return x + LIMIT\n", "    import pdb\n    return x + LIMIT\n")
    forged = tmp_path / "forged"
    forged.mkdir()
    shutil.copy(environment.site / "slip_one.py", forged)
    assert ("SITE_DEBUG_CODE", "slip_one.py:12") in environment.found(originals=[str(forged)])


def test_a_changed_constant_a_deleted_file_an_added_module(environment: Environment) -> None:
    environment.edit("LIMIT = 64", "LIMIT = 32")
    (environment.site / "slip_two.py").unlink()
    (environment.site / "slip_three.py").write_text("def f():\n    breakpoint()\n")
    done = environment()
    assert [(one["id"], one["subject"]) for one in done["findings"]] == [
        ("SITE_DEBUG_CODE", "slip_three.py:2"),
        ("SITE_FILE_MODIFIED", "slip_one.py"),
        ("SITE_FILE_MISSING", "slip_two.py"),
        ("SITE_FILE_EXTRA", "slip_three.py"),
    ]
    states = {
        (one["name"], state): one[state] for one in done["packages"] for state in ("modified", "missing", "extra")
    }
    assert {key for key, number in states.items() if number} == {
        ("slip-one", "modified"),
        ("slip-two", "missing"),
        ("", "extra"),
    }
    assert (done["totals"]["modified"], done["totals"]["missing"], done["totals"]["extra"]) == (1, 1, 1)
    assert {one["severity"] for one in done["findings"]} == {"fail"}


def test_only_what_was_asked_for(environment: Environment) -> None:
    environment.edit("LIMIT = 64", "LIMIT = 32")
    (environment.site / "slip_three.py").write_text("")
    assert environment.found(packages=["slip-two"]) == []
    assert environment.found(packages=["Slip.One"]) == [("SITE_FILE_MODIFIED", "slip_one.py")]
    failed = environment(packages=["slip-nine"])
    assert failed["rc"] == 1
    assert failed["msg"].startswith("Cannot audit package 'slip-nine' on ")


def test_data_is_hashed_at_depth_all(environment: Environment) -> None:
    path = next(environment.site.glob("slip_one-*.dist-info/METADATA"))
    path.write_text(path.read_text().replace("Version: 1.0", "Version: 1.1"))
    assert environment.found() == []
    assert environment.found(depth="all") == [("SITE_FILE_MODIFIED", "slip_one-1.0.dist-info/METADATA")]


def test_what_is_torn_shows_at_any_depth(environment: Environment) -> None:
    path = next(environment.site.glob("slip_one-*.dist-info/METADATA"))
    path.write_bytes(path.read_bytes()[:-1])
    assert environment.found() == [("SITE_FILE_MODIFIED", "slip_one-1.0.dist-info/METADATA")]


def test_stale_bytecode(environment: Environment) -> None:
    source = environment.site / "slip_one.py"
    cached = Path(py_compile.compile(str(source), doraise=True) or "")
    os.utime(source, (1, 1))
    done = environment()
    name = f"__pycache__/{cached.name}"
    assert [(one["id"], one["subject"], one["severity"]) for one in done["findings"]] == [
        ("SITE_BYTECODE_STALE", name, "fail")
    ]
    assert done["bytecode"][0]["fault"].endswith("and the source is of 1970-01-01 00:00:01 UTC")


def test_bytecode_whose_header_fits_and_whose_code_does_not(environment: Environment) -> None:
    source = environment.site / "slip_one.py"
    before, facts = source.read_text(), source.stat()
    environment.edit("LIMIT = 64", "LIMIT = 32")
    os.utime(source, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    cached = Path(py_compile.compile(str(source), doraise=True) or "")
    source.write_text(before)
    os.utime(source, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    run = [environment.venv / "bin/python", "-c", "import slip_one; print(slip_one.LIMIT)"]
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == "32\n", (
        "what the source does not say"
    )
    done = environment()
    assert [(one["id"], one["subject"]) for one in done["findings"]] == [
        ("SITE_BYTECODE_STALE", f"__pycache__/{cached.name}")
    ]
    assert "its header fits the source and its code does not" in done["findings"][0]["detail"]
    assert done["totals"]["modified"] == 0


def test_bytecode_by_hash(environment: Environment) -> None:
    source = environment.site / "slip_one.py"
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    cached = Path(py_compile.compile(str(source), doraise=True, invalidation_mode=unchecked) or "")
    assert environment.found() == []
    environment.edit("LIMIT = 64", "LIMIT = 32")
    done = environment()
    assert ("SITE_BYTECODE_STALE", f"__pycache__/{cached.name}") in [
        (one["id"], one["subject"]) for one in done["findings"]
    ]
    assert (
        done["bytecode"][0]["fault"] == "it was made from another source, and it says that Python should never compare"
    )


def test_bytecode_without_a_source(environment: Environment) -> None:
    gone = environment.site / "gone.py"
    gone.write_text("")
    cached = Path(py_compile.compile(str(gone), doraise=True) or "")
    gone.unlink()
    (environment.site / "alone.pyc").write_bytes(cached.read_bytes())
    found = [(one["id"], one["subject"], one["severity"]) for one in environment()["findings"]]
    # Python imports one that lies in the place of a source, and never one in __pycache__.
    assert found == [
        ("SITE_FILE_EXTRA", "alone.pyc", "fail"),
        ("SITE_BYTECODE_STALE", f"__pycache__/{cached.name}", "warn"),
    ]


def test_code_that_runs_at_each_start(environment: Environment) -> None:
    (environment.site / "zz.pth").write_text("import os; os.environ['X'] = '1'\n/opt/elsewhere\n")
    (environment.site / "sitecustomize.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    done = environment()
    assert [(one["id"], one["subject"]) for one in done["findings"]] == [
        ("SITE_STARTUP_CODE", "sitecustomize.py"),
        ("SITE_STARTUP_CODE", "zz.pth"),
        ("SITE_DEBUG_CODE", "sitecustomize.py:2"),
    ]
    assert done["findings"][1]["detail"] == (
        "runs import os; os.environ['X'] = '1' and adds /opt/elsewhere to where modules are looked for"
    )


def test_leftovers(environment: Environment) -> None:
    for name in ("slip_one.py.orig", "slip_one.py.rej", ".slip_one.py.swp", "slip_one.py~", "slip_one.py.bak"):
        (environment.site / name).write_text("")
    found = [(one["id"], one["subject"], one["severity"]) for one in environment()["findings"]]
    assert found == [
        ("SITE_LEFTOVER", ".slip_one.py.swp", "warn"),
        ("SITE_LEFTOVER", "slip_one.py.bak", "warn"),
        ("SITE_LEFTOVER", "slip_one.py.orig", "warn"),
        ("SITE_LEFTOVER", "slip_one.py.rej", "warn"),
        ("SITE_LEFTOVER", "slip_one.py~", "warn"),
    ]


def test_two_versions_of_one_package(environment: Environment) -> None:
    copy = environment.site / "slip_one-0.9.dist-info"
    shutil.copytree(environment.site / "slip_one-1.0.dist-info", copy)
    (copy / "RECORD").write_text("slip_one.py,,\n")
    assert environment.found() == [("SITE_TWO_VERSIONS", "slip-one")]


def test_a_file_with_two_owners_is_good_if_it_matches_any(environment: Environment) -> None:
    record = next(environment.site.glob("slip_two-*.dist-info/RECORD"))
    other = "slip_one.py,sha256=LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ,5\n"
    record.write_text(other + record.read_text())
    assert environment.found(depth="all") == []
    environment.edit("LIMIT = 64", "LIMIT = 32")
    assert environment.found() == [("SITE_FILE_MODIFIED", "slip_one.py")]


def test_an_editable_install(environment: Environment, tmp_path: Path) -> None:
    info = environment.site / "slip_four-1.0.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("slip_four.pth,sha256=LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ,5\n")
    (environment.site / "slip_four.pth").write_text("hello")
    (info / "direct_url.json").write_text('{"url": "file:///root/four", "dir_info": {"editable": true}}')
    (tmp_path / "checkout").mkdir()
    (environment.site / "slip_five").symlink_to(tmp_path / "checkout")
    assert environment.found() == [("SITE_EDITABLE", "slip-four"), ("SITE_EDITABLE", "slip_five")]


def test_a_package_that_says_not_what_is_its_own(environment: Environment) -> None:
    info = environment.site / "old_one-1.0-py3.11.egg-info"
    info.mkdir()
    (info / "top_level.txt").write_text("old_one\n")
    (environment.site / "old_one").mkdir()
    (environment.site / "old_one" / "a.py").write_text("")
    done = environment()
    assert [(one["id"], one["subject"], one["severity"]) for one in done["findings"]] == [
        ("SITE_UNRECORDED", "old-one", "unknown")
    ]
    assert done["totals"]["unhashed"] == 2, "its module and its metadata"


def test_against_the_lock(environment: Environment) -> None:
    make_wheel(environment.wheels, "slip_one", "1.1", "")
    make_wheel(environment.wheels, "slip_six", "6.0", "")
    environment.install("slip_one==1.1", "slip_six")
    environment.uv("pip", "uninstall", "--python", str(environment.venv / "bin/python"), "slip_two")
    assert environment.found() == []
    done = environment(lock=str(environment.lock))
    assert [(one["id"], one["subject"], one["detail"], one["severity"]) for one in done["findings"]] == [
        ("LOCK_DRIFT", "slip-two", "version 2.0 is not installed", "fail"),
        ("LOCK_DRIFT", "slip-one", "version 1.1 is installed, the lock has 1.0", "fail"),
        ("PACKAGE_EXTRA", "slip-six", "version 6.0", "warn"),
    ]
    (environment.venv / "slipway.lock").write_text(environment.lock.read_text())
    assert ("LOCK_DRIFT", "slip-one") in environment.found()


def test_the_right_version_from_another_place(environment: Environment, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make_wheel(other, "slip_one", "1.0", "LIMIT = 1\n")
    environment.install("--reinstall", str(other / "slip_one-1.0-py3-none-any.whl"))
    # RECORD is right: it came with it.
    assert environment.found(depth="all") == []
    assert environment.found(lock=str(environment.lock)) == [("LOCK_DRIFT", "slip-one")]
    info = next(environment.site.glob("slip_one-*.dist-info"))
    record, digest = info / "RECORD", environment.lock.read_text().split("sha256:")[1].split()[0]
    record.write_text("".join(line for line in record.read_text().splitlines(True) if "direct_url" not in line))
    for told, found in (
        (f'{{"hashes": {{"sha256": "{digest}"}}}}', []),
        (f'{{"hash": "sha256={digest}"}}', []),
        (f'{{"hash": "sha256={"0" * 64}"}}', ["fail"]),
        ("{}", ["unknown"]),
    ):
        (info / "direct_url.json").write_text(f'{{"url": "file:///x.whl", "archive_info": {told}}}')
        done = environment(lock_content=environment.lock.read_text())
        assert [one["severity"] for one in done["findings"]] == found, told
    (info / "direct_url.json").write_text('{"url": "https://me:geheim@x/y.git", "vcs_info": {"vcs": "git"}}')
    done = environment(lock_content=environment.lock.read_text())
    assert [one["detail"] for one in done["findings"]] == ["version 1.0 was installed from a repository"]


def test_what_the_process_is_started_with(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "slip_one.py").write_text("")
    variables = {"PYTHONPATH": f"{tmp_path}:/nonexistent", "CUDA_LAUNCH_BLOCKING": 1, "API_KEY": "geheim"}
    done = environment(environment=variables)
    assert [(one["id"], one["subject"], one["detail"], one["severity"]) for one in done["findings"]] == [
        ("SITE_PYTHONPATH", str(tmp_path), "it hides slip_one of the environment", "fail"),
        ("SITE_PYTHONPATH", "/nonexistent", "it hides nothing of the environment yet", "warn"),
        ("SITE_DEBUG_CODE", "CUDA_LAUNCH_BLOCKING", "forced synchronisation: it is set to 1", "fail"),
    ]


def test_an_environment_of_pips_own_making(tmp_path: Path, run_module: Run) -> None:
    environment = Environment(tmp_path, run_module)
    subprocess.run([sys.executable, "-m", "venv", environment.venv], check=True)
    wheels = [str(path) for path in environment.wheels.glob("*.whl")]
    command = [environment.venv / "bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-deps", *wheels]
    subprocess.run(
        command, check=True, env={**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    )
    assert environment.found(depth="all", lock=str(environment.lock)) == []
    environment.edit("LIMIT = 64", "LIMIT = 32")
    assert ("SITE_FILE_MODIFIED", "slip_one.py") in environment.found()
    shutil.rmtree(environment.venv / "bin")
    found = environment.found(lock=str(environment.lock))
    assert ("SITE_FILE_MODIFIED", "slip_one.py") in found, "its Python is gone, and it is audited all the same"


def test_site_packages_can_be_given_itself(environment: Environment) -> None:
    environment.edit("LIMIT = 64", "LIMIT = 32")
    assert environment.found(venv=str(environment.site)) == [("SITE_FILE_MODIFIED", "slip_one.py")]


def test_more_files_than_can_be_named_are_counted(environment: Environment) -> None:
    for number in range(25):
        (environment.site / f"slip_extra_{number:02}.py").write_text("")
    done = environment()
    assert len(done["files"]) == 25
    assert len(done["findings"]) == 21
    assert (done["findings"][-1]["subject"], done["findings"][-1]["detail"]) == (
        "others",
        "5 more; all are listed in files",
    )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"venv": "/nonexistent"}, "Cannot audit environment '/nonexistent' on "),
        ({"lock": "/nonexistent.lock"}, "Cannot read lock '/nonexistent.lock' on "),
        ({"lock_content": "slip_one\n"}, "does not pin one version with =="),
    ],
)
def test_says_what_is_wrong(environment: Environment, arguments: dict[str, t.Any], part: str) -> None:
    failed = environment(**arguments)
    assert failed["rc"] == 1
    assert part in failed["msg"]


def test_metadata_that_is_torn_or_odd_is_told_and_ends_nothing(environment: Environment) -> None:
    record = next(environment.site.glob("slip_one-*.dist-info/RECORD"))
    record.write_bytes(bytes(record.stat().st_size))
    odd = next(environment.site.glob("slip_two-*.dist-info")) / "direct_url.json"
    odd.write_text('{"dir_info": [], "archive_info": {"hashes": ["x"]}}')
    found = environment.found(lock=str(environment.lock))
    assert ("SITE_UNRECORDED", "slip-one") in found
    assert ("LOCK_DRIFT", "slip-two") in found


@pytest.mark.parametrize("start", ["\ufeff", "# -*- coding: latin-1 -*-\n"])
def test_however_a_file_begins_it_is_read(environment: Environment, start: str) -> None:
    (environment.site / "added.py").write_text(f"{start}breakpoint()\n")
    line = start.count("\n") + 1
    assert ("SITE_DEBUG_CODE", f"added.py:{line}") in environment.found()


def test_what_no_parser_takes_is_told(environment: Environment) -> None:
    (environment.site / "added.py").write_text("-" * 100_000 + "1\n")
    [told] = [one for one in environment()["findings"] if one["subject"] == "added.py"]
    assert "it was not looked into" in told["detail"]


def test_a_name_that_is_no_utf_8_is_written_out(environment: Environment) -> None:
    Path(os.fsdecode(os.fsencode(environment.site) + b"/caf\xe9.py")).write_text("breakpoint()\n")
    result = environment()
    json.dumps(result, ensure_ascii=False).encode()
    assert [one["path"] for one in result["files"]] == ["caf\\xe9.py"]
    assert ("SITE_DEBUG_CODE", "caf\\xe9.py:1") in environment.found()
