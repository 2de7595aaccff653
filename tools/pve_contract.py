# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the contract (tests/contract) against a real Proxmox node. Argument: a YAML file as in docs/operations.md.

Reads first; makes guests only on the vmids that the file names, and takes them away again. Exit status 0 if all of it passed.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import typing as t
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from contract.run import Run  # noqa: E402 - found only now
from contract.settings import Unusable, load  # noqa: E402

CANNOT_START = 2


def interrupt(*_: t.Any) -> t.NoReturn:
    """What ends the run ends it like Ctrl-C: the clean-up comes first."""
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0]:
        print(
            "pve-contract: name the file that describes the node, as in: make pve-contract NODE=my-node.yml",
            file=sys.stderr,
        )
        return CANNOT_START
    try:
        run = Run(load(Path(arguments[0]), os.environ))
    except Unusable as error:
        print(f"pve-contract: {error}", file=sys.stderr)
        return CANNOT_START
    # The modules would take further options from it, and what they start needs no secrets.
    for name in [name for name in os.environ if name.startswith("PROXMOX_")]:
        del os.environ[name]
    # That of the keyboard too: who is started in the background may have inherited that it is ignored.
    for ends in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ends, interrupt)
    with tempfile.TemporaryDirectory() as scratch:
        options = ["-v", "--tb=short", "--no-header", "-p", "no:cacheprovider", f"--basetemp={scratch}/pytest"]
        try:
            status = pytest.main([*options, *run.files], plugins=[run])
        except KeyboardInterrupt:
            # A second one, in the clean-up.
            status, run.broken_off = 1, True
    if not run.outcomes and not run.broken_off:
        return CANNOT_START
    run.finish()
    return 0 if run.good and status == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
