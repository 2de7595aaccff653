# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy inventory/example and fill in its marked values, as a user does; nothing else of it is changed.

python fill.py RIG-FOLDER TARGET, where RIG-FOLDER holds the rig's fleet.json
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "inventory/example"
MARKED = re.compile(r"^(?P<before>\s*)(?P<name>\w+): (?P<value>.+?)(?P<mark> # <- yours)$", re.MULTILINE)


def values() -> dict:
    """What is filled in: ``example/values.yml``."""
    return yaml.safe_load((HERE / "example/values.yml").read_text())


def fill(text: str, table: dict[str, str], context: dict) -> str:
    """A file of the example with each marked value replaced. Raises KeyError for one that the table does not have."""

    def replacement(found: re.Match[str]) -> str:
        value = table[f"{found['name']}: {found['value']}"].format(**context)
        return f"{found['before']}{found['name']}: {value}{found['mark']}"

    return MARKED.sub(replacement, text)


def main(folder: Path, target: Path) -> None:
    """Make ``target/inventory`` with an open vault, and ``target/beside.yml`` with what the rig needs beyond the example."""
    rig = json.loads((folder / "fleet.json").read_text())
    runfile = folder / f"NVIDIA-Linux-x86_64-{rig['driver_versions'][0]}.run"
    context = {"rig": rig, "folder": folder, "runfile_sha256": hashlib.sha256(runfile.read_bytes()).hexdigest()}
    inventory = target / "inventory"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(EXAMPLE, inventory)
    table = values()
    for name, lines in table["marked"].items():
        path = inventory / name
        path.write_text(fill(path.read_text(), lines, context))
    vault = inventory / "group_vars/all/vault.yml.example"
    vault.rename(vault.with_suffix(""))
    shutil.copy(folder / "ssh/known_hosts", inventory)
    for node in rig["nodes"]:
        shutil.copy(folder / f"{node['name']}-ca.pem", inventory / f"{node['name']}.pem")
    files = {guest: rig["templates"].get(name, rig["template"]) for guest, name in table["templates"].items()}
    for guest, file in files.items():
        path = inventory / "host_vars" / f"{guest}.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"---\ngpu_container_ostemplate: local:vztmpl/{file}\n")
        print(f"{guest} is made from {file}")
    (target / "beside.yml").write_text(json.dumps(table["beside"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
