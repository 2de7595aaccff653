# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a package index for what a lock names, before anything is built: does it answer, and has it the files. Reads only.

The index's pages are those of the simple API (packaging.python.org, "Simple repository API"), as HTML or as JSON.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import ipaddress
import re
import socket
import ssl
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

from ..findings import Finding, finding
from .lock import Requirement
from .source import Source, with_login

MOST_BYTES = 64 * 2**20
ASKED_AT_ONCE = 8
# Of an index that has answered: one request of hundreds that is lost on the way is no reason to refuse a deploy.
PAUSES_SECONDS = (1.0, 4.0)
NO_ROUTE = (errno.ENETUNREACH, errno.EHOSTUNREACH)


def look(source: Source, requirements: list[Requirement], ca_content: str, timeout_seconds: int) -> list[Finding]:
    """A finding for what keeps the index from answering, else one for each package that it does not have."""
    if not re.match("https?://", source.index):
        cause = "its address does not begin with http:// or https://"
        return [finding("INDEX_UNREACHABLE", source.index or "package index", cause)]
    reach = opener(source, ca_content)
    first, rest = requirements[0], requirements[1:]
    found = _ask(reach, source, first, timeout_seconds)
    if found and found.id != "PACKAGE_UNAVAILABLE":
        return [found]  # the others would say the same
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        answers = list(pool.map(lambda one: _ask_again(reach, source, one, timeout_seconds), rest))
    return [one for one in [found, *answers] if one]


def opener(source: Source, ca_content: str, *handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """What opens addresses by the source's proxy, trusting the CAs given as text, or the machine's own.

    ``handlers`` come in the place of those of Python that they derive from.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if ca_content else ssl.create_default_context()
    if ca_content:
        context.load_verify_locations(cadata=ca_content)
    # What OpenSSL calls strict refuses CAs that uv takes.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    proxies = None  # the machine's own, from its environment
    if source.proxy:
        host = urllib.parse.urlsplit(source.index).hostname or ""
        address = with_login(source.proxy, source.proxy_login)
        proxies = {} if bypassed(host, source.no_proxy) else {"http": address, "https": address}
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context), *handlers
    )


def ca_content(source: Source) -> str:
    """The text of the source's CA bundle on this machine; empty where it has none. Raises ``OSError``."""
    return Path(source.ca_bundle).read_text(encoding="utf-8") if source.ca_bundle else ""


def request(address: str, login: str, accept: str = "*/*") -> urllib.request.Request:
    """A request for an address of HTTP or HTTPS, with the ``user:password`` of the server. Raises ``ValueError`` for another."""
    if not re.match("https?://", address):
        raise ValueError("its address does not begin with http:// or https://")
    asking = urllib.request.Request(address, headers={"Accept": accept, "User-Agent": "slipway"})  # noqa: S310
    if login:
        encoded = base64.b64encode(urllib.parse.unquote(login).encode()).decode()
        # Unredirected, so that it goes to nobody else.
        asking.add_unredirected_header("Authorization", f"Basic {encoded}")
    return asking


def bypassed(host: str, no_proxy: t.Iterable[str]) -> bool:
    """Whether a host is reached without the proxy: it is named, or below a domain or in a network that is named."""
    no_proxy = list(no_proxy)
    with contextlib.suppress(ValueError):  # a host with a name is in no network
        address = ipaddress.ip_address(host.strip("[]"))
        if any(address in network for network in map(_network, no_proxy) if network):
            return True
    names = [name.lower().lstrip("*").lstrip(".") for name in no_proxy]
    return any(name and (host.lower() == name or host.lower().endswith(f".{name}")) for name in names)


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(name, strict=False) if "/" in name else None
    except ValueError:
        return None


def _ask_again(
    reach: urllib.request.OpenerDirector, source: Source, requirement: Requirement, timeout_seconds: int
) -> Finding | None:
    found = _ask(reach, source, requirement, timeout_seconds)
    for pause in PAUSES_SECONDS:
        if found is None or found.id == "PACKAGE_UNAVAILABLE":
            break
        time.sleep(pause)
        found = _ask(reach, source, requirement, timeout_seconds)
    return found


def _ask(
    reach: urllib.request.OpenerDirector, source: Source, requirement: Requirement, timeout_seconds: int
) -> Finding | None:
    address = f"{source.index.rstrip('/')}/{requirement.name}/"
    try:
        asking = request(address, source.index_login, "application/vnd.pypi.simple.v1+json, text/html;q=0.5")
        with reach.open(asking, timeout=timeout_seconds) as answer:
            page = answer.read(MOST_BYTES).decode("utf-8", "replace")
    except (OSError, HTTPException, ValueError) as error:
        fault, cause = explain(error, proxied=bool(source.proxy))
        subject = requirement.name if fault == "PACKAGE_UNAVAILABLE" else source.index
        return finding(fault, subject, f"{cause}, at {address}")
    digests = [value.split(":", 1)[1] for value in requirement.hashes]
    # A plain listing of files tells no hashes, so nothing follows from one.
    if re.search(r"sha(256|384|512)", page) and not any(digest in page for digest in digests):
        cause = f"none of its files is one that the lock means by version {requirement.version}, at {address}"
        return finding("PACKAGE_UNAVAILABLE", requirement.name, cause)
    return None


def explain(error: Exception, proxied: bool) -> tuple[str, str]:
    """The finding that a failed request comes to, and its cause in words."""
    if isinstance(error, HTTPError):
        return _explain_status(error.code, error.reason)
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return "CA_UNTRUSTED", f"its certificate is not trusted ({reason.verify_message})"
    tunnel = re.search(r"Tunnel connection failed: (\d+)", str(reason))
    if tunnel:
        return _explain_proxy(int(tunnel[1]))
    if isinstance(reason, OSError) and reason.errno in NO_ROUTE:
        return "NETWORK_UNREACHABLE", "no route leads there"
    if isinstance(reason, socket.gaierror):
        if reason.errno == socket.EAI_AGAIN:
            return "NETWORK_UNREACHABLE", "no name server answers"
        cause = "nobody knows its name"
    elif isinstance(reason, (socket.timeout, TimeoutError)):
        cause = "it did not answer in time"
    elif isinstance(reason, ConnectionRefusedError):
        cause = "connection refused"
    else:
        cause = str(reason) or type(reason).__name__
    return ("PROXY_REFUSED", f"the proxy does not answer: {cause}") if proxied else ("INDEX_UNREACHABLE", cause)


def _explain_status(code: int, reason: str) -> tuple[str, str]:
    if code == 407:
        return _explain_proxy(code)
    if code in (404, 410):
        return "PACKAGE_UNAVAILABLE", f"the index does not have it ({code})"
    if code in (401, 403):
        return (
            "INDEX_UNREACHABLE",
            f"it refuses with {code} {reason}: it wants another login, or none of this machine's",
        )
    return "INDEX_UNREACHABLE", f"it answers {code} {reason}"


def _explain_proxy(code: int) -> tuple[str, str]:
    if code == 407:
        return "PROXY_REFUSED", "the proxy asks for a login (407)"
    return "PROXY_REFUSED", f"the proxy does not let the connection through ({code})"
