# SPDX-License-Identifier: GPL-3.0-or-later
"""Connecting to the Proxmox API, over HTTPS or as root over SSH: the options for it, and the choice of the way."""

from __future__ import annotations

import importlib.util
import typing as t

from ansible.module_utils.basic import env_fallback

from ..errors import cannot
from .client import Client, doing

# The options that every module of the API has. The names and environment variables are the ecosystem's.
API_OPTIONS: dict[str, dict[str, t.Any]] = {
    "api_backend": {"type": "str", "choices": ["https", "ssh_paramiko"], "default": "https"},
    "api_host": {"type": "str", "required": True, "fallback": (env_fallback, ["PROXMOX_HOST"])},
    "api_port": {"type": "int", "default": 8006, "fallback": (env_fallback, ["PROXMOX_PORT"])},
    "api_user": {"type": "str", "fallback": (env_fallback, ["PROXMOX_USER"])},
    "api_password": {"type": "str", "no_log": True, "fallback": (env_fallback, ["PROXMOX_PASSWORD"])},
    # The name of a token is no secret, and hiding it would hide the same word everywhere in the output.
    "api_token_id": {"type": "str", "no_log": False, "fallback": (env_fallback, ["PROXMOX_TOKEN_ID"])},
    "api_token_secret": {"type": "str", "no_log": True, "fallback": (env_fallback, ["PROXMOX_TOKEN_SECRET"])},
    "validate_certs": {"type": "bool", "default": True, "fallback": (env_fallback, ["PROXMOX_VALIDATE_CERTS"])},
    "ca_path": {"type": "path", "fallback": (env_fallback, ["PROXMOX_CA_PATH"])},
    "api_ssh_port": {"type": "int"},
    "api_ssh_private_key_file": {"type": "path", "no_log": False},
    "api_ssh_known_hosts_file": {"type": "path"},
    "api_ssh_config_file": {"type": "path"},
    "api_timeout_seconds": {"type": "int", "default": 30},
}


def connect(params: t.Mapping[str, t.Any]) -> Client:
    """Connect as the ``api_*`` options say. Raises SlipwayError where that cannot be done."""
    backend = params["api_backend"]
    host = params["api_host"]
    if "/" in host:
        raise cannot(
            "connect to",
            "the Proxmox API",
            host,
            "'api_host' is an address of the web, and a host's name or IP address is needed",
            "Leave 'https://' and what follows the host out; 'api_port' has the port",
        )
    needed = {"https": "requests", "ssh_paramiko": "paramiko"}[backend]
    # proxmoxer ends the process when one of these is missing, so that has to be found before.
    for package in ("proxmoxer", needed):
        if importlib.util.find_spec(package) is None:
            raise cannot(
                "connect to",
                "the Proxmox API",
                host,
                f"the Python package '{package}' is missing in the interpreter that runs the module",
                "Let the module run with the project's environment: ansible_python_interpreter: "
                '"{{ ansible_playbook_python }}"',
            )
    # Imported here, because each needs its package and only one of them is used. Written out, because Ansible sends a
    # module only the files whose import it can read.
    with doing("connect to", "the Proxmox API", host):
        if backend == "https":
            from . import https

            return https.connect(params)
        from . import ssh

        return ssh.connect(params)
