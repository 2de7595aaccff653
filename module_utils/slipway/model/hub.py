# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a Hugging Face hub, or a mirror of one, for the files of a revision, and whether they may be had. Fetches none.

It is asked with the standard library alone, so that what would fail is known before anything is installed. Addresses, headers and error
codes are those that huggingface_hub uses (``HfApi.repo_info`` with ``files_metadata``, ``hf_hub_url``, ``hf_raise_for_status``).
"""

from __future__ import annotations

import json
import re
import typing as t
import urllib.parse
import urllib.request
from dataclasses import dataclass, field, replace
from http.client import HTTPException

from ..errors import SlipwayError
from ..findings import Finding, finding
from ..python import index
from ..python.source import Source
from .published import File, Listing

PUBLIC = "https://huggingface.co"
COMMIT = re.compile("[0-9a-f]{40}")
# Owner and name; the hub has no others for models that somebody published.
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
MOST_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Hub:
    """A repository on a hub. ``token`` is shown to nobody but the hub."""

    endpoint: str
    repository: str
    token: str = field(default="", repr=False)
    source: Source = field(default_factory=Source)
    # The CAs as text, in the place of the source's file.
    ca_content: str = ""
    timeout_seconds: int = 30

    def list(self, revision: str) -> Listing:
        """The files of a branch, tag or commit. Raises ``SlipwayError`` with a finding; its message is the cause."""
        quoted = urllib.parse.quote(revision, safe="")
        content = self._ask("GET", f"api/models/{self.repository}/revision/{quoted}?blobs=true", revision)
        try:
            answer = json.loads(content)
            return Listing(answer["sha"], tuple(_file(entry) for entry in answer["siblings"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            cause = "what it answers is no list of files as a hub gives it"
            raise self._fault("HUB_UNREACHABLE", cause) from None

    def may_fetch(self, commit: str, path: str) -> None:
        """See whether a file may be had by whoever has the token. Raises ``SlipwayError`` as ``list``."""
        self._ask("HEAD", f"{self.repository}/resolve/{commit}/{urllib.parse.quote(path)}", commit)

    def _ask(self, method: str, path: str, revision: str) -> str:
        address = f"{self.endpoint.rstrip('/')}/{path}"
        try:
            asking = index.request(address, "", "application/json")
            asking.method = method
            if self.token:
                # Unredirected: a file's address leads on to another server, which gets none.
                asking.add_unredirected_header("Authorization", f"Bearer {self.token}")
            source = replace(self.source, index=self.endpoint)
            reach = index.opener(source, self.ca_content or index.ca_content(source), _SameHost())
            with reach.open(asking, timeout=self.timeout_seconds) as answer:
                return str(answer.read(MOST_BYTES).decode("utf-8", "replace"))
        except index.HTTPError as error:
            if 300 <= error.code < 400 and method == "HEAD":
                return ""  # it leads to another server, which has the file
            if 300 <= error.code < 400:
                cause = f"it leads on to {error.headers.get('Location', 'elsewhere')}, and the token is meant for one server"
                raise self._fault("HUB_UNREACHABLE", cause) from None
            raise self._refused(error, revision) from None
        except (OSError, HTTPException, ValueError) as error:
            fault, cause = index.explain(error, proxied=bool(self.source.proxy))
            raise self._fault("HUB_UNREACHABLE" if fault == "INDEX_UNREACHABLE" else fault, cause) from None

    def _refused(self, error: index.HTTPError, revision: str) -> SlipwayError:
        """Why the hub refuses, by its own code where it gives one and by the status where it does not."""
        code, words = error.headers.get("X-Error-Code", ""), error.headers.get("X-Error-Message", "")
        if error.code == 407:
            return self._fault("PROXY_REFUSED", index.explain(error, proxied=True)[1])
        if code == "RevisionNotFound":
            return self._fault("MODEL_REVISION_UNKNOWN", f"it has no revision '{revision}'")
        if code == "GatedRepo" or (error.code == 403 and not code):
            which = "the account of the token has no access to it" if self.token else "no token is given"
            return self._fault("MODEL_ACCESS_DENIED", f"it is gated, and {which} ({error.code})")
        if error.code == 401 and self.token and "invalid" in words.lower():
            return self._fault("MODEL_ACCESS_DENIED", "the hub does not know the token (401)")
        if code == "EntryNotFound":
            return self._fault("MODEL_MIRROR_INCOMPLETE", f"it names a file and does not have it ({error.code})")
        if error.code in (401, 404):
            # To whom has no token, the hub says 401 of what is not there just as of what is private.
            which = (
                "is not there, or the token's account may not see it" if self.token else "is not there, or is private"
            )
            return self._fault("MODEL_REPOSITORY_UNKNOWN", f"it {which} ({error.code})")
        return self._fault("HUB_UNREACHABLE", f"it answers {error.code} {error.reason}")

    def _fault(self, fault: str, cause: str) -> SlipwayError:
        about = self.endpoint if fault in ("HUB_UNREACHABLE", "CA_UNTRUSTED", "PROXY_REFUSED") else self.repository
        found: Finding = finding(fault, about, cause)
        return SlipwayError(cause, [found])


class _SameHost(urllib.request.HTTPRedirectHandler):
    """A repository that was renamed is followed with the token; a file's way to another server is not followed at all."""

    def redirect_request(
        self, req: urllib.request.Request, fp: t.Any, code: int, msg: str, headers: t.Any, newurl: str
    ) -> urllib.request.Request | None:
        if urllib.parse.urlsplit(newurl)[:2] != urllib.parse.urlsplit(req.full_url)[:2]:
            return None
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            following.method = req.get_method()
            following.unredirected_hdrs.update(req.unredirected_hdrs)
        return following


def _file(entry: dict[str, t.Any]) -> File:
    """One of ``siblings``. What is in LFS has its sha256, everything else git's own hash."""
    large = entry.get("lfs") or {}
    if large.get("sha256"):
        return File(entry["rfilename"], int(large["size"]), f"sha256:{large['sha256']}")
    return File(entry["rfilename"], int(entry["size"]), f"blob:{entry['blobId']}" if entry.get("blobId") else "")
