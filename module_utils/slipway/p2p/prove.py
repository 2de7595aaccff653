# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole proof: who is there, who else works there, the plan, its run in children, and what it means."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..findings import Finding, finding, softened
from ..gpu import child, devices, faults, machine, userspace
from . import baseline, judge, matrix, paths, plan, results, supervise, worker
from .thresholds import Thresholds


@dataclass(frozen=True)
class Options:
    """What to prove and how. ``devices`` are PCI addresses, empty for all that are here."""

    tests: tuple[str, ...]
    devices: tuple[str, ...]
    buffer_mib: int
    required: bool
    thresholds: Thresholds
    baseline: str
    record_baseline: bool
    timeout_seconds: float
    step_timeout_seconds: float
    allow_busy: bool
    place: str
    root: str = "/"
    library: str = userspace.LIBRARY


def prove(options: Options, check_mode: bool) -> dict[str, t.Any]:
    """Return ``changed gpus pairs concurrent plan verdict matrix baseline findings`` and, where it changes, ``diff``.

    In check mode nothing is measured: ``verdict`` is ``None`` and ``plan`` tells what would be. Raises ``OSError`` where the baseline
    cannot be written.
    """
    facts = machine.look(options.place, not check_mode, options.step_timeout_seconds, options.root, options.library)
    gpus = [gpu for gpu in facts["gpus"] if gpu["driven"] and gpu["bus_id"] in (options.devices or (gpu["bus_id"],))]
    found, nothing = unfit(facts, options.devices, gpus)
    seen = {gpu["bus_id"] for gpu in facts["cuda"]["gpus"]} if facts["cuda"] else {gpu["bus_id"] for gpu in gpus}
    gpus = [gpu for gpu in gpus if gpu["bus_id"] in seen]
    places = {gpu["bus_id"]: paths.place(gpu) for gpu in gpus}
    planned = plan.make(places, options.tests, options.buffer_mib, options.thresholds)
    shown = [{name: gpu[name] for name in _GPU_KEYS} for gpu in gpus]
    told: dict[str, t.Any] = {"changed": False, "gpus": shown, "pairs": [], "concurrent": [], "baseline": None}
    if check_mode:
        return _whole(told, planned.summary(), found, options, None)
    if nothing:
        return _whole(told, planned.summary(), found, options)
    at_work = [] if options.allow_busy else others(facts["processes"] or [], [gpu["device"] for gpu in gpus])
    if at_work:
        return _whole(told, planned.summary(), [*found, finding("GPU_BUSY", "GPUs", ", ".join(at_work))], options)
    if len(gpus) < 2:
        found += [finding("P2P_NO_PAIRS", gpus[0]["bus_id"])] if gpus else []
        return _whole(told, planned.summary({}), found, options)
    record = supervise.run(
        planned, _launcher(planned, places, options), options.timeout_seconds, options.step_timeout_seconds
    )
    found += _started(record)
    told["pairs"] = results.pairs(planned, record, places)
    told["concurrent"] = results.concurrent(planned, record, told["pairs"], places, options.thresholds)
    if not record.fatal or len(record.results) > 1:
        found += judge.judge(told["pairs"], told["concurrent"], options.tests, options.thresholds, places)
        _compare(told, found, planned, options)
    return _whole(told, planned.summary(record.took), found, options)


_GPU_KEYS = ("bus_id", "name", "uuid", "numa_node", "memory_mib", "sm", "link")


def unfit(
    facts: dict[str, t.Any], named: t.Sequence[str], gpus: t.Sequence[t.Mapping[str, t.Any]]
) -> tuple[list[Finding], bool]:
    """Findings about GPUs that are ``named`` (PCI addresses) and cannot be used, and about CUDA, with all that explains why it does not start.

    And whether there is nothing to measure. Where CUDA works, what else there is to say of the machine is for others to say.
    """
    bad = [one for one in faults.faults(facts, named) if one.severity in ("fail", "unknown")]
    if facts["cuda"] and facts["cuda"]["error"]:
        return bad, True
    missing = {*named} - {gpu["bus_id"] for gpu in gpus}
    found = [one for one in bad if one.subject in missing or one.id == "CUDA_GPU_MISSING"]
    for address in sorted(missing - {one.subject for one in found}):
        found.append(finding("GPU_NODE_MISSING", address, "it is not among the GPUs that can be used here"))
    if not gpus and not found:
        found = bad or [finding("NO_GPU", "GPUs", "no NVIDIA GPU can be used here")]
    return found, not gpus


def others(processes: t.Sequence[t.Mapping[str, t.Any]], nodes: t.Collection[str]) -> list[str]:
    """Processes that compute on the GPUs of these ``nodes``, named.

    CUDA opens nvidia-uvm and keeps it, which nvidia-smi and the persistence daemon do not. A guest sees its own processes only;
    that others work on its GPUs shows in the memory that they have.
    """
    found = []
    for one in processes:
        cards = {path for path in one["devices"] if path.rpartition("nvidia")[2].isdigit()}
        if devices.UVM in one["devices"] and (not cards or cards & {*nodes}):
            guest = "" if one["guest"] is None else f", guest {one['guest']}"
            found.append(f"{one['name']} ({one['pid']}{guest})")
    return found


def _launcher(planned: plan.Plan, places: t.Mapping[str, paths.Place], options: Options) -> supervise.Launch:
    def launch(steps: t.Mapping[int, plan.Step], seconds: float) -> child.Outcome:
        def work(emit: child.Emit) -> None:
            worker.work(emit, planned, steps, places, options.library, options.root, options.allow_busy)

        return child.run(work, seconds, silence_seconds=options.step_timeout_seconds)

    return launch


def _started(record: supervise.Record) -> list[Finding]:
    """What kept all or some GPUs from being measured at all."""
    fatal = record.fatal
    if fatal and fatal["kind"] == "busy":
        used = {bus_id: record.results[0]["gpus"][bus_id]["used_mib"] for bus_id in record.results[0]["busy"]}
        return [finding("GPU_BUSY", bus_id, f"{mib} MiB of its memory are used") for bus_id, mib in used.items()]
    failed = [finding("CUDA_CONTEXT_FAILED", bus_id, said) for bus_id, said in supervise.failed_gpus(record).items()]
    if fatal:
        return [finding("CUDA_HUNG" if fatal["kind"] == "hung" else "CUDA_INIT_FAILED", "CUDA", fatal["detail"])]
    start = record.errors.get(0)
    if start:
        failed.append(
            finding("CUDA_HUNG" if start["kind"] == "hung" else "CUDA_CONTEXT_FAILED", "CUDA", start["detail"])
        )
    return failed


def _compare(told: dict[str, t.Any], found: list[Finding], planned: plan.Plan, options: Options) -> None:
    """Compare with the baseline, or record one where all is well and there is none."""
    if not options.baseline:
        return
    now = baseline.make(told["gpus"], told["pairs"], told["concurrent"], planned.buffer_bytes)
    before, unusable = baseline.load(options.baseline)
    if unusable:
        found.append(finding("P2P_BASELINE_UNUSABLE", options.baseline, unusable))
    elif before:
        found += baseline.compare(before, now, options.baseline, options.thresholds)
    elif options.record_baseline and judge.verdict(found) == "ok":
        baseline.save(options.baseline, now)
        told["changed"] = True
        told["diff"] = {"before": "", "after": baseline.text(now), "after_header": options.baseline}
        before = now
    told["baseline"] = before


def _whole(
    told: dict[str, t.Any],
    summary: dict[str, t.Any],
    found: list[Finding],
    options: Options,
    verdict: str | None = "",
) -> dict[str, t.Any]:
    result = {**told, "plan": summary, "verdict": judge.verdict(found) if verdict == "" else verdict}
    result["findings"] = [one.as_dict() for one in (found if options.required else softened(found))]
    result["matrix"] = {"markdown": matrix.markdown(result), "html": matrix.fragment(result)}
    return result
