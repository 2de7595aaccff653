#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the compiled libraries of a Python environment fit each other, the GPU and the driver."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: native_libraries_info
short_description: Whether the compiled libraries of a Python environment fit each other, the GPU and the driver
version_added: "0.1.0"
description:
  - Tells before anything is started, from the files alone, what would otherwise show as an import that fails or a kernel that does not exist.
  - Compares what each extension asks of torch with what the installed torch offers, the kernels in each library with the GPU, torch's CUDA
    with the driver's, and cuDNN with a least version.
  - Needs no GPU, no driver and no program on the target, loads nothing, and changes nothing.
author: [Slipway contributors]
options:
  venv:
    description: Folder of the environment, a link to it, or a folder C(site-packages) itself.
    type: path
    required: true
  packages:
    description: Look at the libraries of these alone. Not given, at all.
    type: list
    elements: str
    default: []
  sm:
    description: Compute capability of the GPU as one number, such as 120. Not given, kernels are told and not judged.
    type: int
  required:
    description:
      - Libraries that must have code for the GPU, as patterns of their paths below C(site-packages). Others without it are told, and fail only where
        their package has none at all for this GPU.
    type: list
    elements: str
    default: []
  accepted:
    description:
      - Libraries whose misfit is known and does not matter, as such patterns; it is told and fails nothing. torchao for one loads its library only
        with the torch that it was built for.
    type: list
    elements: str
    default: []
  driver_cuda:
    description: The newest CUDA that the driver knows, such as V(13.0). Not given, it is not compared.
    type: str
    default: ""
  cudnn_minimum:
    description: The least version of cuDNN, such as V(9.15).
    type: str
    default: ""
attributes:
  check_mode:
    description: Can run in check mode and tell what it would without it.
    support: full
  diff_mode:
    description: There is nothing to differ; the module never changes anything.
    support: none
"""

EXAMPLES = r"""
- name: Will these libraries run on an RTX PRO 6000 Blackwell
  native_libraries_info:
    venv: /opt/slipway/envs/current
    sm: 120
    required: [sgl_kernel/*/common_ops.abi3.so]
    driver_cuda: "13.0"
    cudnn_minimum: "9.15"
  register: libraries
"""

RETURN = r"""
libraries:
  description:
    - Libraries that ask something of torch or have kernels, each with C(path) (below C(site-packages)), C(package), C(torch_symbols) (how many it asks
      for), C(missing_symbols) (those that the installed torch does not have), C(machine_code) and C(ptx) (architectures).
  returned: success
  type: list
  elements: dict
torch:
  description: C(version) of torch, and C(cuda), with which it was built; empty where it is not there, or was built without.
  returned: success
  type: dict
cudnn:
  description: Version of cuDNN's package, empty where there is none.
  returned: success
  type: str
findings:
  description: What does not fit, such as V(ABI_MISMATCH), V(SM_NOT_COVERED), V(CUDA_TOO_NEW) and V(CUDNN_TOO_OLD).
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.python import lock, native, site

ARGUMENT_SPEC: dict[str, t.Any] = {
    "venv": {"type": "path", "required": True},
    "packages": {"type": "list", "elements": "str", "default": []},
    "sm": {"type": "int"},
    "required": {"type": "list", "elements": "str", "default": []},
    "accepted": {"type": "list", "elements": "str", "default": []},
    "driver_cuda": {"type": "str", "default": ""},
    "cudnn_minimum": {"type": "str", "default": ""},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Look and judge. ``check_mode`` makes no difference: nothing is ever changed. Raises ``SlipwayError``."""
    venv = Path(params["venv"])
    asked = {lock.normalise(name) for name in params["packages"]}
    try:
        folders = site.folders(venv)
        looks = [native.look(folder, asked) for folder in folders]
    except OSError as error:
        remedy = "Run as a user who may read all of it"
        raise cannot("look at", f"environment '{venv}'", here(), str(error), remedy) from None
    if not folders:
        remedy = "Give the folder of a virtual environment, or a site-packages itself"
        raise cannot("look at", f"environment '{venv}'", here(), "it has no site-packages", remedy)
    whole = native.Look(
        [one for each in looks for one in each.libraries],
        next((each.torch for each in looks if each.torch), ""),
        next((each.cuda for each in looks if each.cuda), ""),
        next((each.cudnn for each in looks if each.cudnn), ""),
    )
    demands = native.Demands(
        params["sm"] or 0,
        tuple(params["required"]),
        tuple(params["accepted"]),
        params["driver_cuda"],
        params["cudnn_minimum"],
    )
    found = native.findings(whole, demands)
    return {
        "changed": False,
        "libraries": [one.as_dict() for one in whole.libraries if one.asked or one.kernels.any],
        "torch": {"version": whole.torch, "cuda": whole.cuda},
        "cudnn": whole.cudnn,
        "findings": [one.as_dict() for one in found],
    }


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
