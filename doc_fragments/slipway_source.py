# SPDX-License-Identifier: GPL-3.0-or-later
"""Where packages come from and by which way: options of every module that fetches them (python/source.py)."""

from __future__ import annotations


class ModuleDocFragment:
    """For ``extends_documentation_fragment``."""

    DOCUMENTATION = r"""
options:
  index:
    description: Address of the package index, without a login. Not given, it is what C(uv) has by default or by the machine's settings.
    type: str
    default: ""
  index_login:
    description: C(user:password) for the index, percent-encoded as in an address.
    type: str
    default: ""
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
"""

    CA_BUNDLE = r"""
options:
  ca_bundle:
    description: File on the target with the CAs to trust, in the place of the system's.
    type: str
    default: ""
"""
