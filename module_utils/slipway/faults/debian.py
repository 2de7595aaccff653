# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian packages."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "APT_VERSION_UNAVAILABLE": Fault(
        "fail",
        "No source of apt has a package in the version that is declared.",
        "Declare a version that there is, or give the machine the source that has it, and run 'apt-get update' there.",
    ),
    "APT_PACKAGE_HELD": Fault(
        "fail",
        "A package that must change is held by somebody.",
        "Ask why it is held, then 'apt-mark unhold' it, or declare the version that is installed.",
    ),
    "APT_CONFLICT": Fault(
        "fail",
        "Apt cannot install the declared packages together.",
        "See 'apt-get --simulate install' with the same packages and versions; name what they depend on in the same version.",
    ),
    "APT_WOULD_REMOVE": Fault(
        "fail",
        "Installing the declared packages would remove others that are no part of a driver.",
        "Remove them yourself if they may go, or declare packages that leave them.",
    ),
    "APT_UNWANTED_PACKAGE": Fault(
        "fail",
        "Installing the declared packages would bring one that must not be here.",
        "Declare the packages of the user part only (libcuda1, libnvidia-ml1, nvidia-driver-cuda): a guest uses its node's kernel.",
    ),
}
