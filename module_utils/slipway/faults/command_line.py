# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line of a server."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "FLAG_UNKNOWN": Fault(
        "fail",
        "The engine has no such argument.",
        "Correct the name in the profile's server.arguments, or remove it",
    ),
    "FLAG_RENAMED": Fault(
        "fail",
        "The engine has this argument under another name in this release.",
        "Give it under the name that the detail has, in the profile's server.arguments",
    ),
    "FLAG_WITHOUT_EFFECT": Fault(
        "warn",
        "The setting has no effect in this release, or on this GPU.",
        "Take it out, so that nobody relies on it",
    ),
    "FLAG_DANGEROUS": Fault(
        "fail",
        "With this setting, or without it, the server is known to fail or to answer nonsense on this GPU.",
        "Change it as the detail says, in the profile's server section",
    ),
    "FLAGS_CONTRADICT": Fault(
        "fail",
        "Settings do not go together.",
        "Take one of them out, or add what the detail names",
    ),
    "FLAGS_UNCHECKED": Fault(
        "warn",
        "Slipway has no list of the options of this release, so that wrong names and choices are found by the engine alone.",
        "Give engine_version as it is locked; the engine's own parser is asked once its environment is there",
    ),
    "COMMAND_LINE_REFUSED": Fault(
        "fail",
        "The engine's own parser refuses the command line.",
        "Correct what it names in the profile's server.arguments",
    ),
    "COMMAND_LINE_UNCHECKED": Fault(
        "unknown",
        "The engine's own parser could not be asked about the command line.",
        "Mend what the detail names; where the environment is broken, deploy again, which brings it back to its lock",
    ),
    "MOE_CONFIG_INVALID": Fault(
        "fail",
        "A file of tuned kernel settings is not one that the engine can use.",
        "Correct it as the detail says, or take it out of the profile's kernels folder",
    ),
    "MOE_CONFIG_TOO_LARGE": Fault(
        "fail",
        "Tuned kernel settings ask for more shared memory than a block of this GPU has, so that requests of such sizes would end the server.",
        "Tune on this GPU (playbooks/tune.yml), or lower num_stages or the block sizes for these batch sizes",
        "sgl-project/sglang#28019",
    ),
    "MOE_CONFIG_OTHER_GPU": Fault(
        "warn",
        "Tuned kernel settings are for another GPU, and are never looked for on this one.",
        "Tune on this GPU (playbooks/tune.yml); files are named for the GPU as torch names it",
    ),
    "SECRET_EXPOSED": Fault(
        "fail",
        "A secret would be readable by everyone on the machine.",
        "Put it into a file that only the server's user may read: api_key_file for the API's keys",
    ),
    "API_OPEN": Fault(
        "warn",
        "The API listens to a network and asks for no key.",
        "Give api_key_file, or let the server listen on 127.0.0.1 behind something that asks",
    ),
    "FLAG_REFUSED": Fault(
        "fail",
        "The engine refuses the value of an argument.",
        "Correct it in the profile's server.arguments to one that the detail lists",
    ),
}
