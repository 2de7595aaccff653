# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "PROOF_HOLDS": Fault(
        "info",
        "It was proven, and what that rests on is as it was.",
        "Nothing is to be done.",
    ),
    "PROOF_FAILED": Fault(
        "fail",
        "It was measured and found bad, and what that rests on is as it was.",
        "Mend what was found then, and deploy again: a host whose proof failed is measured anew at each deploy.",
    ),
    "PROOF_STALE": Fault(
        "unknown",
        "It was proven, but something that the proof rests on is no longer as it was, so nothing is known.",
        "Deploy again, which measures it anew: links before the server starts (where one runs, that takes acceptance_allow_server_stop), "
        "speed while it serves nobody.",
    ),
    "PROOF_ABSENT": Fault(
        "unknown",
        "It has not been proven.",
        "Deploy, which measures it: links before the server starts (where one runs, that takes acceptance_allow_server_stop), speed while it "
        "serves nobody.",
    ),
}
