#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the files of a model are what they should be."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: model_files_info
short_description: Whether the files of a model are what they should be
version_added: "0.2.0"
description:
  - Compares a folder that M(model_files) keeps with its record, or files with hashes that are known from elsewhere.
  - Asks nobody and changes nothing. M(model_files) fetches what is damaged.
author: [Slipway contributors]
options:
  path:
    description: The folder of the model.
    type: path
    required: true
  repository:
    description: Owner and name of the repository that it should hold. Exactly one of this and O(sha256) is needed.
    type: str
  revision:
    description: The commit, tag or branch that it should hold.
    type: str
    default: main
  sha256:
    description: Hashes by the path of a file in the folder, in the place of a record.
    type: dict
  verify:
    description: With V(quick) a file that has the size and the time of the record is whole; with V(full) each is hashed.
    type: str
    choices: [quick, full]
    default: quick
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: See whether the weights are whole
  model_files_info:
    path: /srv/models/glm-5-nvfp4
    repository: lukealonso/GLM-5-NVFP4
    revision: 0123456789abcdef0123456789abcdef01234567
"""

RETURN = r"""
model:
  description: What the folder holds by its record, with C(repository revision commit when files) and C(size_bytes); empty where there is none.
  returned: success
  type: dict
findings:
  description: >-
    What was found, such as V(MODEL_FILE_MISSING), V(MODEL_FILE_DAMAGED), V(MODEL_REVISION_OTHER), V(MODEL_REVISION_KEPT),
    V(MODEL_REVISION_MOVES).
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.model import judge, store

ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "required": True},
    "repository": {"type": "str"},
    "revision": {"type": "str", "default": "main"},
    "sha256": {"type": "dict"},
    "verify": {"type": "str", "choices": ["quick", "full"], "default": "quick"},
}


def run(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Look. Raises ``SlipwayError``."""
    place = store.Place(Path(params["path"]))
    record = None
    try:
        if params["sha256"]:
            findings = judge.digests(place.folder, params["sha256"])
        else:
            how = "all" if params["verify"] == "full" else "known"
            record, findings = judge.folder(place, params["repository"], params["revision"], how)
    except OSError as error:
        cause = f"{error.filename or place.folder}: {error.strerror or error}"
        raise cannot("read", f"model '{place.folder}'", here(), cause, "Mend that, and run again") from None
    return {"changed": False, "model": _facts(record), "findings": [found.as_dict() for found in findings]}


def _facts(record: store.Record | None) -> dict[str, t.Any]:
    if record is None:
        return {}
    listing = record.listing
    return {
        "repository": record.wanted.repository,
        "revision": record.wanted.revision,
        "commit": listing.commit,
        "when": record.when,
        "files": len(listing.files),
        "size_bytes": listing.size_bytes,
    }


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        supports_check_mode=True,
        mutually_exclusive=[("repository", "sha256")],
        required_one_of=[("repository", "sha256")],
    )
    try:
        result = run(module.params)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
