# SPDX-License-Identifier: GPL-3.0-or-later
"""Which paths a patch may name: below site-packages, and nothing that installers keep of their own. Pure."""

from __future__ import annotations


def fault(path: str) -> str:
    """Why a path may not be patched, as the rest of a sentence that begins with it; empty where it may."""
    parts = path.split("/")
    if not path or "\0" in path:
        return "is no path"
    if path.startswith("/"):
        return "is absolute, and a patch stays below site-packages"
    if ".." in parts:
        return "climbs out of site-packages"
    if any(part in ("", ".") for part in parts):
        return "is not written plainly (an empty part, or a dot)"
    if parts[0].endswith((".dist-info", ".egg-info")):
        return "belongs to what installers keep of their own"
    if path.endswith((".pyc", ".pth")) or "__pycache__" in parts:
        return "is bytecode or a path file, which no patch changes"
    return ""
