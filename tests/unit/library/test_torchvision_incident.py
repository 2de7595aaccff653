# SPDX-License-Identifier: GPL-3.0-or-later
"""``pip install torchvision`` once moved torch from 2.9.1 to 2.10.0 and broke the kernels that were compiled against it.

Replayed with uv, pip and tiny wheels that have the names, the versions and what the real ones require (read from the METADATA of the releases),
from an index on the loopback that has them all, as the index had them on the day.
"""

from __future__ import annotations

import os
import subprocess
import sys
import typing as t
from pathlib import Path

import package_servers
import pytest
from ansible.modules import lock_wheels_info, python_stack
from package_servers import make_wheel

UV = Path(sys.executable).parent / "uv"
RELEASES = {
    ("torch", "2.9.1"): ("numpy", "triton==3.5.1", "nvidia-nvshmem-cu12==3.3.20"),
    ("torch", "2.10.0"): ("numpy", "triton==3.6.0", "nvidia-nvshmem-cu12==3.4.5", "cuda-bindings==12.9.4"),
    ("torchvision", "0.24.1"): ("numpy", "torch==2.9.1", "pillow!=8.3.*,>=5.3.0"),
    ("torchvision", "0.25.0"): ("numpy", "torch==2.10.0", "pillow!=8.3.*,>=5.3.0"),
    ("sgl_kernel", "0.3.21"): (),
    ("triton", "3.5.1"): (),
    ("triton", "3.6.0"): (),
    ("nvidia_nvshmem_cu12", "3.3.20"): (),
    ("nvidia_nvshmem_cu12", "3.4.5"): (),
    ("cuda_bindings", "12.9.4"): (),
    ("numpy", "2.4.2"): (),
    ("pillow", "12.1.0"): (),
}
CODE = {
    "torch": "__version__ = '{version}'\n",
    # The kernels refer to symbols of the torch that they were compiled against.
    "sgl_kernel": "import torch\nif torch.__version__ != '2.9.1':\n    raise ImportError('undefined symbol: _ZN3c104cuda29c10_cuda')\n",
}
LOCKED = [
    ("torch", "2.9.1"),
    ("sgl_kernel", "0.3.21"),
    ("triton", "3.5.1"),
    ("nvidia_nvshmem_cu12", "3.3.20"),
    ("numpy", "2.4.2"),
]
WITH_TORCHVISION = [*LOCKED, ("torchvision", "0.24.1"), ("pillow", "12.1.0")]


class Guest:
    """An environment from the lock, an index that has more, and a person at the shell."""

    def __init__(self, folder: Path, index: str, lines: dict[tuple[str, str], str], run_module: t.Any) -> None:
        self.venv, self.index, self.lines, self.run_module = folder / "env", index, lines, run_module
        self.uv_config = folder / "etc/uv/uv.toml"
        self.locked = WITH_TORCHVISION

    def run_role(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        lock = "".join(self.lines[one] for one in self.locked)
        given = {"venv": str(self.venv), "lock_content": lock, "uv": str(UV), "python": [sys.executable]}
        given |= {"uv_config": str(self.uv_config), "index": self.index, "imports": ["sgl_kernel"], "complaints": []}
        return self.run_module(python_stack, {**given, **arguments}, check)

    def shell(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")

    def uv(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.shell(
            str(UV), "pip", "install", "--python", str(self.venv), "--default-index", self.index, *arguments
        )

    def pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        python = str(self.venv / "bin/python")
        if not self.versions("pip"):
            self.shell(python, "-m", "ensurepip")
        return self.shell(python, "-m", "pip", "install", "--index-url", self.index, *arguments)

    def versions(self, *names: str) -> list[str]:
        found = self.venv.glob("lib/python*/site-packages/*.dist-info")
        return sorted(path.name.removesuffix(".dist-info") for path in found if path.name.split("-")[0] in names)


@pytest.fixture
def guest(tmp_path: Path, run_module: t.Any, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Guest]:
    for variable in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(variable)
    # Stands for the machine's /etc, and for a home without settings of its own; whatever else pip finds is overruled.
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    lines, pages = {}, {}
    for (name, version), requires in RELEASES.items():
        code = CODE.get(name, "").format(version=version)
        lines[name, version] = make_wheel(tmp_path, name, version, code, requires)
        file = f"{name}-{version}-py3-none-any.whl"
        page = f"/simple/{name.replace('_', '-')}/"
        pages[f"/files/{file}"] = (tmp_path / file).read_bytes()
        pages[page] = pages.get(page, "") + f'<a href="/files/{file}">{file}</a>'
    index = package_servers.index(pages)
    yield Guest(tmp_path, f"{index.address}/simple", lines, run_module)
    index.close()


PAIR = ["torch-2.9.1", "torchvision-0.24.1"]


def test_without_slipway_it_happens(guest: Guest) -> None:
    guest.locked = LOCKED
    guest.shell(str(UV), "venv", "--python", sys.executable, str(guest.venv))
    assert guest.uv("torch==2.9.1", "sgl_kernel").returncode == 0
    assert guest.uv("torchvision").returncode == 0
    assert guest.versions("torch", "torchvision") == ["torch-2.10.0", "torchvision-0.25.0"]
    broken = guest.shell(str(guest.venv / "bin/python"), "-c", "import sgl_kernel")
    assert "undefined symbol" in broken.stderr


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_person_at_the_shell_cannot_move_torch(guest: Guest, tool: str) -> None:
    assert guest.run_role()["rc"] == 0
    install: t.Callable[..., subprocess.CompletedProcess[str]] = getattr(guest, tool)
    for arguments in (["torchvision"], ["-U", "torchvision"], ["-U", "torch"], ["--no-deps", "-U", "torchvision"]):
        assert install(*arguments).returncode == 0, arguments
        assert guest.versions("torch", "torchvision") == PAIR, arguments
    for arguments in (["torchvision==0.25.0"], ["torch==2.10.0"], ["--no-deps", "torch>2.9.1"]):
        refused = install(*arguments)
        assert refused.returncode != 0, arguments
        assert "2.9.1" in refused.stdout + refused.stderr or "0.24.1" in refused.stdout + refused.stderr
        assert guest.versions("torch", "torchvision") == PAIR, arguments
    assert guest.run_role()["changed"] is False


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_stack_without_torchvision_gets_one_only_if_it_fits(guest: Guest, tool: str) -> None:
    guest.locked = LOCKED
    assert guest.run_role()["rc"] == 0
    assert getattr(guest, tool)("torchvision").returncode == 0
    assert guest.versions("torch", "torchvision", "triton") == [*PAIR, "triton-3.5.1"]
    told = guest.run_role()
    assert (told["rc"], told["changed"]) == (0, False)
    extra = {one["subject"] for one in told["findings"] if one["id"] == "PACKAGE_EXTRA"}
    assert extra - {"pip"} == {"torchvision", "pillow"}


@pytest.mark.parametrize(
    ("tool", "force"), [("uv", ["--no-config", "-U", "torchvision"]), ("pip", ["-U", "torchvision"])]
)
def test_what_was_forced_is_found_and_put_right(guest: Guest, tool: str, force: list[str]) -> None:
    guest.run_role()
    install = getattr(guest, tool)
    if tool == "pip":
        # The only way past it: --isolated leaves out the user's settings, and not the environment's.
        (guest.venv / "pip.conf").unlink()
    assert install(*force).returncode == 0
    assert guest.versions("torch", "torchvision") == ["torch-2.10.0", "torchvision-0.25.0"]

    found = guest.run_role(check=True)
    [drift] = [one for one in found["findings"] if one["id"] == "STACK_DRIFT"]
    assert (drift["severity"], drift["subject"]) == ("fail", str(guest.venv))
    assert "torch is 2.10.0 in the place of 2.9.1" in drift["detail"]
    assert "torchvision is 0.25.0 in the place of 0.24.1" in drift["detail"]
    assert guest.versions("torch") == ["torch-2.10.0"]

    repaired = guest.run_role()
    assert (repaired["rc"], repaired["changed"]) == (0, True)
    assert [one["severity"] for one in repaired["findings"] if one["id"] == "STACK_DRIFT"] == ["warn"]
    assert guest.versions("torch", "torchvision", "triton") == [*PAIR, "triton-3.5.1"]
    again = guest.run_role()
    assert (again["rc"], again["changed"], again["findings"]) == (0, False, [])


def test_an_environment_of_somebody_elses_making_is_kept_as_well(guest: Guest) -> None:
    guest.shell(str(UV), "venv", "--python", sys.executable, str(guest.venv))
    assert guest.uv("torch==2.9.1", "torchvision==0.24.1", "sgl_kernel", "numpy==2.4.2").returncode == 0
    assert guest.run_role()["actions"] == ["constrain"]
    assert guest.uv("--no-config", "-U", "torchvision").returncode == 0
    assert [one["id"] for one in guest.run_role(check=True)["findings"]] == ["STACK_DRIFT"]
    assert guest.run_role()["rc"] == 0
    assert guest.versions("torch", "torchvision") == PAIR


def test_a_package_that_was_taken_away_is_drift_as_well(guest: Guest) -> None:
    guest.run_role()
    guest.shell(str(UV), "pip", "uninstall", "--python", str(guest.venv), "triton")
    [drift] = guest.run_role(check=True)["findings"]
    assert (drift["id"], drift["detail"]) == ("STACK_DRIFT", "triton 3.5.1 is gone")


def test_another_lock_is_no_drift_and_the_constraints_follow_it(guest: Guest) -> None:
    guest.run_role()
    guest.locked = NEWER
    changed = guest.run_role(imports=["torch"])
    assert (changed["rc"], changed["findings"]) == (0, [])
    assert '"torch==2.10.0"' in guest.uv_config.read_text()
    assert "2.9.1" not in guest.uv_config.read_text()
    assert guest.uv("torchvision").returncode == 0
    assert guest.versions("torchvision") == ["torchvision-0.25.0"]


NEWER = [
    ("torch", "2.10.0"),
    ("triton", "3.6.0"),
    ("numpy", "2.4.2"),
    ("nvidia_nvshmem_cu12", "3.4.5"),
    ("cuda_bindings", "12.9.4"),
]


def test_the_constraints_of_the_environment_in_use_do_not_hold_for_the_next_one(guest: Guest) -> None:
    guest.run_role()
    guest.locked, guest.venv = NEWER, guest.venv.with_name("next")
    lock = "".join(guest.lines[one] for one in NEWER)
    options = {"lock_content": lock, "python": [sys.executable], "uv": str(UV), "index": guest.index}
    chosen = guest.run_module(lock_wheels_info, options)
    assert "torch-2.10.0-py3-none-any.whl" in [one["file"] for one in chosen.get("wheels", [])], chosen
    assert guest.run_role(imports=["torch"], uv_config=None)["rc"] == 0
    next(guest.venv.glob("lib/python*/site-packages/torch.py")).unlink()
    mended = guest.run_role(imports=["torch"], uv_config=None)
    assert (mended["rc"], mended["actions"]) == (0, ["mend"])
    assert '"torch==2.9.1"' in guest.uv_config.read_text()


def test_a_stack_that_contradicts_itself_is_refused(guest: Guest) -> None:
    guest.locked = [("torch", "2.10.0") if name == "torch" else (name, version) for name, version in WITH_TORCHVISION]
    refused = guest.run_role(imports=[])
    assert refused["rc"] == 1
    assert {one["id"] for one in refused["findings"]} == {"DEPENDENCY_BROKEN"}
    assert "torchvision requires torch==2.9.1, but 2.10.0 is installed" in refused["msg"]
    expected = [
        "# Meant.",
        "torchvision requires torch==2.9.1, but 2.10.0 is installed",
        "torch requires triton==3.6.0, but 3.5.1 is installed",
        "torch requires nvidia-nvshmem-cu12==3.4.5, but 3.3.20 is installed",
        "torch requires cuda-bindings==12.9.4, but it's not installed",
    ]
    assert guest.run_role(imports=[], complaints=expected)["rc"] == 0


def test_what_somebody_wrote_themselves_stays(guest: Guest) -> None:
    guest.uv_config.parent.mkdir(parents=True)
    guest.uv_config.write_text('index-strategy = "first-index"\n\n[pip]\nno-build = true\n')
    guest.run_role()
    text = guest.uv_config.read_text()
    assert text.endswith('# End of what Slipway wrote.\nindex-strategy = "first-index"\n\n[pip]\nno-build = true\n')
    assert guest.uv("torch==2.10.0").returncode != 0
    assert guest.run_role()["changed"] is False

    theirs = 'constraint-dependencies = ["numpy<3"]\n'
    guest.uv_config.write_text(theirs)
    (guest.venv / "pip.conf").write_text("[install]\nuser = false\n")
    told = guest.run_role()
    assert told["changed"] is False
    assert [(one["id"], one["subject"]) for one in told["findings"]] == [
        ("CONSTRAINTS_FOREIGN", str(guest.venv / "pip.conf")),
        ("CONSTRAINTS_FOREIGN", str(guest.uv_config)),
    ]
    assert guest.uv_config.read_text() == theirs


def test_check_mode_says_what_it_would_write(guest: Guest) -> None:
    guest.run_role()
    guest.uv_config.unlink()
    planned = guest.run_role(check=True)
    assert (planned["changed"], planned["actions"]) == (True, ["constrain"])
    assert planned["diff"][-1]["before_header"] == str(guest.uv_config)
    assert not guest.uv_config.exists()
    assert guest.run_role(uv="/nonexistent/uv")["actions"] == ["constrain"]
    assert guest.uv_config.exists()
