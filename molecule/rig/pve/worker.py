# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of one task: takes its order as JSON from standard input."""

from __future__ import annotations

import importlib
import json
import os
import sys

from . import tasks
from .local import this_node


def main() -> None:
    """Do what the API server asked for."""
    order = json.load(sys.stdin)
    os.setsid()  # a server that is restarted does not take its tasks along
    task = tasks.Task(this_node(), order["upid"])
    with task.log_path.open("a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    module, name = order["work"]
    work = getattr(importlib.import_module(module), name)
    tasks.perform(task, work, order["vmid"], order["arguments"], order["fault"], echo=False)


if __name__ == "__main__":
    main()
