# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user says of the node that the contract is run against: a YAML file, and secrets from the environment."""

from __future__ import annotations

import difflib
import re
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

import yaml

# By their names in the modules; these stand in the environment alone, so that the file can be shown to anybody.
SECRETS = {"api_password": "PROXMOX_PASSWORD", "api_token_secret": "PROXMOX_TOKEN_SECRET"}
API_KEYS = (
    "api_host",
    "api_port",
    "api_user",
    "api_token_id",
    "validate_certs",
    "ca_path",
    "api_ssh_port",
    "api_ssh_private_key_file",
    "api_ssh_known_hosts_file",
    "api_ssh_config_file",
    "api_timeout_seconds",
)
PATH_KEYS = ("ca_path", "api_ssh_private_key_file", "api_ssh_known_hosts_file", "api_ssh_config_file")
OWN_KEYS = ("node", "ways", "ostemplate", "storage", "bridge", "ip", "gw", "vmids", "timeout_seconds")
WAYS = ("https", "ssh")
# What pytest knows a run against a user's node by, and what the tags of the guests that it makes begin with.
PLUGIN = "pve-contract"
MARK = "slipway-contract-"
# A template, its clone and one more.
FEWEST_VMIDS = 3
FIRST_VMID = 100


class Unusable(Exception):
    """The settings, or the node, are not such that the contract can be run; a sentence with the remedy."""


@dataclass(frozen=True)
class Settings:
    """The node, the ways to its API (each the ``api_*`` options of the modules), and what may be used there."""

    node: str
    ways: dict[str, dict[str, t.Any]] = field(repr=False)
    ostemplate: str | None = None
    storage: str | None = None
    bridge: str | None = None
    ip: str | None = None
    gw: str | None = None
    vmids: range | None = None
    timeout_seconds: int = 300
    # Where the report is written to: beside the file.
    folder: Path = Path()

    @property
    def secrets(self) -> set[str]:
        """What must not be shown to anybody."""
        return {options[key] for options in self.ways.values() for key in SECRETS if options.get(key)}

    @property
    def private(self) -> dict[str, str]:
        """What a report need not tell, and what it says in its place."""
        found = {self.node: "node"}
        for options in self.ways.values():
            found |= {str(options[key]): key for key in ("api_host", "api_user", *PATH_KEYS) if options.get(key)}
        return found | dict.fromkeys(self.secrets, "secret")


def load(path: Path, environment: t.Mapping[str, str]) -> Settings:
    """Read the file, and the secrets from the environment. Raises Unusable."""
    try:
        given = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise Unusable(f"Cannot read '{path}': {error}. Name a YAML file as in docs/operations.md.") from error
    if not isinstance(given, dict):
        raise Unusable(f"Cannot use '{path}': it has no keys. Write them as in docs/operations.md.")
    _refuse_keys(path, given)
    api = {key: given[key] for key in API_KEYS if given.get(key) is not None}
    for key in PATH_KEYS:
        if key in api:
            api[key] = str(path.parent / Path(str(api[key])).expanduser())
    own = {key: given[key] for key in OWN_KEYS if given.get(key) is not None and key not in ("ways", "vmids")}
    wanted = given.get("ways") or ("https" if "api_user" in api else "ssh")
    wanted = wanted if isinstance(wanted, list) else [wanted]
    return Settings(
        ways={way: _way(path, way, api, environment) for way in wanted},
        vmids=_vmids(path, given),
        folder=path.absolute().parent,
        **own,
    )


def _refuse_keys(path: Path, given: dict[str, t.Any]) -> None:
    for key in given:
        if key in SECRETS:
            raise Unusable(f"Cannot use '{path}': '{key}' is a secret. Export it as {SECRETS[key]} and take it out.")
        if key not in (*API_KEYS, *OWN_KEYS):
            near = difflib.get_close_matches(str(key), (*API_KEYS, *OWN_KEYS), 1)
            raise Unusable(
                f"Cannot use '{path}': there is no key '{key}'. {f'Write {near[0]}' if near else 'Drop it'}."
            )
    for key in ("api_host", "node"):
        if not given.get(key):
            raise Unusable(f"Cannot use '{path}': '{key}' is missing. Add it.")


def _way(path: Path, way: str, api: dict[str, t.Any], environment: t.Mapping[str, str]) -> dict[str, t.Any]:
    if way not in WAYS:
        raise Unusable(f"Cannot use '{path}': there is no way '{way}'. Choose of {', '.join(WAYS)}.")
    if way == "ssh":
        return {**api, "api_backend": "ssh_paramiko"}
    key = "api_token_secret" if "api_token_id" in api else "api_password"
    secret = environment.get(SECRETS[key])
    if "api_user" not in api or not secret:
        raise Unusable(
            f"Cannot use '{path}': over https it needs 'api_user' and, in the environment, {SECRETS[key]}. "
            f"Add them, or set 'ways: [ssh]'."
        )
    return {**api, key: secret, "api_backend": "https"}


def _vmids(path: Path, given: dict[str, t.Any]) -> range | None:
    if given.get("vmids") is None:
        return None
    found = re.fullmatch(r"(\d+)-(\d+)", str(given["vmids"]))
    vmids = range(int(found[1]), int(found[2]) + 1) if found else range(0)
    if len(vmids) < FEWEST_VMIDS or vmids[0] < FIRST_VMID:
        raise Unusable(
            f"Cannot use '{path}': 'vmids' is no range of {FEWEST_VMIDS} or more from {FIRST_VMID} on. "
            "Write two numbers, as in 9000-9009."
        )
    for key in ("ostemplate", "storage"):
        if not given.get(key):
            raise Unusable(
                f"Cannot use '{path}': guests are to be made on {given['vmids']}, and '{key}' is missing. Add it."
            )
    return vmids
