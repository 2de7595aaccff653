# SPDX-License-Identifier: GPL-3.0-or-later
"""Inference engines, one file each: what a profile asks for becomes a command line, an environment and unit settings."""

from __future__ import annotations

import typing as t

from . import llamacpp
from .server import Request, ServerPlan

# A new engine is one file beside these and one line here.
ENGINES: dict[str, t.Callable[[Request], ServerPlan]] = {
    "llamacpp": llamacpp.plan,
}
