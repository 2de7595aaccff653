# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads files of a revision. Runs as a program of its own in an environment that has huggingface_hub and nothing of Slipway.

It comes as text on standard input, with the path of a request as its argument: JSON with ``endpoint repository commit parallel`` and
``files``, each ``path size part``. The token is in HF_TOKEN. It answers with a JSON object a line: ``done`` (a path), or ``failed`` (a path)
with ``error status code text``, after which it ends.

A part is gone on with from where it is. That is why huggingface_hub's ``http_get`` is called: ``hf_hub_download`` of release 2.4 throws away what
has come when it ends early (huggingface_hub pull request 4228).
"""

from __future__ import annotations

import importlib
import json
import os
import ssl
import sys
import typing as t
from concurrent.futures import ThreadPoolExecutor, as_completed

# What is held in memory of each file, and lost when this is killed. The library's own 10 MB would never arrive over a slow line.
CHUNK_BYTES = 256 * 1024


def main(path: str) -> int:
    """Fetch what the request names. Anything that goes wrong is said; the exit status is 1 then."""
    # What libraries print must not be mixed with the answers.
    channel = os.dup(1)
    os.dup2(2, 1)

    def say(**what: t.Any) -> None:
        os.write(channel, json.dumps(what).encode() + b"\n")

    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    hub, download = importlib.import_module("huggingface_hub"), importlib.import_module("huggingface_hub.file_download")
    _set_up(hub)
    headers = hub.utils.build_hf_headers(token=os.environ.get("HF_TOKEN") or False, library_name="slipway")
    headers["Accept-Encoding"] = "identity"  # a part of what is compressed is none of the file
    pool = ThreadPoolExecutor(request["parallel"])
    running = {pool.submit(_fetch, hub, download, headers, request, one): one for one in request["files"]}
    for future in as_completed(running):
        name = running[future]["path"]
        error = future.exception()
        if error is not None:
            response = getattr(error, "response", None)
            said = {"status": getattr(response, "status_code", 0), "code": ""}
            if response is not None:
                said["code"] = response.headers.get("X-Error-Code", "")
            say(failed=name, error=type(error).__name__, text=str(error).strip()[:500], **said)
            os._exit(1)  # the others would go on for as long as they take
        say(done=name)
    return 0


def _set_up(hub: t.Any) -> None:
    """As the request's side does it: what OpenSSL calls strict refuses CAs that are in use."""
    client = importlib.import_module("httpx2")
    context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or None)
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    hub.set_client_factory(lambda: client.Client(verify=context, follow_redirects=True, timeout=None))
    hub.constants.DOWNLOAD_CHUNK_SIZE = CHUNK_BYTES


def _fetch(
    hub: t.Any, download: t.Any, headers: dict[str, str], request: dict[str, t.Any], file: dict[str, t.Any]
) -> None:
    """Bring one part to its end."""
    url = hub.hf_hub_url(
        request["repository"], file["path"], revision=request["commit"], endpoint=request["endpoint"].rstrip("/")
    )
    with open(file["part"], "ab") as part:
        have = part.tell()
        if have < file["size"]:
            download.http_get(
                url,
                part,
                resume_size=have,
                headers=headers,
                expected_size=file["size"],
                displayed_filename=file["path"],
            )
        part.flush()
        os.fsync(part.fileno())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
