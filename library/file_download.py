#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file from a web server, kept in a folder under its name once its sha256 is right."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: file_download
short_description: A file from a web server, kept in a folder once its sha256 is right
version_added: "0.2.0"
description:
  - Fetches a file into a folder, by the proxy and the CAs that are given. It has its name there only when it is whole and its sha256 is
    the declared one. A file that is there is not fetched again; several runs at a time fetch it once.
  - A download that breaks off is gone on with by the next run, where the server can.
  - In check mode it asks the server whether it has the file, and fetches nothing.
author:
  - Slipway contributors
options:
  url:
    description: Address of the file, without a login. It begins with C(http://) or C(https://).
    type: str
    required: true
  login:
    description: Login of the server, C(user:password), percent-encoded as in an address.
    type: str
    default: ""
  sha256:
    description: The file's sha256, in hex.
    type: str
    required: true
  path:
    description: The folder that keeps it. It is made where it is missing.
    type: path
    required: true
  proxy:
    description: The proxy for HTTP and HTTPS. Empty, the machine's own environment says.
    type: str
    default: ""
  proxy_login:
    description: Its login, C(user:password).
    type: str
    default: ""
  no_proxy:
    description: Hosts and domains that are reached without the proxy.
    type: list
    elements: str
    default: []
  ca_bundle:
    description: A file of CAs on this machine that are trusted in the place of its own.
    type: str
    default: ""
  timeout_seconds:
    description: How long the server may say nothing.
    type: int
    default: 60
attributes:
  check_mode:
    description: Can run in check mode and tell what it would do without it.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: Have the driver's installer on the controller
  file_download:
    url: https://mirror.example/drivers/NVIDIA-Linux-x86_64-580.105.08.run
    sha256: d9c6e8188672f3eb74dd04cfa69dd58479fa1d0162c8c28c8d17625763293475
    path: ~/.cache/slipway/drivers
  delegate_to: localhost
"""

RETURN = r"""
path:
  description: Where the file is (in check mode, where it would be).
  returned: success
  type: str
findings:
  description: Always empty; what kept the file from being fetched is the message of the failure.
  returned: always
  type: list
  elements: dict
"""

import re
import typing as t
import urllib.parse
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway import download
from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.python import wheel
from ..module_utils.slipway.python.source import Source

ARGUMENT_SPEC: dict[str, t.Any] = {
    "url": {"type": "str", "required": True},
    "login": {"type": "str", "default": "", "no_log": True},
    "sha256": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
    "proxy": {"type": "str", "default": ""},
    "proxy_login": {"type": "str", "default": "", "no_log": True},
    "no_proxy": {"type": "list", "elements": "str", "default": []},
    "ca_bundle": {"type": "str", "default": ""},
    "timeout_seconds": {"type": "int", "default": 60},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Have the file there, or in check mode see whether it could be. Raises SlipwayError."""
    url, sha256 = params["url"], params["sha256"].lower()
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise cannot("read", "option 'sha256'", here(), f"'{sha256}' is no sha256", "Give 64 hexadecimal digits")
    name = urllib.parse.unquote(Path(urllib.parse.urlsplit(url).path).name)
    if not name or "/" in name or name.startswith("."):
        raise cannot("fetch", f"file '{url}'", here(), "its address names no file", "Correct its address")
    source = Source(
        index=url,
        index_login=params["login"],
        proxy=params["proxy"],
        proxy_login=params["proxy_login"],
        no_proxy=tuple(params["no_proxy"]),
        ca_bundle=params["ca_bundle"],
    )
    target = Path(params["path"]) / name
    try:
        there = wheel.is_there(target, sha256)
    except OSError as error:
        raise cannot("read", f"file '{target}'", here(), error.strerror or str(error), "Mend that") from error
    changed = not there
    if not there and check_mode:
        download.ask(url, source, params["timeout_seconds"])
    elif not there:
        changed = download.fetch(url, sha256, target, source, params["timeout_seconds"])
    return {"changed": changed, "path": str(target), "findings": []}


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
