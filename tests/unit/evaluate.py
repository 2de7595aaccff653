# SPDX-License-Identifier: GPL-3.0-or-later
"""The value of a role's expression, as Ansible has it.

In a process of its own, which reads and prints JSON: whoever imports Ansible's templating is a controller from then on, and modules that
run there tell no warnings.
"""

from __future__ import annotations

import json
import subprocess
import sys
import typing as t
from pathlib import Path


def evaluate(expression: str, variables: dict[str, t.Any], role: Path | None = None) -> t.Any:
    """Template the text with the variables of a role (``vars/main.yml``) and these, which win."""
    asked = {"expression": expression, "variables": variables, "role": role and str(role / "vars/main.yml")}
    done = subprocess.run(
        [sys.executable, __file__], input=json.dumps(asked), text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main() -> None:
    """Answer one question."""
    from ansible.parsing.dataloader import DataLoader
    from ansible.template import Templar, trust_as_template

    asked, loader = json.load(sys.stdin), DataLoader()
    role = loader.load_from_file(asked["role"], trusted_as_template=True) if asked["role"] else {}
    templar = Templar(loader, variables={**role, **asked["variables"]})
    json.dump(templar.template(trust_as_template(asked["expression"])), sys.stdout)


if __name__ == "__main__":
    main()
