# SPDX-License-Identifier: GPL-3.0-or-later
"""A task file of a role, run by ansible-playbook on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

PATHS = {
    "ROLES_PATH": "roles",
    "LIBRARY": "library",
    "MODULE_UTILS": "module_utils",
    "CALLBACK_PLUGINS": "callback_plugins",
}


class Part:
    """Runs a task file of a role with these variables, which also take the place of those that the role works out."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        (folder / "ansible.cfg").touch()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            **{f"ANSIBLE_{name}": str(root / path) for name, path in PATHS.items()},
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_REMOTE_TMP": str(folder / "remote"),
            "ANSIBLE_STDOUT_CALLBACK": "slipway",
            "HOME": str(folder),
        }

    def __call__(self, role: str, part: str, *options: str, **variables: t.Any) -> tuple[int, str]:
        """Exit code and what was printed."""
        task = {"name": "Part", "ansible.builtin.include_role": {"name": role, "tasks_from": part}}
        play = {"name": "Play", "hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}
        (self.folder / "play.yml").write_text(json.dumps([play]))
        given = {"ansible_python_interpreter": sys.executable, **variables}
        program = str(Path(sys.executable).parent / "ansible-playbook")
        done = subprocess.run(
            [program, "-i", "localhost,", "play.yml", "-e", json.dumps(given), *options],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr
