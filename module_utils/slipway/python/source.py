# SPDX-License-Identifier: GPL-3.0-or-later
"""Where packages come from and by which way: an index or a folder of wheels, a proxy, a CA. Pure.

Passwords are apart from addresses, so that an address can be shown. They reach uv in its environment, which only root can
read, and never on a command line.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

# Debian's and Ubuntu's own list of CAs.
SYSTEM_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

# The options of every module that fetches packages.
SPEC: dict[str, t.Any] = {
    "index": {"type": "str", "default": ""},
    "index_login": {"type": "str", "default": "", "no_log": True},
    "proxy": {"type": "str", "default": ""},
    "proxy_login": {"type": "str", "default": "", "no_log": True},
    "no_proxy": {"type": "list", "elements": "str", "default": []},
    "ca_bundle": {"type": "str", "default": ""},
}
WHEELS_SPEC: dict[str, t.Any] = {"wheels": {"type": "str", "default": ""}}


@dataclass(frozen=True)
class Source:
    """Addresses without logins, logins as ``user:password`` (percent-encoded as in an address), paths of this machine."""

    index: str = ""
    index_login: str = ""
    proxy: str = ""
    proxy_login: str = ""
    no_proxy: tuple[str, ...] = ()
    ca_bundle: str = ""
    wheels: str = ""

    def uv_environment(self) -> dict[str, str]:
        """The variables by which uv is told. What is not given stays as the machine has it."""
        environment: dict[str, str] = {}
        if self.proxy:
            address = with_login(self.proxy, self.proxy_login)
            environment.update(dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), address))
        if self.no_proxy:
            environment.update({name: ",".join(self.no_proxy) for name in ("NO_PROXY", "no_proxy")})
        if self.index:
            environment["UV_DEFAULT_INDEX"] = with_login(self.index, self.index_login)
        if self.ca_bundle:
            environment["SSL_CERT_FILE"] = self.ca_bundle
        elif Path(SYSTEM_BUNDLE).exists():
            environment["UV_SYSTEM_CERTS"] = "true"  # else uv trusts a list of its own, without what was added here
        if self.wheels:
            environment.update({"UV_OFFLINE": "true", "UV_FIND_LINKS": self.wheels})
        return environment

    def uv_options(self) -> list[str]:
        """Options of ``uv pip`` for what has no variable in uv 0.13."""
        # Offline alone is not enough: what uv's cache remembers of an index would be preferred to the folder.
        return ["--no-index"] if self.wheels else []


def from_params(params: dict[str, t.Any]) -> Source:
    """The source that a module's options describe."""
    given = {name: params[name] for name in (*SPEC, *WHEELS_SPEC) if params.get(name)}
    return Source(**{**given, "no_proxy": tuple(params.get("no_proxy") or ())})


def with_login(address: str, login: str) -> str:
    """``http://user:password@host`` of ``http://host``."""
    scheme, separator, rest = address.partition("://")
    return f"{scheme}://{login}@{rest}" if login and separator else address
