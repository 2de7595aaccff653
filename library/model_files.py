#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of a model, whole and verified."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: model_files
short_description: The files of a model, whole and verified
version_added: "0.2.0"
description:
  - Keeps a folder equal to a revision of a Hugging Face repository, or to a folder that somebody brought.
  - Files are fetched beside the folder, compared with the hashes that the hub gives, and looked at together (each safetensors header, the
    index against its files). Only then the folder comes to its place, by a rename. A damaged or missing file of a folder that is in its place
    is fetched again, alone.
  - What has come when a run ends early is gone on with by the next. Several runs for one folder wait for each other.
  - A revision of before is kept beside the folder and told; files that both have are linked, and take no room twice.
  - What was fetched is recorded in the folder (C(.slipway.json)), so that a run that has nothing to do asks nobody and reads no file's content.
  - A branch or a tag is resolved once. What it came to stays until another revision is asked for.
  - On a controller its action plugin says meanwhile how far it is.
author: [Slipway contributors]
extends_documentation_fragment: [slipway_source.ca_bundle]
options:
  path:
    description: The folder to keep. Others of its parent are left alone, but for C(.slipway), where what is not whole lies.
    type: path
    required: true
  repository:
    description: Owner and name of the repository. With O(folder) it is only recorded.
    type: str
    required: true
  revision:
    description: Commit, tag or branch. With O(folder) it is only recorded.
    type: str
    default: main
  folder:
    description: A folder of the target that the files are copied from. Given, no hub is asked.
    type: path
  beside:
    description:
      - O(folder) was put on the store's file system for this and goes afterwards. Its files are hashed and linked, not copied.
    type: bool
    default: false
  include:
    description: Patterns of files to take, in which an asterisk takes in slashes. Empty, all.
    type: list
    elements: str
    default: []
  exclude:
    description: Patterns of files to leave out.
    type: list
    elements: str
    default: []
  verify:
    description: With V(quick) a file that has the size and the time of the record is whole; with V(full) each is hashed.
    type: str
    choices: [quick, full]
    default: quick
  endpoint:
    description: Address of the hub or of a mirror.
    type: str
    default: https://huggingface.co
  token:
    description: A token of the hub, for repositories that need one.
    type: str
    default: ""
  python:
    description: Interpreter of an environment that has C(huggingface_hub). It is needed only where something is fetched from a hub.
    type: path
  parallel:
    description: How many files are downloaded at one time.
    type: int
    default: 4
  slice_seconds:
    description: After so many seconds it stops where it is, with C(finished) false. With 0 it goes on to the end.
    type: int
    default: 0
  timeout_seconds:
    description: How long the hub may say nothing when it is asked for a revision.
    type: int
    default: 30
  proxy:
    description: Address of the proxy for HTTP and HTTPS, without a login.
    type: str
    default: ""
  proxy_login:
    description: C(user:password) for the proxy, percent-encoded as in an address.
    type: str
    default: ""
  no_proxy:
    description: Hosts, domains and networks that are reached without the proxy.
    type: list
    elements: str
    default: []
  ca_content:
    description: The CAs themselves, for a check mode that comes before the file is on the target.
    type: str
    default: ""
attributes:
  check_mode:
    description: Asks the hub for the revision and whether it may be fetched, says which files and bytes would be, writes nothing.
    support: full
  diff_mode:
    description: Shows the files that are not whole.
    support: full
"""

EXAMPLES = r"""
- name: Weights from the hub
  model_files:
    path: /srv/models/glm-5-nvfp4
    repository: lukealonso/GLM-5-NVFP4
    revision: 0123456789abcdef0123456789abcdef01234567
    python: /opt/slipway/hub/current/bin/python
    token: "{{ model_store_hub_token }}"

- name: Weights that somebody brought
  model_files:
    path: /srv/models/glm-5-nvfp4
    repository: lukealonso/GLM-5-NVFP4
    revision: 0123456789abcdef0123456789abcdef01234567
    folder: /mnt/disk/GLM-5-NVFP4
"""

RETURN = r"""
path:
  description: The folder.
  returned: success
  type: str
commit:
  description: What the revision came to. For a folder, a digest of its files' names, sizes and times.
  returned: success
  type: str
finished:
  description: Whether the folder is whole. Check mode says whether it is now.
  returned: success
  type: bool
files:
  description: Files that are yet to be fetched, or were to be when it began.
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: In the folder., type: str, returned: success}
    size_bytes: {description: Its size., type: int, returned: success}
    fault: {description: What is wrong with what is there., type: str, returned: success}
total_bytes:
  description: The size of the whole model.
  returned: success
  type: int
left_bytes:
  description: What has yet to come.
  returned: success
  type: int
fetched_bytes:
  description: What has come in this run.
  returned: success
  type: int
findings:
  description: >-
    What was found, such as V(MODEL_FILE_DAMAGED), V(MODEL_REVISION_KEPT), V(MODEL_REVISION_MOVES), V(MODEL_ACCESS_DENIED),
    V(MODEL_STORE_FULL), V(HUB_UNREACHABLE).
  returned: always
  type: list
  elements: dict
"""

import math
import time
import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.findings import Finding, finding
from ..module_utils.slipway.model import fetch, keep, store
from ..module_utils.slipway.model.hub import COMMIT, PUBLIC, REPOSITORY, Hub
from ..module_utils.slipway.python.source import Source

ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "required": True},
    "repository": {"type": "str", "required": True},
    "revision": {"type": "str", "default": "main"},
    "folder": {"type": "path"},
    "beside": {"type": "bool", "default": False},
    "include": {"type": "list", "elements": "str", "default": []},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "verify": {"type": "str", "choices": ["quick", "full"], "default": "quick"},
    "endpoint": {"type": "str", "default": PUBLIC},
    "token": {"type": "str", "default": "", "no_log": True},
    "python": {"type": "path"},
    "parallel": {"type": "int", "default": fetch.PARALLEL},
    "slice_seconds": {"type": "int", "default": 0},
    "timeout_seconds": {"type": "int", "default": 30},
    "proxy": {"type": "str", "default": ""},
    "proxy_login": {"type": "str", "default": "", "no_log": True},
    "no_proxy": {"type": "list", "elements": "str", "default": []},
    "ca_bundle": {"type": "str", "default": ""},
    "ca_content": {"type": "str", "default": ""},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Keep the folder whole. Raises ``SlipwayError``."""
    deadline = time.monotonic() + params["slice_seconds"] if params["slice_seconds"] else math.inf
    place = store.Place(Path(params["path"]))
    try:
        _check(params)
        source = _source(params)
        full = params["verify"] == "full"
        if check_mode:
            # What is in no record is believed by its size, since hashing it may take longer than fetching it.
            survey = keep.look(place, source, "all" if full else "known" if place.record.exists() else "size")
            keep.foresee(place, source, survey)
            return _result(place, source, survey)
        # Without a record all of it is hashed, which is done once, below.
        if place.record.exists() and not full:
            survey = keep.look(place, source)
            if survey.whole and survey.record == survey.recorded(source.wanted):
                return _result(place, source, survey)
        with keep.alone(place):
            survey = keep.look(place, source, "all" if full else "known")
            began = _result(place, source, survey)
            keep.foresee(place, source, survey)
            finished = keep.complete(place, source, survey, params["python"] or "", params["parallel"], deadline)
            if finished:
                findings = [*keep.finish(place, source, survey), *_told(place, source, survey)]
                began["findings"] = [found.as_dict() for found in findings]
    except SlipwayError as error:
        remedy = error.findings[0].remedy if error.findings else "Correct that, and run again"
        raise cannot("fetch", f"model '{params['repository']}'", here(), str(error), remedy, error.findings) from None
    except OSError as error:
        cause = f"{error.filename or place.folder}: {error.strerror or error}"
        raise cannot("fetch", f"model '{params['repository']}'", here(), cause, "Mend that, and run again") from None
    left = fetch.left_bytes(place, survey.todo)
    return {**began, "finished": finished, "left_bytes": left, "fetched_bytes": began["left_bytes"] - left}


def _check(params: dict[str, t.Any]) -> None:
    if not params["folder"] and not REPOSITORY.fullmatch(params["repository"]):
        raise SlipwayError(f"'{params['repository']}' is no repository, which has the form owner/name")
    if not 1 <= params["parallel"] <= 64:
        raise SlipwayError(f"parallel is {params['parallel']}, and 1 to 64 files can be fetched at a time")


def _source(params: dict[str, t.Any]) -> keep.Source:
    lists = tuple(params["include"]), tuple(params["exclude"])
    kind = "folder" if params["folder"] else "hub"
    wanted = store.Wanted(kind, params["repository"], params["revision"], *lists)
    if params["folder"]:
        return keep.Source(wanted, folder=Path(params["folder"]), beside=params["beside"])
    way = Source(
        proxy=params["proxy"],
        proxy_login=params["proxy_login"],
        no_proxy=tuple(params["no_proxy"]),
        ca_bundle=params["ca_bundle"],
    )
    hub = Hub(
        params["endpoint"], params["repository"], params["token"], way, params["ca_content"], params["timeout_seconds"]
    )
    return keep.Source(wanted, hub=hub)


def _told(place: store.Place, source: keep.Source, survey: keep.Survey) -> list[Finding]:
    """What is worth a word of a folder that is whole."""
    findings = [*keep.strangers(survey), *keep.kept(place, survey.listing.commit)]
    if source.hub is not None and not COMMIT.fullmatch(source.wanted.revision):
        cause = f"'{source.wanted.revision}' came to {survey.listing.commit}"
        findings.append(finding("MODEL_REVISION_MOVES", source.wanted.repository, cause))
    return findings


def _result(place: store.Place, source: keep.Source, survey: keep.Survey) -> dict[str, t.Any]:
    files = [{"path": one.path, "size_bytes": one.size, "fault": survey.faults[one.path]} for one in survey.todo]
    before = "".join(f"{path}: {words}\n" for path, words in sorted(survey.faults.items()))
    header = {"before_header": str(place.folder), "after_header": str(place.folder)}
    return {
        "changed": not survey.whole,
        "path": str(place.folder),
        "commit": survey.listing.commit,
        "finished": survey.whole and survey.record is not None and survey.record.wanted == source.wanted,
        "files": files,
        "total_bytes": survey.listing.size_bytes,
        "left_bytes": fetch.left_bytes(place, survey.todo),
        "fetched_bytes": 0,
        "findings": [one.as_dict() for one in (_told(place, source, survey) if survey.whole else [])],
        "diff": [{**header, "before": before, "after": ""}],
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
