# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the rig's tests import the rig's packages, ``pve`` and ``gpu``, as the rig itself does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "molecule" / "rig"))
