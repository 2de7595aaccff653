# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles of the stack, run by Ansible on this machine: where nothing is there yet, and where uv brought the interpreter."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import typing as t
import zipfile
from pathlib import Path

import pytest
import yaml
from package_servers import make_wheel

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


class Play:
    """A play of roles with a profile of its own, whose interpreter is nowhere but in Slipway's folder."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root
        self.lock = folder / "catalog/tiny/stack/requirements.lock"
        self.lock.parent.mkdir(parents=True)
        self.lock.write_text(make_wheel(folder, "slip_one", "1.0", ""))
        self.venv = folder / f"envs/tiny-{hashlib.sha256(self.lock.read_bytes()).hexdigest()[:12]}"
        self.profile(engine="llamacpp", cudnn_minimum="9.15")  # which asks nothing of it

    def profile(self, engine: str, **stack: t.Any) -> None:
        profile = {
            "engine": engine,
            "python": [f"/nonexistent/python{VERSION}"],
            "packages": None,
            "build_tools": None,
            "stack": {"lock": "stack/requirements.lock", "imports": [], **stack},
            "patches": None,
        }
        (self.folder / "catalog/tiny/profile.yml").write_text(yaml.safe_dump(profile))

    def __call__(
        self, *tasks: dict[str, t.Any], check: bool = False, **more: t.Any
    ) -> subprocess.CompletedProcess[str]:
        play = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "module_defaults": {"python_interpreter": {"directory": str(self.folder / "python")}},
            "vars": {
                "ansible_python_interpreter": sys.executable,
                "profile": "tiny",
                "slipway_catalog": [str(self.folder / "catalog")],
                "inference_stack_directory": str(self.folder / "envs"),
                "inference_stack_uv_config": "",
                **more,
            },
            "tasks": list(tasks),
        }
        path = self.folder / "play.yml"
        path.write_text(json.dumps([play]))
        command = [
            Path(sys.executable).parent / "ansible-playbook",
            "-i",
            "localhost,",
            path,
            *(["--check"] if check else []),
        ]
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.folder / "home"),
        }
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def play(tmp_path: Path, root: Path) -> Play:
    return Play(tmp_path, root)


def role(name: str, tasks_from: str) -> dict[str, t.Any]:
    return {"ansible.builtin.import_role": {"name": name, "tasks_from": tasks_from}}


@pytest.fixture
def built(play: Play, tmp_path: Path) -> Play:
    """Its environment as a run has left it."""
    installed = tmp_path / f"python/cpython-{VERSION}.0-linux/bin/python{VERSION}"
    installed.parent.mkdir(parents=True)
    installed.symlink_to(sys.executable)
    subprocess.run(
        [Path(sys.executable).parent / "uv", "venv", "-q", "--python", sys.executable, play.venv], check=True
    )
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(next(play.venv.glob("lib/python*/site-packages")))
    (play.venv / "slipway.lock").write_text(play.lock.read_text())
    (play.venv / "constraints.txt").write_text("# Written by Slipway.\nslip-one==1.0\n")
    (tmp_path / "envs/current").symlink_to(play.venv)
    return play


def test_an_interpreter_that_uv_installed_is_found_again_by_verify(built: Play) -> None:
    done = built(role("inference_stack", "verify"))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        ({"accepted": None, "cudnn_minimum": None}, ""),
        ({"cudnn_minimum": "9.15"}, "no cuDNN is installed, and 9.15 is the least"),
    ],
)
def test_compiled_libraries_are_proven_by_verify(built: Play, stack: dict[str, t.Any], told: str) -> None:
    built.profile("sglang", **stack)
    done = built(role("inference_stack", "verify"))
    assert done.returncode == (2 if told else 0), done.stdout
    assert told in done.stdout


def test_check_mode_patches_nothing_where_even_the_interpreter_is_yet_to_come(play: Play) -> None:
    foreseen = {"ansible.builtin.assert": {"that": "__stack_patches_foreseen | bool"}}
    tasks = [role("inference_stack", "proven"), role("stack_patches", "preflight"), foreseen]
    done = play(*tasks, check=True, __inference_stack_interpreter={"path": "", "version": VERSION})
    assert done.returncode == 0, done.stdout
