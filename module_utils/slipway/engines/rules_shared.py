# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of variables that several engines read, each with its source."""

from __future__ import annotations

from .rules import Rule

SHARED: tuple[Rule, ...] = (
    *(
        Rule(
            "FLAGS_CONTRADICT",
            "--enable-pcie-oneshot-allreduce",
            ("enable-pcie-oneshot-allreduce", f"{variable}~expandable_segments:[Tt]rue"),
            f"it shares memory by handles that expandable segments do not have ({variable})",
            "rtx6kpro, optimization/pcie-oneshot-allreduce",
        )
        for variable in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    ),
    Rule(
        "FLAGS_CONTRADICT",
        "NCCL_P2P_LEVEL",
        ("NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"),
        "NCCL_P2P_DISABLE turns off what NCCL_P2P_LEVEL allows",
        "NCCL user guide, environment variables",
        severity="warn",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "FLASHINFER_DISABLE_VERSION_CHECK",
        ("FLASHINFER_DISABLE_VERSION_CHECK",),
        "kernels of another release are met in a request in place of the start; lock flashinfer-cubin in FlashInfer's own version",
        "rtx6kpro, models/glm5",
        severity="warn",
    ),
)
