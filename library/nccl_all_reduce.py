#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A timed NCCL all-reduce over all GPUs of a guest, with a data check, by the stack's own Python."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nccl_all_reduce
short_description: A timed NCCL all-reduce over all GPUs of a guest, with a data check
version_added: "0.1.0"
description:
  - Starts one process a GPU with the Python of a virtual environment, which must have torch with NCCL, and makes all-reduces from 4 KiB to the whole
    buffer. Values depend on rank, place and round, and are such that their sum is exact. Each rank compares each sum, before and after the timed ones.
  - Meant to run when the stack is there and before a model is loaded. Where NCCL hangs this tells it within a minute, with the rank and
    the phase in which it was last heard of, and not after the time that a server's start may take.
  - NCCL is run with the environment that the service will have. How it reaches each rank, what settings it took and what it warned of is told.
  - The processes are below one child with a hard limit; it and all of them are killed when nothing comes back, or when one of them fails.
  - Changes nothing.
author:
  - Slipway contributors
options:
  allow_busy:
    description: Run even if other processes compute on the GPUs. Speeds are worth little then.
    type: bool
    default: false
  buffer_mib:
    description: The largest all-reduce, in MiB. Speed is judged by it. Each GPU needs about four times as much.
    type: int
    default: 256
  devices:
    description:
      - PCI addresses of the GPUs that take part, such as C(0000:01:00.0) or C(01:00.0). All that are here if empty.
    type: list
    elements: str
    default: []
  environment:
    description:
      - Environment variables as the service has them, such as C(NCCL_P2P_LEVEL). Nothing of the module's own environment is passed on.
      - C(NCCL_DEBUG) and what belongs to it is set by the module. C(CUDA_VISIBLE_DEVICES) is refused, since O(devices) says which GPUs there are.
    type: dict
    default: {}
  iterations:
    description: How many all-reduces of each size are timed.
    type: int
    default: 20
  place:
    description:
      - Whether this is the machine that owns the GPUs (V(node)) or a container on it (V(guest)), as with M(gpu_host_info).
    type: str
    choices: [auto, node, guest]
    default: auto
  required:
    description: Whether it must be good. If not, what would fail is a warning.
    type: bool
    default: true
  step_timeout_seconds:
    description:
      - How long no rank may give any sign before they count as hung. The first phase imports torch, which takes long from a slow disk.
    type: int
    default: 45
  thresholds:
    description:
      - How fast it must be. What is not given keeps its default, which is for eight RTX PRO 6000 on PCIe 5.0.
    type: dict
    suboptions:
      bus_gbps:
        description:
          - Bus bandwidth with the largest buffer in GB/s (37.6). It is the size over the time, multiplied by 2(n-1)/n for n GPUs, as in nccl-tests.
        type: float
      warn_ratio:
        description: Below this fraction of it it warns (0.95).
        type: float
      fail_ratio:
        description: Below this fraction of it it fails (0.85).
        type: float
      latency_us:
        description: What an all-reduce of 4 KiB may take before it warns, in microseconds (100).
        type: float
  timeout_seconds:
    description: The limit for everything.
    type: int
    default: 180
  user:
    description: Run it as this user of the target, with its groups, as the server will.
    type: str
  venv:
    description: The virtual environment of the stack. C(bin/python) below it is run.
    type: path
    required: true
attributes:
  check_mode:
    description: Runs nothing, and returns the plan with its bytes and seconds at the reference speed.
    support: full
  diff_mode:
    description: There is nothing to differ; the module never changes anything.
    support: none
"""

EXAMPLES = r"""
- name: Prove NCCL before the model is loaded
  nccl_all_reduce:
    venv: /opt/slipway/envs/current
    user: inference
    environment:
      NCCL_P2P_LEVEL: SYS
      NCCL_MIN_NCHANNELS: 8
    thresholds:
      bus_gbps: 37.6
  register: reduced
  failed_when: reduced.findings | selectattr('severity', 'in', ['fail', 'unknown']) | list | length > 0
"""

RETURN = r"""
ranks:
  description: A row for each GPU that took part; empty in check mode and where nothing was run.
  returned: success
  type: list
  elements: dict
  contains:
    rank: {description: Its number., type: int}
    bus_id: {description: PCI address of its GPU., type: str}
    seen_bus_id: {description: The address that torch tells., type: str}
    phase: {description: "Where it was last heard of. C(start), C(import), C(device), C(rendezvous), C(first all-reduce), a size, or C(end).", type: str}
    ended: {description: "C(done), C(failed), C(killed) (because another failed) or C(open) (it never ended).", type: str}
    status: {description: "Exit status, negative for a signal.", type: int}
    error: {description: What it said went wrong., type: str}
    tail: {description: "Its last lines, where it did not end well.", type: list, elements: str}
    torch: {description: Version of torch., type: str}
    nccl: {description: Version of NCCL as torch tells it., type: str}
    name: {description: Model of its GPU., type: str}
    sm: {description: Compute capability as one number., type: int, sample: 120}
results:
  description: A row for each size.
  returned: success
  type: list
  elements: dict
  contains:
    size: {description: Bytes., type: int}
    seconds: {description: "Of one all-reduce, on the slowest rank; none where it was not timed on each.", type: float}
    algbw_gbps: {description: Size over time in 10^9 bytes a second., type: float}
    busbw_gbps: {description: "The same, multiplied by 2(n-1)/n.", type: float}
    checked: {description: Sums that were compared., type: int}
    wrong: {description: Sums that were wrong., type: int}
    ranks: {description: How many ranks told., type: int}
    faults:
      description:
        - Checks that found wrong sums, each with C(rank dtype round checked wrong), C(zeros) and C(unchanged) among the wrong ones, C(offset) of the
          first (in elements), what it C(got) and what was C(expected).
      type: list
transport:
  description: How NCCL says that ranks reach each other, each with C(source target via channels).
  returned: success
  type: list
  elements: dict
  sample: [{source: 0, target: 1, via: P2P/CUMEM, channels: 8}]
settings:
  description: Settings that NCCL says it took from the environment or its configuration file.
  returned: success
  type: dict
nccl_warnings:
  description: What NCCL warned of, each once.
  returned: success
  type: list
  elements: str
nccl_version:
  description: Version of NCCL as its log has it, else as torch tells it.
  returned: success
  type: str
torch_version:
  description: Version of torch.
  returned: success
  type: str
plan:
  description:
    - C(ranks), C(gpus) by rank, C(sizes) (each C(bytes iterations all_reduces link_bytes seconds)), C(bytes) over all links, C(seconds) at the reference speed,
      and C(took_seconds).
  returned: success
  type: dict
verdict:
  description: C(ok), C(degraded) (too slow), C(corrupt) (sums are wrong), C(hung) or C(could_not_run), whether or not it is O(required). None in check mode.
  returned: success
  type: str
findings:
  description: What is wrong or could not be run, each with C(id severity subject summary detail remedy reference).
  returned: always
  type: list
  elements: dict
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.all_reduce import prove, thresholds
from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.gpu import host, userspace

ARGUMENT_SPEC: dict[str, t.Any] = {
    "allow_busy": {"type": "bool", "default": False},
    "buffer_mib": {"type": "int", "default": 256},
    "devices": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "dict", "default": {}},
    "iterations": {"type": "int", "default": 20},
    "place": {"type": "str", "choices": ["auto", "node", "guest"], "default": "auto"},
    "required": {"type": "bool", "default": True},
    "step_timeout_seconds": {"type": "int", "default": 45},
    "thresholds": {"type": "dict", "options": {name: {"type": "float"} for name in thresholds.NAMES}},
    "timeout_seconds": {"type": "int", "default": 180},
    "user": {"type": "str"},
    "venv": {"type": "path", "required": True},
}
_LARGEST = {"buffer_mib": 4096, "iterations": 1000, "step_timeout_seconds": 3600, "timeout_seconds": 86400}


def run(
    params: dict[str, t.Any], check_mode: bool, root: str = "/", library: str = userspace.LIBRARY
) -> dict[str, t.Any]:
    """Prove and judge; in check mode plan only.

    ``root`` and ``library`` are where the machine's files and ``libcuda`` are. Raises ``SlipwayError`` for options that make no sense.
    """
    try:
        devices = tuple(host.bus_id(address) for address in params["devices"])
    except ValueError as error:
        raise cannot("read", "option 'devices'", here(), str(error), "Give PCI addresses") from error
    try:
        limits = thresholds.read(params["thresholds"])
    except ValueError as error:
        raise cannot("read", "option 'thresholds'", here(), str(error), "Give numbers above 0") from error
    for name, largest in _LARGEST.items():
        if not 1 <= params[name] <= largest:
            remedy = f"Give a whole number from 1 to {largest}"
            raise cannot("read", f"option '{name}'", here(), f"it is {params[name]}", remedy)
    if "CUDA_VISIBLE_DEVICES" in params["environment"]:
        remedy = "Name the GPUs in devices by their PCI addresses, and leave it out"
        raise cannot("read", "option 'environment'", here(), "it has CUDA_VISIBLE_DEVICES", remedy)
    options = prove.Options(
        devices=devices,
        environment={str(name): str(value) for name, value in params["environment"].items()},
        thresholds=limits,
        root=root,
        library=library,
        **{name: params[name] for name in ("venv", "required", "user", "allow_busy", "place", *_LARGEST)},
    )
    if not check_mode and not os.access(options.python, os.X_OK):
        remedy = "Build the environment first (python_stack), or give the path of one that is there"
        raise cannot("start", f"python '{options.python}'", here(), "there is no such program", remedy)
    try:
        return prove.prove(options, check_mode)
    except KeyError as error:
        raise cannot("run as", f"user '{params['user']}'", here(), "there is none", "Make the user first") from error


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(module.params, module.check_mode)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
