# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments for real: uv, tiny wheels made here, and a folder in place of an index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

import package_servers
import pytest
from ansible.module_utils.slipway.python import build, constraints, source
from ansible.modules import python_stack
from package_servers import make_wheel

Run = t.Callable[..., dict[str, t.Any]]
UV = Path(sys.executable).parent / "uv"


class Stack:
    """The module with its arguments, a folder of wheels and locks."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        wheels = folder / "wheels"
        wheels.mkdir()
        self.one = make_wheel(wheels, "slip_one", "1.0", "import os\n")
        self.one_newer = make_wheel(wheels, "slip_one", "1.1", "import os\n")
        self.two = make_wheel(wheels, "slip_two", "2.0", "import os\n")
        self.broken = make_wheel(wheels, "slip_broken", "1.0", "import slip_absent\n")
        self.venv = folder / "envs" / "first"
        self.lock = folder / "stack.lock"
        self.link = folder / "envs" / "current"
        self.lock.write_text(self.one + self.two)
        self.run_module = run_module

    def __call__(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        given = {"venv": str(self.venv), "lock": str(self.lock), "uv": str(UV), "python": [sys.executable], **arguments}
        return self.run_module(python_stack, {key: value for key, value in given.items() if value is not None}, check)

    @property
    def packages(self) -> set[str]:
        return {path.name for path in self.venv.glob("lib/python*/site-packages/*.dist-info")}


@pytest.fixture
def stack(tmp_path: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch) -> Stack:
    for variable in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))  # uv keeps a lock for credentials there
    return Stack(tmp_path, run_module)


ADDED = [{"name": "slip-one", "version": "1.0"}, {"name": "slip-two", "version": "2.0"}]
BOTH = "slip-one==1.0\nslip-two==2.0\n"


def test_creates_then_repeats_without_uv(stack: Stack) -> None:
    first = stack(imports=["slip_one"], link=str(stack.link))
    assert (first["rc"], first["changed"], first["added"], first["removed"]) == (0, True, ADDED, [])
    assert first["packages"] == {"slip-one": "1.0", "slip-two": "2.0"}
    assert (first["diff"][0]["before"], first["diff"][0]["after"]) == ("", BOTH)
    assert stack.packages == {"slip_one-1.0.dist-info", "slip_two-2.0.dist-info"}
    assert os.readlink(stack.link) == str(stack.venv)
    module = next(stack.venv.glob("lib/python*/site-packages/slip_one.py"))
    assert module.stat().st_nlink == 1, "a hard link into the cache would let an edit reach other environments"

    again = stack(imports=["slip_one"], link=str(stack.link), uv="/nonexistent/uv")
    assert (again["rc"], again["changed"], again["added"], again["findings"]) == (0, False, [], [])
    assert again["diff"][0]["before"] == again["diff"][0]["after"] == BOTH


def test_check_mode_says_the_plan_without_uv_and_writes_nothing(stack: Stack, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    planned = stack(check=True, uv="/nonexistent/uv", imports=["slip_one"], link=str(stack.link))
    assert (planned["rc"], planned["changed"], planned["added"]) == (0, True, ADDED)
    assert planned["diff"][1]["after"] == f"{stack.venv}\n"
    assert sorted(tmp_path.rglob("*")) == before
    given = stack(check=True, lock=None, lock_content=stack.one)
    assert given["added"] == ADDED[:1]


def test_a_new_lock_changes_and_removes(stack: Stack) -> None:
    stack()
    stack.lock.write_text(stack.one_newer)
    expected = [{"name": "slip-one", "before": "1.0", "after": "1.1"}]
    planned = stack(check=True)
    done = stack()
    for result in (planned, done):
        assert (result["changed"], result["changed_packages"], result["removed"]) == (True, expected, ADDED[1:])
        assert result["diff"][0]["after"] == "slip-one==1.1\n"
    assert stack.packages == {"slip_one-1.1.dist-info"}
    assert stack()["changed"] is False


def test_a_lock_that_only_drops_a_package_removes_it(stack: Stack) -> None:
    stack()
    stack.lock.write_text(stack.one)
    assert stack()["removed"] == ADDED[1:]
    assert stack.packages == {"slip_one-1.0.dist-info"}


def test_a_package_that_a_person_added_is_told_and_kept(stack: Stack) -> None:
    stack.lock.write_text(stack.one)
    stack()
    subprocess.run([UV, "-q", "pip", "install", "--python", stack.venv / "bin/python", "slip_two"], check=True)
    found = stack()
    assert (found["rc"], found["changed"], found["removed"]) == (0, False, [])
    assert [(one["id"], one["subject"]) for one in found["findings"]] == [("PACKAGE_EXTRA", "slip-two")]
    assert "slip_two-2.0.dist-info" in stack.packages


def test_what_a_person_forced_is_put_right(stack: Stack) -> None:
    stack()
    subprocess.run([UV, "-q", "pip", "install", "--python", stack.venv / "bin/python", "slip_one==1.1"], check=True)
    assert stack()["changed_packages"] == [{"name": "slip-one", "before": "1.1", "after": "1.0"}]
    assert "slip_one-1.0.dist-info" in stack.packages


@pytest.mark.parametrize("killed_at", ["venv", "sync", "finish"])
def test_a_killed_run_is_completed_by_the_next(stack: Stack, monkeypatch: pytest.MonkeyPatch, killed_at: str) -> None:
    real = build.run_uv

    def killed(uv: str, arguments: list[str], *rest: t.Any) -> None:
        if killed_at == arguments[0] == "venv":
            (stack.venv / "bin").mkdir(parents=True)  # half a folder, and not yet an environment
            raise KeyboardInterrupt
        real(uv, arguments, *rest)
        if killed_at == "sync" and arguments[0] == "pip":
            next(stack.venv.glob("lib/python*/site-packages/slip_one.py")).unlink()
            raise KeyboardInterrupt

    def killed_before_the_end(venv: Path, text: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(build, "run_uv", killed)
        if killed_at == "finish":
            patched.setattr(build, "finish", killed_before_the_end)
        with pytest.raises(KeyboardInterrupt):
            python_stack.run({**defaults(stack), "uv": str(UV)}, check_mode=False)
    resumed = stack(imports=["slip_one", "slip_two"])
    assert (resumed["rc"], resumed["changed"]) == (0, True)
    assert list(stack.venv.parent.iterdir()) == [stack.venv], "no note and no temporary file is left"
    assert stack()["changed"] is False


def test_a_killed_repair_is_completed_by_the_next(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack()
    stack.lock.write_text(stack.one_newer + stack.two)
    real = build.run_uv

    def killed(uv: str, arguments: list[str], *rest: t.Any) -> None:
        real(uv, arguments, *rest)
        # Metadata is there, the code is not: to any later look the package seems installed.
        next(stack.venv.glob("lib/python*/site-packages/slip_one.py")).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(build, "run_uv", killed)
        with pytest.raises(KeyboardInterrupt):
            python_stack.run({**defaults(stack), "uv": str(UV)}, check_mode=False)
    resumed = stack(imports=["slip_one"])
    assert (resumed["rc"], resumed["changed"]) == (0, True)


def defaults(stack: Stack) -> dict[str, t.Any]:
    params = {name: option.get("default") for name, option in python_stack.ARGUMENT_SPEC.items()}
    return {**params, "venv": str(stack.venv), "lock": str(stack.lock), "python": [sys.executable]}


def test_a_file_that_a_person_deleted_comes_back_and_their_package_stays(stack: Stack) -> None:
    stack.lock.write_text(stack.one)
    stack()
    subprocess.run([UV, "-q", "pip", "install", "--python", stack.venv / "bin/python", "slip_two"], check=True)
    module = next(stack.venv.glob("lib/python*/site-packages/slip_one.py"))
    module.unlink()
    planned = stack(check=True, imports=["slip_one"])
    assert (planned["changed"], [one["id"] for one in planned["findings"]]) == (
        True,
        ["PACKAGE_EXTRA", "IMPORT_FAILED"],
    )
    assert not module.exists()
    done = stack(imports=["slip_one"])
    assert (done["rc"], done["changed"], [one["id"] for one in done["findings"]]) == (0, True, ["PACKAGE_EXTRA"])
    assert module.exists()
    assert stack.packages == {"slip_one-1.0.dist-info", "slip_two-2.0.dist-info"}
    assert stack(imports=["slip_one"])["changed"] is False


def test_what_does_not_import_for_another_reason_is_told_after_one_try(stack: Stack) -> None:
    stack.lock.write_text(stack.broken)
    stack()
    failed = stack(imports=["slip_broken"])
    assert (failed["rc"], [one["id"] for one in failed["findings"]]) == (1, ["IMPORT_FAILED"])
    unreachable = stack(imports=["slip_broken"], uv="/nonexistent/uv")
    assert (unreachable["rc"], [one["id"] for one in unreachable["findings"]]) == (1, ["UV_MISSING", "IMPORT_FAILED"])
    assert "slip_broken does not import, and what the lock names could not be put there again: uv" in unreachable["msg"]


def test_a_failed_import_leaves_the_link_where_it_is(stack: Stack) -> None:
    stack(link=str(stack.link))
    old, stack.venv = stack.venv, stack.venv.with_name("second")
    stack.lock.write_text(stack.broken)
    failed = stack(imports=["slip_broken"], link=str(stack.link))
    assert failed["rc"] == 1
    assert "slip_broken does not import: ModuleNotFoundError: No module named 'slip_absent'" in failed["msg"]
    assert [(one["id"], one["subject"]) for one in failed["findings"]] == [("IMPORT_FAILED", "slip_broken")]
    assert os.readlink(stack.link) == str(old)
    # In check mode the same is told as a finding, since a check is there to tell.
    told = stack(check=True, imports=["slip_broken"])
    assert (told["rc"], [one["id"] for one in told["findings"]]) == (0, ["IMPORT_FAILED"])


@pytest.mark.parametrize(
    ("lock", "arguments", "finding_id", "part"),
    [
        ("slip_one==1.0\n", {}, "LOCK_UNHASHED", "have no hash: slip-one"),
        (None, {}, "LOCK_INVALID", "the lock cannot be read"),
        (f"slip_one==1.0 --hash=sha256:{'0' * 64}", {}, "HASH_MISMATCH", "the lock says 0000"),
        (f"slip_gone==1.0 --hash=sha256:{'0' * 64}", {}, "PACKAGE_UNAVAILABLE", "slip-gone"),
        ("", {"python": ["python9.9", "/bin/false"]}, "PYTHON_MISSING", "none of python9.9, /bin/false runs"),
        ("", {"uv": "/nonexistent/uv"}, "UV_MISSING", "uv does not run"),
    ],
)
def test_says_what_is_wrong(
    stack: Stack, lock: str | None, arguments: dict[str, t.Any], finding_id: str, part: str
) -> None:
    if lock is None:
        stack.lock.unlink()
    elif lock:
        stack.lock.write_text(lock)
    failed = stack(**arguments)
    assert failed["rc"] == 1
    assert failed["msg"].startswith("Cannot ")
    assert part in failed["msg"]
    assert [one["id"] for one in failed["findings"]] == [finding_id]


def test_what_slipway_did_not_make_is_not_removed(stack: Stack) -> None:
    stack.venv.mkdir(parents=True)
    (stack.venv / "notes.txt").write_text("mine")
    failed = stack()
    assert (failed["rc"], failed["findings"][0]["id"]) == (1, "VENV_FOREIGN")
    assert (stack.venv / "notes.txt").read_text() == "mine"

    shutil.rmtree(stack.venv)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", stack.venv], check=True)
    (stack.venv / "bin/python").unlink()
    (stack.venv / "bin/python").symlink_to("/nonexistent/python")
    failed = stack()
    assert (failed["rc"], failed["findings"][0]["id"]) == (1, "VENV_FOREIGN")
    assert (stack.venv / "pyvenv.cfg").exists()


def test_an_environment_of_pythons_own_making_is_brought_to_the_lock(stack: Stack) -> None:
    subprocess.run([sys.executable, "-m", "venv", stack.venv], check=True)
    assert stack()["added"] == ADDED
    assert stack()["changed"] is False


def test_an_environment_without_its_python_is_made_anew(stack: Stack) -> None:
    stack()
    (stack.venv / "bin/python").unlink()
    assert stack()["added"] == ADDED
    assert stack()["changed"] is False


def test_going_back_is_a_switch(stack: Stack) -> None:
    first, second = stack.venv, stack.venv.with_name("second")
    stack(link=str(stack.link))
    stack.venv = second
    stack.lock.write_text(stack.one_newer)
    assert stack(link=str(stack.link))["actions"] == ["build", "switch", "constrain"]
    assert os.readlink(stack.link) == str(second)
    stack.venv = first
    stack.lock.write_text(stack.one + stack.two)
    back = stack(link=str(stack.link), uv="/nonexistent/uv")
    assert (back["rc"], back["actions"], os.readlink(stack.link)) == (0, ["switch"], str(first))


def test_a_run_that_was_killed_after_the_switch_is_completed(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(wanted: t.Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(constraints, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            python_stack.run({**defaults(stack), "uv": str(UV), "link": str(stack.link)}, check_mode=False)
    assert stack(link=str(stack.link))["actions"] == ["constrain"]
    assert (stack.venv / "pip.conf").exists()
    assert stack(link=str(stack.link))["changed"] is False


def test_an_environment_from_before_gets_its_constraints(stack: Stack) -> None:
    stack()
    for name in ("pip.conf", "constraints.txt"):
        (stack.venv / name).unlink()
    assert stack(check=True)["actions"] == ["constrain"]
    assert not (stack.venv / "pip.conf").exists()
    assert (stack()["actions"], stack()["actions"]) == (["constrain"], [])


def test_a_folder_in_place_of_the_link_is_refused_before_anything_is_done(stack: Stack) -> None:
    stack.link.mkdir(parents=True)
    failed = stack(link=str(stack.link))
    assert failed["rc"] == 1
    assert "is not a symbolic link" in failed["msg"]
    assert not stack.venv.exists()


@pytest.mark.parametrize(
    ("page", "wheel", "guarded", "finding_id", "part"),
    [
        (502, b"", None, "INDEX_UNREACHABLE", "the package index answers 502 Bad Gateway"),
        (403, b"", None, "INDEX_UNREACHABLE", "the package index answers 403 Forbidden"),
        ("", b"", None, "PACKAGE_UNAVAILABLE", "slip-one==1.0"),
        ("whole", b"PK torn", None, "HASH_MISMATCH", "the file slip_one-1.0-py3-none-any.whl is torn"),
        ("", b"", 407, "PROXY_REFUSED", "the proxy asks for a login"),
        ("", b"", 502, "INDEX_UNREACHABLE", "the package index answers 502 Bad Gateway"),
    ],
)
def test_an_index_that_fails_is_told_by_its_cause(
    stack: Stack,
    monkeypatch: pytest.MonkeyPatch,
    page: str | int,
    wheel: bytes,
    guarded: int | None,
    finding_id: str,
    part: str,
) -> None:
    for variable in ("UV_OFFLINE", "UV_FIND_LINKS"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    name = "slip_one-1.0-py3-none-any.whl"
    listing = f'<a href="/files/{name}">{name}</a>' if page == "whole" else page
    mirror = package_servers.index({"/simple/slip-one/": listing, f"/files/{name}": wheel})
    guard = package_servers.proxy(status=guarded or 0)
    stack.lock.write_text(stack.one)
    try:
        way = {"proxy": guard.address, "proxy_login": "me:geheim"} if guarded else {}
        failed = stack(index=f"{mirror.address}/simple", **way)
    finally:
        mirror.close()
        guard.close()
    assert failed["rc"] == 1
    assert part in failed["msg"]
    assert "geheim" not in str(failed)
    assert [one["id"] for one in failed["findings"]] == [finding_id]


@pytest.mark.parametrize(
    ("causes", "finding_id", "part"),
    [
        (["client error (Connect)", "tunnel error: proxy authorization required"], "PROXY_REFUSED", "asks for a login"),
        (["client error (Connect)", "tunnel error: unsuccessful"], "PROXY_REFUSED", "does not let the connection"),
        (
            ["tunnel error: failed to create underlying connection", "tcp connect error", "Connection refused"],
            "PROXY_REFUSED",
            "the proxy does not answer (cause: tcp connect error / cause: Connection refused)",
        ),
        (["invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))"], "CA_UNTRUSTED", "let that CA sign one"),
        (["invalid peer certificate: UnknownIssuer"], "CA_UNTRUSTED", "is not trusted (UnknownIssuer)"),
        (
            ["dns error", "failed to lookup address information: Name or service not known"],
            "INDEX_UNREACHABLE",
            "nobody",
        ),
        (["dns error", "failed: Temporary failure in name resolution"], "NETWORK_UNREACHABLE", "no name server"),
        (["tcp connect error", "Network is unreachable (os error 101)"], "NETWORK_UNREACHABLE", "no route"),
        (["tcp connect error", "Connection refused (os error 111)"], "INDEX_UNREACHABLE", "does not answer"),
    ],
)
def test_what_uv_says_of_a_connection(causes: list[str], finding_id: str, part: str) -> None:
    lines = ["error: Failed to fetch: https://mirror.example/simple/x/", *(f"  cause: {cause}" for cause in causes)]
    error = build.explain_uv(2, "\n".join(lines))
    assert [one.id for one in error.findings] == [finding_id]
    assert part in str(error)
    assert str(error).endswith(", at https://mirror.example/simple/x/")


def test_how_uv_is_told(tmp_path: Path) -> None:
    told = source.Source(
        index="https://mirror.example/simple",
        index_login="me:p%40ss",
        proxy="http://proxy.example:3128",
        proxy_login="you:word",
        no_proxy=("a.example", "b.example"),
        ca_bundle="/etc/slipway/ca-bundle.crt",
        wheels="/var/cache/wheels",
    ).uv_environment()
    assert told == {
        "UV_DEFAULT_INDEX": "https://me:p%40ss@mirror.example/simple",
        "HTTP_PROXY": "http://you:word@proxy.example:3128",
        "http_proxy": "http://you:word@proxy.example:3128",
        "HTTPS_PROXY": "http://you:word@proxy.example:3128",
        "https_proxy": "http://you:word@proxy.example:3128",
        "NO_PROXY": "a.example,b.example",
        "no_proxy": "a.example,b.example",
        "SSL_CERT_FILE": "/etc/slipway/ca-bundle.crt",
        "UV_OFFLINE": "true",
        "UV_FIND_LINKS": "/var/cache/wheels",
    }
    assert "HTTP_PROXY" not in source.Source().uv_environment()


def test_a_password_in_an_address_is_not_shown() -> None:
    error = build.explain_uv(
        2, "error: Failed to fetch: `http://user:geheim@mirror.example/simple/x/`\n  cause: refused"
    )
    assert "geheim" not in str(error)
    assert "mirror.example" in str(error)


def test_an_import_that_dies_or_hangs_is_named(stack: Stack) -> None:
    wheels = stack.lock.parent / "wheels"
    stack.lock.write_text(
        make_wheel(wheels, "slip_dies", "1.0", "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n")
        + make_wheel(wheels, "slip_hangs", "1.0", "import time\ntime.sleep(600)\n")
    )
    details = [
        one["detail"]
        for given in ({"imports": ["slip_dies"]}, {"imports": ["slip_hangs"], "import_timeout_seconds": 1})
        for one in stack(**given)["findings"]
    ]
    assert details == ["killed by SIGILL", "it did not end within 1 seconds"]
