# SPDX-License-Identifier: GPL-3.0-or-later
"""How the API of Proxmox VE is reached: options of every module that calls it (connect.API_OPTIONS)."""

from __future__ import annotations


class ModuleDocFragment:
    """For ``extends_documentation_fragment``."""

    DOCUMENTATION = r"""
options:
  api_backend:
    description: How to reach the API, over HTTPS with token or password, or as root over SSH with C(pvesh).
    type: str
    choices: [https, ssh_paramiko]
    default: https
  api_host:
    description: Host name or address of a node. Falls back to E(PROXMOX_HOST).
    type: str
    required: true
  api_port:
    description: Port for O(api_backend=https). Falls back to E(PROXMOX_PORT).
    type: int
    default: 8006
  api_user:
    description: User with realm, such as V(deploy@pve), for O(api_backend=https) and needed there. Not looked at by
      O(api_backend=ssh_paramiko), which logs in as root and is C(root@pam). Falls back to E(PROXMOX_USER).
    type: str
  api_password:
    description: Password for O(api_backend=https), where there is no token. Falls back to E(PROXMOX_PASSWORD).
    type: str
  api_token_id:
    description: Name of the API token, with or without its user, for O(api_backend=https). Falls back to
      E(PROXMOX_TOKEN_ID).
    type: str
  api_token_secret:
    description: Secret of the API token. Falls back to E(PROXMOX_TOKEN_SECRET).
    type: str
  validate_certs:
    description: Whether the TLS certificate is verified by O(api_backend=https). Falls back to E(PROXMOX_VALIDATE_CERTS).
    type: bool
    default: true
  ca_path:
    description: File with the CA of the cluster. Falls back to E(PROXMOX_CA_PATH).
    type: path
  api_ssh_port:
    description: Port for O(api_backend=ssh_paramiko). Without it the one that O(api_ssh_config_file) has, or V(22).
    type: int
  api_ssh_private_key_file:
    description: The one SSH key to use. Without it those that O(api_ssh_config_file) names, or an agent's and the user's
      own, are tried.
    type: path
  api_ssh_known_hosts_file:
    description: The file with the host keys to trust, in place of the user's own. A key that is not in it is refused; that
      of a jump host may be in either.
    type: path
  api_ssh_config_file:
    description:
      - The SSH configuration to follow in place of the user's own (C(~/.ssh/config)). Of the node it gives C(HostName),
        C(Port), C(IdentityFile), C(ProxyJump) and C(ProxyCommand), of a jump host also C(User).
      - What is given as an option wins.
    type: path
  api_timeout_seconds:
    description: How long one answer of the API may take, which says nothing of how long a task does.
    type: int
    default: 30
"""
