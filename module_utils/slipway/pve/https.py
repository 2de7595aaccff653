# SPDX-License-Identifier: GPL-3.0-or-later
"""The Proxmox API over HTTPS, with a token or a password."""

from __future__ import annotations

import os
import re
import ssl
import typing as t
from functools import partial

import requests
import urllib3
from proxmoxer import ProxmoxAPI
from proxmoxer.core import AuthenticationError

from .client import ApiError, Client, Fate, Patience, fate_of, give_up_unreached, persist

ERRORS = (AuthenticationError, requests.exceptions.RequestException)


def connect(params: t.Mapping[str, t.Any]) -> Client:
    """Connect with the token if one is given, else with the password. Raises ApiError."""
    user, password = params.get("api_user"), params.get("api_password")
    token, secret = params.get("api_token_id"), params.get("api_token_secret")
    if not user or not (password or (token and secret)):
        raise ApiError(
            "it needs 'api_user' and either 'api_token_id' with 'api_token_secret' or 'api_password'",
            "Give them, or set api_backend to ssh_paramiko to work as root over SSH",
        )
    if params["validate_certs"] and params.get("ca_path") and not os.path.exists(params["ca_path"]):
        raise ApiError(f"the file '{params['ca_path']}' of ca_path does not exist", "Correct ca_path")
    # In the ecosystem a token's id is written with and without its user.
    token_name = token.rpartition("!")[2] if token else None
    credentials = {"token_name": token_name, "token_value": secret} if token and secret else {"password": password}
    identity = f"{user}!{token_name}" if token and secret else user
    explain = partial(
        _explain, identity=identity, port=params["api_port"], timeout_seconds=params["api_timeout_seconds"]
    )

    def log_in() -> ProxmoxAPI:
        # With a token nothing is sent here; with a password a ticket is fetched, which may be done any number of times.
        try:
            return ProxmoxAPI(
                params["api_host"],
                port=params["api_port"],
                user=user,
                verify_ssl=(params.get("ca_path") or True) if params["validate_certs"] else False,
                timeout=params["api_timeout_seconds"],
                **credentials,
            )
        except ERRORS as error:
            raise explain(error) from error

    patience = Patience()
    resource = persist(log_in, give_up_unreached, patience)
    return Client(resource, identity, params["api_host"], explain, ERRORS, patience)


def _explain(error: Exception, identity: str, port: int, timeout_seconds: int) -> ApiError:
    """Say what went wrong on the way. SSLError, ProxyError and ConnectTimeout are ConnectionErrors too: they come first."""
    if isinstance(error, AuthenticationError):
        return _not_logged_in(error, identity)
    bottom = _bottom(error)
    reason = _words(bottom)
    # A connection that ends within TLS is a dropped one.
    if isinstance(error, requests.exceptions.SSLError) and not isinstance(bottom, ssl.SSLEOFError):
        return ApiError(
            f"its TLS certificate is not trusted ({reason})",
            "Set ca_path to the cluster's CA (/etc/pve/pve-root-ca.pem on a node), and use a host name or address that "
            "the certificate names",
        )
    if isinstance(error, requests.exceptions.ProxyError):
        return ApiError(f"the proxy does not let it through ({reason})", "Add the host to no_proxy")
    if isinstance(error, requests.exceptions.ReadTimeout):
        return ApiError(
            f"no answer came within {timeout_seconds} seconds; the node may still be at work",
            "Look at the node's task list, then run again, with a longer api_timeout_seconds if it is slow",
            fate=Fate.OPEN,
        )
    return ApiError(
        f"it cannot be reached on port {port} ({reason})",
        "Check address, port, firewall and the service pveproxy",
        fate=_fate(error),
    )


def _not_logged_in(error: Exception, identity: str) -> ApiError:
    """proxmoxer says the same of every answer to a login that is not 200, with its status at the end."""
    found = re.search(r"code: (\d{3})$", str(error))
    status = int(found.group(1)) if found else 401
    if status < 500:
        return ApiError(f"Proxmox refused the password of '{identity}'", "Check user, realm and password", 401)
    return ApiError(
        f"Proxmox answered {status} to the login of '{identity}'",
        "See the node's journal (pvedaemon, pveproxy)",
        status,
        fate_of(status),
    )


def _fate(error: Exception) -> Fate:
    """What an error of the connection leaves to hope for."""
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return Fate.UNREACHED
    # Also a body that ends too early is one.
    broken = (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)
    if not isinstance(error, broken):
        return Fate.FINAL
    layers = list(_layers(error))
    never = any(isinstance(layer, urllib3.exceptions.NewConnectionError) for layer in layers)
    return Fate.UNREACHED if never else Fate.OPEN


def _layers(error: BaseException) -> t.Iterator[BaseException]:
    """An error of requests, and what it wraps: that of urllib3, which wraps the system's."""
    yield error
    inner: t.Any = getattr(error, "reason", None)
    if not isinstance(inner, BaseException):
        inner = next((part for part in error.args if isinstance(part, BaseException)), error.__cause__)
    if inner is not None:
        yield from _layers(inner)


def _bottom(error: BaseException) -> BaseException:
    return list(_layers(error))[-1]


def _words(error: BaseException) -> str:
    # A refused certificate says why in words of its own; others have the system's.
    return str(getattr(error, "verify_message", None) or getattr(error, "strerror", None) or error).rstrip(". ")
