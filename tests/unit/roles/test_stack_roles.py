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
        profile = {
            "python": [f"/nonexistent/python{VERSION}"],
            "packages": None,
            "build_tools": None,
            "stack": {"lock": "stack/requirements.lock", "imports": []},
            "patches": None,
        }
        (folder / "catalog/tiny/profile.yml").write_text(yaml.safe_dump(profile))

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


def test_an_interpreter_that_uv_installed_is_found_again_by_verify(play: Play, tmp_path: Path) -> None:
    installed = tmp_path / f"python/cpython-{VERSION}.0-linux/bin/python{VERSION}"
    installed.parent.mkdir(parents=True)
    installed.symlink_to(sys.executable)
    venv = tmp_path / f"envs/tiny-{hashlib.sha256(play.lock.read_bytes()).hexdigest()[:12]}"
    subprocess.run([Path(sys.executable).parent / "uv", "venv", "-q", "--python", sys.executable, venv], check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(next(venv.glob("lib/python*/site-packages")))
    (venv / "slipway.lock").write_text(play.lock.read_text())
    (tmp_path / "envs/current").symlink_to(venv)
    (venv / "constraints.txt").write_text("# Written by Slipway.\nslip-one==1.0\n")
    done = play(role("inference_stack", "verify"))
    assert done.returncode == 0, done.stdout


def test_check_mode_patches_nothing_where_even_the_interpreter_is_yet_to_come(play: Play) -> None:
    foreseen = {"ansible.builtin.assert": {"that": "__stack_patches_foreseen | bool"}}
    tasks = [role("inference_stack", "proven"), role("stack_patches", "preflight"), foreseen]
    done = play(*tasks, check=True, __inference_stack_interpreter={"path": "", "version": VERSION})
    assert done.returncode == 0, done.stdout
