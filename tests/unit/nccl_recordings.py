# SPDX-License-Identifier: GPL-3.0-or-later
"""What ranks of an all-reduce say, shortened from what users have reported, and an interpreter that says it in their place.

Sources: NCCL's log of good runs NVIDIA/nccl#1773 (P2P), NVIDIA/nccl-tests#166 (SHM), deepseek-ai/DeepEP#143 (CUMEM); errors
hiyouga/LlamaFactory#7233 and pytorch/ci-infra#490 (/dev/shm), verl-project/verl#161 (one GPU twice), NVIDIA/nccl#2418 and Lightning-AI/pytorch-lightning#20757
(illegal access), NVIDIA/nccl#1838 (cuMem on the host), NVIDIA/nccl#2190 (ranks that disagree), NVIDIA/nccl#795 (another rank gone).
"""

from __future__ import annotations

import json
import sys
import typing as t
from pathlib import Path

Step = dict[str, t.Any]
Recording = list[Step]

_PLAYER = Path(__file__).resolve().parents[2] / "molecule/links/ranks.py"


class Stack:
    """A virtual environment whose Python plays recordings; ``interpreter`` is what really runs."""

    def __init__(self, folder: Path, interpreter: str = sys.executable) -> None:
        self.venv = folder
        (folder / "bin").mkdir(parents=True)
        self.python = folder / "bin/python"
        text = _PLAYER.read_text().replace("#!/usr/bin/env python3", f"#!{interpreter}", 1)
        self.python.write_text(text)
        self.python.chmod(0o755)

    def plays(self, all_ranks: Recording, **others: Recording) -> None:
        """All ranks play one recording, but those that are named (``r1``)."""
        ranks = {name[1:]: steps for name, steps in others.items()}
        (self.venv / "recording.json").write_text(json.dumps({"all": all_ranks, **ranks}))

    def noted(self, rank: int) -> dict[str, t.Any]:
        """What a rank was started with."""
        return t.cast("dict[str, t.Any]", json.loads((self.venv / f"rank.{rank}").read_text()))


SIZES = (4096, 65536, 524288, 1048576, 2097152)
FACTS = {"nccl": "2.27.5", "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm": 120, "bus_id": None}


def phase(name: str) -> Step:
    """A rank enters a phase."""
    return {"say": {"phase": name, **({"torch": "2.9.1+cu128"} if name == "device" else {})}}


def info(text: str, where: str = "") -> Step:
    """A line of NCCL's log, as it stands on standard error."""
    kind = "WARN" if where else "INFO"
    return {"err": f"[2026-04-22 21:34:20] infer1:202016:202235 [0] {where + ' ' if where else ''}NCCL {kind} {text}"}


def started(peers: t.Sequence[int] = (0, 1), **facts: t.Any) -> Recording:
    """A rank up to the point at which all have met."""
    up = {**FACTS, "peers": list(peers), **facts}
    return [phase("import"), phase("device"), {"say": up}, phase("rendezvous")]


def connected(via: str = "P2P/CUMEM", version: str = "2.27.5") -> Recording:
    """The first all-reduce begins, and NCCL connects two ranks by two channels."""
    return [
        phase("first all-reduce"),
        {"err": f"infer1:202016:202016 [0] NCCL INFO NCCL version {version}+cuda12.9"},
        info("NCCL_P2P_LEVEL set by environment to SYS"),
        info("comm 0x563ec98ab6c0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 commId 0x8d2f2e0a - Init COMPLETE"),
        info(f"Channel 00/0 : 0[0] -> 1[1] via {via}"),
        info(f"Channel 01/0 : 0[0] -> 1[1] via {via}"),
        info(f"Channel 00/0 : 1[1] -> 0[0] via {via}"),
        {"say": {"size": 64, "seconds": None, "checked": 32, "faults": []}},
    ]


def sized(gbps: float = 40.0, sizes: t.Sequence[int] = SIZES) -> Recording:
    """All sizes, the time such that two ranks have this bus bandwidth."""
    steps: Recording = []
    for size in sizes:
        said = {"size": size, "seconds": size / gbps / 1e9, "checked": size + size // 4, "faults": []}
        steps += [phase(f"{size} bytes"), {"say": said}]
    return steps


END: Recording = [phase("end"), {"say": {"done": True}}]


def good(gbps: float = 40.0, via: str = "P2P/CUMEM", **facts: t.Any) -> Recording:
    """A run in which all is well."""
    return [*started(**facts), *connected(via), *sized(gbps), *END]


def fails(kind: str, text: str) -> Recording:
    """A rank's last words."""
    return [{"say": {"error": kind, "text": text}}, {"exit": 1}]


def nccl_error(kind: str, last: str, said: str = "unhandled system error") -> Recording:
    """NCCL's error as torch words it."""
    text = (
        f"NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268, {said} (run with NCCL_DEBUG=INFO for details), "
        f"NCCL version 2.27.5\n{kind}: System call (e.g. socket, malloc) or external library call failed or device error. \nLast error:\n{last}"
    )
    return fails("DistBackendError", text)
