# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to the Proxmox API through proxmoxer, over HTTPS or as root over SSH, with one kind of error."""

from __future__ import annotations

import importlib.util
import typing as t
from contextlib import contextmanager
from dataclasses import dataclass

from ansible.module_utils.basic import env_fallback

from ..errors import cannot

if t.TYPE_CHECKING:
    from collections.abc import Iterator

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
    "api_ssh_port": {"type": "int", "default": 22},
    "api_ssh_private_key_file": {"type": "path", "no_log": False},
    "api_ssh_known_hosts_file": {"type": "path"},
    "api_timeout_seconds": {"type": "int", "default": 30},
}


class ApiError(Exception):
    """What Proxmox, or the way to it, answered instead of a result.

    ``status`` is the HTTP status, or None where there was no answer. ``cause`` and ``remedy`` are parts of the house's
    sentence; who calls knows the verb and the object.
    """

    def __init__(self, cause: str, remedy: str, status: int | None = None) -> None:
        super().__init__(f"{cause}. {remedy}.")
        self.cause = cause
        self.remedy = remedy
        self.status = status


@dataclass(frozen=True)
class Client:
    """A connection. ``identity`` is who Proxmox takes us for: ``user@realm`` or ``user@realm!token``."""

    resource: t.Any
    identity: str
    host: str
    explain: t.Callable[[Exception], ApiError]
    transport_errors: tuple[type[Exception], ...]

    def call(self, method: str, path: str, **arguments: t.Any) -> t.Any:
        """Make one API call and return its data. ``path`` has no leading slash. Raises ApiError, and nothing else.

        Arguments of None are left out. To unset a key is ``delete=<key>``, never None.
        """
        # Here and not above: who only wants the options, or an error, needs no proxmoxer.
        from proxmoxer.core import ResourceException

        try:
            return getattr(self.resource(path), method)(**arguments)
        except ResourceException as error:
            raise _from_answer(error, self.identity) from error
        except self.transport_errors as error:
            raise self.explain(error) from error


def connect(params: t.Mapping[str, t.Any]) -> Client:
    """Connect as the ``api_*`` options say. Raises SlipwayError where that cannot be done."""
    backend = params["api_backend"]
    host = params["api_host"]
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


@contextmanager
def doing(verb: str, subject: str, where: str) -> Iterator[None]:
    """Turn an ApiError that is raised in here into the house's sentence (SlipwayError) about this work."""
    try:
        yield
    except ApiError as error:
        raise cannot(verb, subject, where, error.cause, error.remedy) from error


def _from_answer(error: t.Any, identity: str) -> ApiError:
    """Turn proxmoxer's ResourceException into ApiError: the server's words on one line, the remedy by its status."""
    words = str(error.content or error.status_message or "no reason given")
    if isinstance(error.errors, dict) and set(error.errors) != {"errors"}:
        words += "".join(f"; {name}: {text}" for name, text in sorted(error.errors.items()))
    cause = f"Proxmox answered {error.status_code} {' '.join(words.split())}"
    remedies = {
        400: "Correct the option that it names",
        401: f"Check user, token and secret of '{identity}'",
        403: f"Give '{identity}' the privilege that it names, or use an identity that has it",
        595: "Check that the node is up: the API host could not reach it",
        596: "Check that the node is up: the API host could not reach it",
    }
    return ApiError(cause, remedies.get(error.status_code, "See the node's journal (pvedaemon)"), error.status_code)
