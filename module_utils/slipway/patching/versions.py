# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of two versions of a package comes later (packaging.python.org, "Version specifiers"). Pure."""

from __future__ import annotations

import re
import typing as t

VERSION = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_number>\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*)|-(?P<implicit_post>\d+))?"
    r"(?P<dev_word>[-_.]?dev[-_.]?(?P<dev>\d*))?(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
PHASES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def key(version: str) -> tuple[t.Any, ...]:
    """What versions are sorted by; a local part (``+cu128``) is left out. Raises ``ValueError`` for what is no version."""
    match = VERSION.fullmatch(version.strip().lower())
    if not match:
        raise ValueError(f"{version!r} is no version")
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post_part = match["post"] if match["post"] is not None else match["implicit_post"]
    post = -1 if post_part is None else int(post_part or 0)
    development = match["dev_word"] is not None
    if match["pre"]:
        phase, number = PHASES[match["pre"]], int(match["pre_number"] or 0)
    else:
        # A development release of a release comes before its first alpha; a final release after its last candidate.
        phase, number = (-1 if development and post < 0 else 3), 0
    return (
        int(match["epoch"] or 0),
        release,
        phase,
        number,
        post,
        int(match["dev"] or 0) if development else float("inf"),
    )


def reached(installed: str, first: str) -> bool:
    """Whether the installed version is the first one that has something, or a later one. Raises ``ValueError``."""
    return key(installed) >= key(first)
