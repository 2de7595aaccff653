#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Proof that data crosses the links between NVIDIA GPUs, and how fast."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_p2p
short_description: Proof that data crosses the links between NVIDIA GPUs, and how fast
version_added: "0.1.0"
description:
  - Copies patterns between each ordered pair of GPUs, from 4 bytes to the whole buffer, issued from either side, by each pair
    alone and by all at once. The GPU that owns the memory reads it back, and each byte is compared. Then it measures bandwidth,
    latency, the same without peer access, and sets of copies at one time.
  - What the driver says that a pair can do is told and never taken for proof. What was not measured is never good.
  - Uses the CUDA driver API (C(libcuda.so.1)) by ctypes and nothing else. All calls are made in child processes with a hard limit. A
    pair that hangs or that ends its process costs that pair; another child measures the others.
  - Changes nothing, except that it writes a baseline where it is told to.
author:
  - Slipway contributors
options:
  allow_busy:
    description:
      - Measure even if other processes compute on the GPUs, or hold more than a tenth of their memory and 2 GiB. Speeds are worth little then.
    type: bool
    default: false
  baseline:
    description:
      - Path of a file on the target with speeds that it once had. What is slower than C(warn_ratio) and C(fail_ratio) of
        O(thresholds) allow is a finding. Where there is no such file nothing is compared.
    type: str
    default: ""
  buffer_mib:
    description:
      - The largest copy, and the size of those that are timed, in MiB. A quarter of it is what each of many copies at one time has. Each
        GPU needs two of them, and half of one for every other GPU.
    type: int
    default: 256
  devices:
    description:
      - PCI addresses of the GPUs between which links are proven, such as C(0000:01:00.0) or C(01:00.0). All that are here if empty.
    type: list
    elements: str
    default: []
  place:
    description:
      - Whether this is the machine that owns the GPUs (V(node)) or a container on it (V(guest)), as with M(gpu_host_info).
    type: str
    choices: [auto, node, guest]
    default: auto
  record_baseline:
    description:
      - Write O(baseline) if there is none and all is well. One that is there stays; remove it to record a new one.
    type: bool
    default: false
  required:
    description:
      - Whether the links must be good. If not, what would fail is a warning.
    type: bool
    default: true
  step_timeout_seconds:
    description:
      - How long one step may give no sign before it counts as hung. The first one brings up all GPUs, which takes seconds for each.
    type: int
    default: 60
  tests:
    description:
      - What is done, always in the order integrity, latency, bandwidth, concurrent.
    type: list
    elements: str
    choices: [integrity, latency, bandwidth, concurrent]
    default: [integrity, latency, bandwidth, concurrent]
  thresholds:
    description:
      - How fast links must be. What is not given keeps its default, which is for PCIe 5.0 x16.
    type: dict
    suboptions:
      reference_gbps:
        description:
          - What a healthy pair reaches one way in GB/s, by class of its path, V(PIX), V(PXB), V(PHB), V(NODE) (53) and V(SYS) (50).
        type: dict
      warn_ratio:
        description: Below this fraction of the reference or baseline it warns (0.95).
        type: float
      fail_ratio:
        description: Below this fraction of the reference or baseline it fails (0.85).
        type: float
      outlier_ratio:
        description: Below this fraction of the median of its class a pair is told (0.9).
        type: float
      bidirectional_ratio:
        description: What both ways together must reach, as a multiple of one way (1.7).
        type: float
      staged_ratio:
        description: How much faster a copy must be with peer access than without (1.2).
        type: float
      latency_us:
        description: A small copy that takes longer goes through the host (5).
        type: float
      concurrent_warn_ratio:
        description: Below this fraction of what their shared links allow, copies at one time warn (0.4).
        type: float
      concurrent_fail_ratio:
        description: Below this fraction, for all of them or for one, they fail (0.2).
        type: float
      implausible_gbps:
        description: A copy that is faster did not take place. The line rate of the narrowest link by default, 63.0 where that is not known.
        type: float
  timeout_seconds:
    description:
      - The limit for everything. What is not measured by then is V(unknown).
    type: int
    default: 600
attributes:
  check_mode:
    description: Measures nothing, and returns the plan with its bytes and seconds at the reference speeds.
    support: full
  diff_mode:
    description: Shows a baseline that it writes.
    support: full
"""

EXAMPLES = r"""
- name: Prove the links of a guest
  gpu_p2p:
    baseline: /var/lib/slipway/p2p-baseline.json
    record_baseline: true
  register: links
  failed_when: links.findings | selectattr('severity', 'in', ['fail', 'unknown']) | list | length > 0

- name: See whether data arrives, on a board that crosses sockets slowly
  gpu_p2p:
    tests: [integrity, bandwidth]
    thresholds:
      reference_gbps:
        SYS: 39
"""

RETURN = r"""
gpus:
  description: GPUs between which links were proven, with C(bus_id name uuid numa_node memory_mib sm link).
  returned: success
  type: list
  elements: dict
pairs:
  description: A row for each ordered pair; empty in check mode and where nothing was measured.
  returned: success
  type: list
  elements: dict
  contains:
    source: {description: PCI address of the GPU that has the data., type: str}
    target: {description: PCI address of the GPU that gets it., type: str}
    path_class: {description: "C(PIX), C(PXB), C(PHB), C(NODE) or C(SYS); none if the PCI tree cannot be seen.", type: str}
    can_access: {description: What the driver says. No proof., type: bool}
    integrity: {description: "C(intact), C(faulty) or C(unknown).", type: str}
    copies: {description: Copies that were compared., type: int}
    faulty_copies: {description: Copies that did not arrive as sent., type: int}
    faults:
      description:
        - The first of them, each with C(kind) (C(dropped), C(zeros), C(partial), C(stale), C(garbage)), C(offset), C(count) (at least, if not C(exact)) and
          C(size) in bytes, C(issued_by), C(round), C(together) (with all pairs at once), C(late) and C(source_wrong).
      type: list
    write_gbps: {description: "One way, issued by the source, in 10^9 bytes a second.", type: float}
    read_gbps: {description: "One way, issued by the target.", type: float}
    staged_gbps: {description: The same without peer access., type: float}
    bidirectional_gbps: {description: "Both ways at one time, the sum.", type: float}
    latency_us: {description: Microseconds of a copy of 16 bytes., type: float}
    staged_latency_us: {description: The same without peer access., type: float}
    links: {description: GT/s and width of each link of the two with data on the way., type: dict}
    errors: {description: "Steps that failed, each with C(test kind detail).", type: list}
concurrent:
  description:
    - A row for each set of copies at one time, with C(kind) (C(ring), C(all_to_one), C(disjoint), C(all_pairs), or C(integrity) where that
      failed), C(name), C(flows), C(gbps) of all together, C(ideal_gbps) by the links that they share, C(ratio) and C(error).
  returned: success
  type: list
  elements: dict
plan:
  description:
    - C(pairs), C(copies), C(bytes), C(seconds) at the reference speeds, C(took_seconds) as measured, C(buffer_bytes), and C(parts), which says
      by C(test) and C(kind) where the time goes.
  returned: success
  type: dict
verdict:
  description:
    - C(ok), C(degraded) (too slow), C(corrupt) (data lost, or a speed that cannot be), C(hung) or C(could_not_run). None in check mode.
    - It tells what was seen whether or not it is O(required).
  returned: success
  type: str
baseline:
  description: The baseline that was compared with or written, none if there is none.
  returned: success
  type: dict
matrix:
  description: C(markdown) and C(html), the pairs as tables for a report. The HTML brings its own style.
  returned: success
  type: dict
findings:
  description: What is wrong or could not be measured, each with C(id severity subject summary detail remedy reference).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.gpu import host, userspace
from ..module_utils.slipway.p2p import plan, prove, thresholds

_NUMBERS = (
    "warn_ratio",
    "fail_ratio",
    "outlier_ratio",
    "bidirectional_ratio",
    "staged_ratio",
    "latency_us",
    "concurrent_warn_ratio",
    "concurrent_fail_ratio",
    "implausible_gbps",
)
ARGUMENT_SPEC: dict[str, t.Any] = {
    "allow_busy": {"type": "bool", "default": False},
    "baseline": {"type": "str", "default": ""},
    "buffer_mib": {"type": "int", "default": 256},
    "devices": {"type": "list", "elements": "str", "default": []},
    "place": {"type": "str", "choices": ["auto", "node", "guest"], "default": "auto"},
    "record_baseline": {"type": "bool", "default": False},
    "required": {"type": "bool", "default": True},
    "step_timeout_seconds": {"type": "int", "default": 60},
    "tests": {"type": "list", "elements": "str", "choices": list(plan.TESTS), "default": list(plan.TESTS)},
    "thresholds": {
        "type": "dict",
        "options": {"reference_gbps": {"type": "dict"}, **{name: {"type": "float"} for name in _NUMBERS}},
    },
    "timeout_seconds": {"type": "int", "default": 600},
}
# The largest copy that a 64-bit driver can be asked for without filling a card; below it patterns do not repeat by pages.
_LARGEST_MIB = 1024


def run(
    params: dict[str, t.Any], check_mode: bool, root: str = "/", library: str = userspace.LIBRARY
) -> dict[str, t.Any]:
    """Prove and judge; in check mode plan only.

    ``root`` and ``library`` are where the machine's files and ``libcuda`` are. Raises ``SlipwayError`` for options that make no sense and
    for a baseline that cannot be written.
    """
    try:
        devices = tuple(host.bus_id(address) for address in params["devices"])
    except ValueError as error:
        raise cannot("read", "option 'devices'", here(), str(error), "Give PCI addresses") from error
    try:
        limits = thresholds.read(params["thresholds"])
    except ValueError as error:
        raise cannot("read", "option 'thresholds'", here(), str(error), "Give numbers above 0") from error
    for name, largest in (("buffer_mib", _LARGEST_MIB), ("step_timeout_seconds", None), ("timeout_seconds", None)):
        if params[name] < 1 or (largest and params[name] > largest):
            remedy = f"Give a whole number from 1 to {largest}" if largest else "Give a whole number from 1 up"
            raise cannot("read", f"option '{name}'", here(), f"it is {params[name]}", remedy)
    if not params["tests"]:
        raise cannot(
            "read", "option 'tests'", here(), "it is empty, so nothing would be proven", "Name one or leave it out"
        )
    names = ("buffer_mib", "required", "baseline", "record_baseline", "timeout_seconds", "step_timeout_seconds")
    options = prove.Options(
        tests=tuple(params["tests"]),
        devices=devices,
        thresholds=limits,
        allow_busy=params["allow_busy"],
        place=params["place"],
        root=root,
        library=library,
        **{name: params[name] for name in names},
    )
    try:
        return prove.prove(options, check_mode)
    except OSError as error:
        raise cannot(
            "write", f"baseline '{params['baseline']}'", here(), str(error), "Give a path that can be written"
        ) from error


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
