#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""NVIDIA GPUs, driver and device nodes of a node or guest, as facts and findings."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_host_info
short_description: NVIDIA GPUs, driver and device nodes of a node or guest
version_added: "0.1.0"
description:
  - Tells which NVIDIA GPUs are here, whether the driver's kernel part and user part fit each other, whether the device
    nodes lead to the loaded driver and can be opened, and whether C(nvidia_uvm) has HMM off, now and at the next load.
  - On a node it also tells what lies between the GPUs. Every link from the root port down with speed and width, what ACS and
    IOMMU do to traffic between GPUs, BAR1, errors in the kernel log, virtual machines that have a GPU, and parameters of modules
    that wait for the next load.
  - Reads C(/proc), C(/sys), C(/dev), C(/etc) and dpkg's files. Needs no library or program on the target, and changes nothing.
  - With O(cuda=true) it also initialises CUDA, in a child process with a hard limit. This is the only proof that CUDA
    works; C(nvidia-smi) does without half of what it needs.
  - Each known fault comes back as a finding with its remedy. What could not be checked is C(unknown), never good.
author:
  - Slipway contributors
options:
  cuda:
    description:
      - Initialise CUDA in a child process and ask it for its devices. Brings up GPUs that nothing else uses.
    type: bool
    default: false
  expected_gpus:
    description:
      - PCI addresses of GPUs that must be usable here, such as C(0000:01:00.0) or C(01:00.0).
      - On a node these are GPUs among others, and every GPU of the driver is expected in any case.
      - In a guest these are all that it was meant to get. A container sees the node's whole list and cannot tell by
        itself, so any other that it was given is a finding. If none is named, what it was given is taken for right.
    type: list
    elements: str
    default: []
  modprobe_error:
    description:
      - What modprobe, or the driver's installer, said when the driver could not be loaded. It is told in the finding, and a
        kernel that wants a signature is told as such.
    type: str
    default: ""
  place:
    description:
      - Whether this is the machine that owns the GPUs (V(node)) or a container on it (V(guest)).
      - V(auto) takes a user namespace for a guest, and any other container too unless it is a Proxmox node itself.
    type: str
    choices: [auto, node, guest]
    default: auto
  signing:
    description:
      - Judge whether modules that are built here will be let in, which matters where Secure Boot is on. Asks
        C(mokutil --test-key), the one program that this module ever runs.
    type: dict
    suboptions:
      key:
        description: The private key that will sign them.
        type: str
        default: ""
      certificate:
        description: Its certificate, in DER.
        type: str
        default: ""
  timeout_seconds:
    description:
      - How long opening the device nodes may take, all of them together, and again how long CUDA may take, before they
        count as hung. A GPU that nothing else uses is brought up for it, which takes seconds.
    type: int
    default: 180
  under_load:
    description:
      - Whether the GPUs are copying while this module looks. Then the speed of their own links is judged too; a GPU that is idle
        lowers it.
    type: bool
    default: false
  user:
    description:
      - Open the device nodes and ask CUDA as this user of the target, with its groups, rather than as the one the module
        runs as. Root passes every mode, so only this shows whether a server's own user can compute.
    type: str
attributes:
  check_mode:
    description: Can run in check mode and tell what it would without it.
    support: full
  diff_mode:
    description: There is nothing to differ; the module never changes anything.
    support: none
"""

EXAMPLES = r"""
- name: See what a node has
  gpu_host_info:
  register: host

- name: Prove CUDA in a guest that was given two GPUs
  gpu_host_info:
    cuda: true
    expected_gpus: ["0000:01:00.0", "0000:02:00.0"]
  register: guest
  failed_when: guest.findings | selectattr('severity', 'in', ['fail', 'unknown']) | list | length > 0
"""

RETURN = r"""
place:
  description: C(node) or C(guest), as given or found out.
  returned: success
  type: str
gpus:
  description: GPUs in the order of their PCI addresses. In a guest only those whose device node was passed in.
  returned: success
  type: list
  elements: dict
  contains:
    bus_id: {description: PCI address in lower case with a four-digit domain., type: str, sample: "0000:01:00.0"}
    minor: {description: The driver's number of the GPU, none if the driver does not have it., type: int}
    device: {description: Its device node by that number, whether it exists or not., type: str, sample: /dev/nvidia0}
    name: {description: Model., type: str, sample: NVIDIA RTX PRO 6000 Blackwell Server Edition}
    uuid: {description: UUID, none until the GPU has been initialised., type: str}
    excluded: {description: Whether the driver was told to leave it alone., type: bool}
    driven: {description: Whether NVIDIA's driver has it., type: bool}
    pci_driver: {description: Kernel driver bound to it, type: str, sample: nvidia}
    vendor_id: {description: PCI vendor., type: str, sample: "0x10de"}
    device_id: {description: PCI device., type: str, sample: "0x2bb5"}
    numa_node: {description: NUMA node, none if the firmware does not tell., type: int}
    link:
      description: C(speed_gts), C(width), C(max_speed_gts), C(max_width) of the PCIe link; the speed is low when idle.
      type: dict
    local_cpus: {description: CPUs that are near, type: str, sample: 0-31}
    path:
      description:
        - The devices from the root port down to the GPU, each with C(bus_id), C(kind) (root port, upstream port, downstream port,
          endpoint), C(link) as above, C(max_payload_bytes), C(max_read_request_bytes), C(acs_control), C(request_redirect) and
          C(completion_redirect). None is what cannot be learnt, in a container all that is not in the first 64 bytes of the
          configuration space. The whole is none where sysfs does not show what the GPU hangs on.
      type: list
      elements: dict
    bar1_mib: {description: Size of BAR1 in MiB, type: int, sample: 131072}
    bar1_sizes_mib: {description: Sizes that it can have, none if it cannot be resized., type: list, elements: int}
    iommu_group: {description: Its IOMMU group, type: int}
    iommu_type: {description: "The type of the group's domain, as sysfs has it", type: str, sample: identity}
    iommu_mode: {description: "C(off), C(passthrough) or C(translated), none if it is not known", type: str}
    driver_override: {description: The only driver that may have it, type: str}
    machines:
      description: Virtual machines of this node that have it, each with C(vmid), C(name), C(key), C(running) and C(onboot).
      type: list
      elements: dict
    memory_mib: {description: Memory as CUDA tells, none without O(cuda=true)., type: int}
    sm: {description: Compute capability as one number, none without O(cuda=true)., type: int, sample: 120}
driver:
  description:
    - C(loaded), C(kernel_version), C(open_kernel_module), C(user_version), C(user_library) (the path where the dynamic
      loader finds it) and C(parameters) (of the kernel module). None is what could not be learnt.
    - C(installed_by), a list of C(runfile) (NVIDIA's installer) and C(packages), and C(packages), the driver's Debian
      packages by name with their versions.
  returned: success
  type: dict
uvm:
  description:
    - C(loaded), C(disable_hmm) (of the loaded module) and C(disable_hmm_on_disk) (what the next load will take, none
      in a guest) of the module C(nvidia_uvm).
  returned: success
  type: dict
devices:
  description:
    - NVIDIA's device nodes with C(path), C(major), C(minor), C(mode), C(uid), C(gid), C(opens) and C(expected_major).
    - C(opens) is C(ok), the name of the error, C(hung), C(not a device) or C(not tried).
  returned: success
  type: list
  elements: dict
capability_nodes:
  description:
    - Nodes in C(/dev/nvidia-caps) with C(path), C(major), C(minor), C(mode) and C(expected_major). They are not opened.
  returned: success
  type: list
  elements: dict
modules:
  description:
    - Parameters of C(nvidia), C(nvidia_uvm), C(nvidia_modeset), C(nvidia_drm), C(nvidia_peermem) and C(vfio_pci), for each C(live)
      (none if it is not loaded; those of C(nvidia) are in C(driver.parameters)) and C(on_disk) (what the next load will take,
      none in a guest).
  returned: success
  type: dict
iommu:
  description: C(units) that are on (none if sysfs does not tell), and C(mode), the mode that does most to the GPUs' traffic.
  returned: success
  type: dict
acs:
  description:
    - C(redirect), whether a port on the way to the GPUs sends peer traffic up to the root complex (none if that is not known),
      and C(hops), the ports that this rests on.
  returned: success
  type: dict
processes:
  description:
    - Processes that have NVIDIA's device nodes open, each with C(pid), C(name), C(guest) (the vmid of its container) and
      C(devices). None where not all processes could be looked at.
  returned: success
  type: list
  elements: dict
persistence:
  description: C(daemon), whether NVIDIA's persistence daemon runs, and C(devices), the nodes that it keeps open.
  returned: success
  type: dict
xids:
  description:
    - Errors of the driver in the kernel log since boot, as far back as it reaches, each with C(bus_id), C(code), C(age_seconds)
      and C(text). None in a guest, and where the log cannot be read.
  returned: success
  type: list
  elements: dict
cmdline:
  description: The kernel command line.
  returned: success
  type: str
kernel:
  description: The kernel's release, none if it cannot be learnt.
  returned: success
  type: str
boot_id:
  description: What the kernel calls this boot; another one after each. None if it cannot be learnt.
  returned: success
  type: str
secure_boot:
  description: Whether the kernel was booted with Secure Boot. None without EFI, in a guest, or if it cannot be learnt.
  returned: success
  type: bool
cuda:
  description:
    - None without O(cuda=true). Otherwise C(result) and C(name) of the last CUDA call (0 is success, none if it did not
      return), C(call) (which that was), C(driver_version), C(devices) (how many), C(gpus), C(visible_devices), C(hung)
      and C(error).
  returned: success
  type: dict
findings:
  description: What is wrong or could not be checked, each with C(id severity subject summary detail remedy reference).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.gpu import faults, host, machine, userspace

ARGUMENT_SPEC: dict[str, t.Any] = {
    "cuda": {"type": "bool", "default": False},
    "expected_gpus": {"type": "list", "elements": "str", "default": []},
    "modprobe_error": {"type": "str", "default": ""},
    "place": {"type": "str", "choices": ["auto", "node", "guest"], "default": "auto"},
    "signing": {
        "type": "dict",
        "options": {"key": {"type": "str", "default": ""}, "certificate": {"type": "str", "default": ""}},
    },
    "timeout_seconds": {"type": "int", "default": 180},
    "under_load": {"type": "bool", "default": False},
    "user": {"type": "str"},
}
_RETURNED = (
    *("place", "gpus", "driver", "uvm", "devices", "capability_nodes", "modules", "iommu", "acs", "processes"),
    *("persistence", "xids", "cmdline", "kernel", "boot_id", "secure_boot", "cuda"),
)


def run(
    params: dict[str, t.Any], check_mode: bool, root: str = "/", library: str = userspace.LIBRARY
) -> dict[str, t.Any]:
    """Look and judge. ``check_mode`` makes no difference: nothing is ever changed.

    ``root`` and ``library`` are where the machine's files and ``libcuda`` are. Raises ``SlipwayError`` for options
    that make no sense.
    """
    try:
        expected = [host.bus_id(address) for address in params["expected_gpus"]]
    except ValueError as error:
        raise cannot("read", "option 'expected_gpus'", here(), str(error), "Give PCI addresses") from error
    if params["timeout_seconds"] < 1:
        raise cannot("read", "option 'timeout_seconds'", here(), "it is below 1", "Give whole seconds from 1 up")
    signing = (params["signing"]["key"], params["signing"]["certificate"]) if params["signing"] else None
    try:
        facts = machine.look(
            params["place"], params["cuda"], params["timeout_seconds"], root, library, params["user"], signing
        )
    except KeyError as error:
        raise cannot("look as", f"user '{params['user']}'", here(), "there is none", "Make the user first") from error
    told = faults.faults(facts, expected, params["modprobe_error"].strip(), params["under_load"])
    findings = [one.as_dict() for one in told]
    return {"changed": False, **{key: facts[key] for key in _RETURNED}, "findings": findings}


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
