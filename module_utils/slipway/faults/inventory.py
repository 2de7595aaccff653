# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "VARIABLE_UNKNOWN": Fault(
        "fail",
        "No role reads this variable, so it would have no effect.",
        "Correct its name, or take it out of the inventory and the command line.",
    ),
    "GUEST_CLASH": Fault(
        "fail",
        "Two guests of the inventory claim what only one can have.",
        "Give each guest its own address, vmid and GPUs (ansible_host, gpu_container_vmid, gpu_container_gpus).",
    ),
}
