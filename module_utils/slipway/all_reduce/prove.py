# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole proof: which GPUs, who else works there, the plan, its run by the stack's Python, and what it means."""

from __future__ import annotations

import inspect
import json
import os
import pwd
import shutil
import tempfile
import time
import typing as t
from dataclasses import dataclass

from ..findings import Finding, finding, softened
from ..gpu import child, machine, userspace
from ..p2p.prove import others, unfit
from . import judge, plan, ranks, record, worker
from .thresholds import Thresholds

_VISIBLE = "CUDA_VISIBLE_DEVICES"
# Ours, whatever the service has: the log is read from standard error, and only what is read is asked for.
_LOGGING = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV"}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Options:
    """What to prove and how. ``devices`` are PCI addresses, empty for all that are here; ``environment`` is the service's."""

    venv: str
    devices: tuple[str, ...]
    environment: t.Mapping[str, str]
    buffer_mib: int
    iterations: int
    thresholds: Thresholds
    required: bool
    timeout_seconds: float
    step_timeout_seconds: float
    user: str | None
    allow_busy: bool
    place: str
    root: str = "/"
    library: str = userspace.LIBRARY

    @property
    def python(self) -> str:
        """The interpreter that has the stack."""
        return os.path.join(self.venv, "bin", "python")


def prove(options: Options, check_mode: bool) -> dict[str, t.Any]:
    """Return ``changed ranks results transport settings nccl_warnings nccl_version torch_version plan verdict findings``.

    In check mode nothing is run: ``verdict`` is ``None`` and ``plan`` tells what would be. Raises ``KeyError`` where there is no such user.
    """
    facts = machine.look(
        options.place, not check_mode, options.step_timeout_seconds, options.root, options.library, options.user
    )
    gpus = [gpu for gpu in facts["gpus"] if gpu["driven"] and gpu["bus_id"] in (options.devices or (gpu["bus_id"],))]
    found, nothing = unfit(facts, options.devices, gpus)
    # The order of CUDA's own numbers, which the ranks count by.
    order = [gpu["bus_id"] for gpu in facts["cuda"]["gpus"]] if facts["cuda"] else [gpu["bus_id"] for gpu in gpus]
    gpus = [gpu for gpu in gpus if gpu["bus_id"] in order]
    planned = plan.make([gpu["bus_id"] for gpu in gpus], options.buffer_mib, options.iterations)
    told: dict[str, t.Any] = {
        "changed": False,
        **{name: [] for name in ("ranks", "results", "transport", "nccl_warnings")},
        "settings": {},
        "nccl_version": None,
        "torch_version": None,
        "plan": planned.summary(options.thresholds),
    }
    if check_mode:
        return _whole({**told, "verdict": None}, found, options)
    if nothing or found:  # without some of its GPUs it would prove another machine
        return _judged(told, found, options)
    at_work = [] if options.allow_busy else others(facts["processes"] or [], [gpu["device"] for gpu in gpus])
    if at_work:
        return _judged(told, [*found, finding("GPU_BUSY", "GPUs", ", ".join(at_work))], options)
    if len(gpus) < 2:
        found += [finding("P2P_NO_PAIRS", gpus[0]["bus_id"])] if gpus else []
        return _judged(told, found, options)
    began = time.monotonic()
    run = record.fold(planned, launch(planned, order, options), options.step_timeout_seconds)
    run.survivors = ranks.survivors(run.pids)
    told["plan"] = planned.summary(options.thresholds, time.monotonic() - began)
    told["ranks"], told["results"] = run.ranks, run.results
    told["transport"], told["settings"], told["nccl_warnings"] = (
        run.log[name] for name in ("transport", "settings", "warnings")
    )
    told["nccl_version"] = judge.nccl_version(run)
    told["torch_version"] = next((row["torch"] for row in run.ranks if row["torch"]), None)
    return _judged(told, [*found, *judge.judge(planned, run, options.thresholds, options.python)], options)


def environment(options: Options, order: t.Sequence[str], gpus: t.Sequence[str]) -> dict[str, str]:
    """What the ranks get: nothing of this process, what every service has, the service's own, and what makes NCCL talk.

    ``order`` are the GPUs in CUDA's order. Where ``gpus`` are some of them only these are shown.
    """
    account = pwd.getpwnam(options.user) if options.user else pwd.getpwuid(os.geteuid())
    made = {
        "PATH": f"{os.path.join(options.venv, 'bin')}:{_PATH}",
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": options.venv,
        **options.environment,
        **_LOGGING,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    made.pop("NCCL_DEBUG_FILE", None)
    if list(gpus) != list(order):
        made[_VISIBLE] = ",".join(str(order.index(bus_id)) for bus_id in gpus)
    return made


def launch(planned: plan.Plan, order: t.Sequence[str], options: Options) -> child.Outcome:
    """Run the ranks below one child, which has a limit and their process group."""
    folder = tempfile.mkdtemp(prefix="slipway-all-reduce.")
    try:
        if options.user:
            account = pwd.getpwnam(options.user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        common = {
            "ranks": len(planned.gpus),
            "backend": "nccl",
            "store": os.path.join(folder, "store"),
            "sizes": [{"bytes": size.bytes, "iterations": size.iterations} for size in planned.sizes],
        }
        arguments = [json.dumps({**common, "rank": n, "device": n}) for n in range(len(planned.gpus))]
        given = environment(options, order, planned.gpus)
        program = inspect.getsource(worker)

        def work(emit: child.Emit) -> None:
            ranks.run(emit, options.python, program, arguments, given)

        return child.run(work, options.timeout_seconds, options.user, options.step_timeout_seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _judged(told: dict[str, t.Any], found: list[Finding], options: Options) -> dict[str, t.Any]:
    return _whole({**told, "verdict": judge.verdict(found)}, found, options)


def _whole(told: dict[str, t.Any], found: list[Finding], options: Options) -> dict[str, t.Any]:
    return {**told, "findings": [one.as_dict() for one in (found if options.required else softened(found))]}
