# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the board that a node's GPUs sit on, and of what is set up for them: pure. Facts are those of ``machine.look``.

Most of these spoil what GPUs say to each other, so they are asked where there are two or more. They explain and warn; whether
data crosses a link is proven by copying it (``gpu_p2p``). Only a node can tell: a container sees no more than is shown to it.
"""

from __future__ import annotations

import typing as t

from ..findings import Finding, finding
from . import cards, hops, iommu, kernel_log, modules

Facts = t.Mapping[str, t.Any]
Hop = t.Mapping[str, t.Any]

# What a card has whose BAR cannot be resized, or is not (Resizable BAR off in the firmware).
_SMALL_BAR1_MIB = 256
# How long an Xid is news. A GPU that is still ill tells otherwise too.
_RECENT_SECONDS = 24 * 3600
_MOST_NAMED = 6


def faults(facts: Facts, under_load: bool = False) -> list[Finding]:
    """All findings about the board. ``under_load`` is whether the GPUs were copying as the facts were read."""
    gpus = [gpu for gpu in facts["gpus"] if cards.is_hosts(gpu)]
    if not gpus:
        return []
    found = []
    for gpu in gpus:
        found += [*links(gpu, under_load), *_bar1(gpu)]
    if len(gpus) > 1:
        found += [*_iommu(facts["iommu"], gpus), *_acs(facts["acs"])]
    return [*found, *_machines(gpus), *_parameters(facts), *_xids(facts)]


def links(gpu: t.Mapping[str, t.Any], under_load: bool) -> list[Finding]:
    """Judge the links of a GPU (``bus_id link path``), for whoever reads them while it copies too.

    Widths at any time. Speeds too, except that of the GPU's own link, which rests in a low one until there is work.
    """
    found = []
    # Without a path to be seen, the GPU's own end has to do.
    pairs: list[tuple[Hop | None, Hop]] = [*hops.links(gpu["path"] or [])]
    for upper, lower in pairs or [(None, gpu)]:
        own = lower["bus_id"] == gpu["bus_id"]
        where = f"{upper['bus_id']} to {lower['bus_id']}" if upper else "its own link"
        found += _link(gpu["bus_id"], where, "width", upper, lower, rests=False)
        if under_load or not own:
            found += _link(gpu["bus_id"], where, "speed_gts", upper, lower, rests=not under_load)
    return found


_MEASURES = {"width": ("LINK_NARROW", "x{:g}"), "speed_gts": ("LINK_SLOW", "{:g} GT/s")}


def _link(
    subject: str,
    where: str,
    measure: str,
    upper: t.Mapping[str, t.Any] | None,
    lower: t.Mapping[str, t.Any],
    rests: bool,
) -> list[Finding]:
    """One measure of one link against what both its ends can. Below half of it something is broken, and not only set so."""
    fault, form = _MEASURES[measure]
    ends = [end["link"][f"max_{measure}"] for end in (upper, lower) if end]
    now = lower["link"][measure]
    if now is None or None in ends:
        return [finding(fault, subject, f"{where}: sysfs does not tell", severity="unknown")]
    most = min(ends)
    if now >= most:
        return []
    severity = "fail" if now * 2 < most and not rests else None
    note = ", read while it may have been at rest" if rests else ""
    return [finding(fault, subject, f"{where}: {form.format(now)} of {form.format(most)}{note}", severity=severity)]


def _bar1(gpu: t.Mapping[str, t.Any]) -> list[Finding]:
    size, memory, sizes = gpu["bar1_mib"], gpu["memory_mib"], gpu["bar1_sizes_mib"] or []
    if size is None:
        return [finding("BAR1_SMALL", gpu["bus_id"], "sysfs does not show its regions", severity="unknown")]
    could = max([each for each in sizes if each > size], default=None)
    if size <= _SMALL_BAR1_MIB or (memory and size < memory):
        against = f", its memory {memory} MiB" if memory else ""
        than = f"; the card can have {could} MiB" if could else ""
        return [finding("BAR1_SMALL", gpu["bus_id"], f"BAR1 has {size} MiB{against}{than}")]
    if could and not memory:
        return [finding("BAR1_SMALL", gpu["bus_id"], f"BAR1 has {size} MiB; the card can have {could} MiB")]
    return []


def _iommu(known: t.Mapping[str, t.Any], gpus: t.Sequence[t.Mapping[str, t.Any]]) -> list[Finding]:
    if known["mode"] is None:
        return [finding("IOMMU_TRANSLATED", "IOMMU", "sysfs does not tell the mode of every GPU", severity="unknown")]
    if known["mode"] != iommu.TRANSLATED:
        return []
    told = [f"{gpu['bus_id']} (group {gpu['iommu_group']})" for gpu in gpus if gpu["iommu_mode"] == iommu.TRANSLATED]
    return [finding("IOMMU_TRANSLATED", "IOMMU", f"translated: {_some(told)}")]


def _acs(known: t.Mapping[str, t.Any]) -> list[Finding]:
    if known["redirect"] is False:
        return []
    bits = ("request_redirect", "completion_redirect")
    if known["redirect"]:
        on = [hop for hop in known["hops"] if True in [hop[bit] for bit in bits]]
        told = _some([f"{hop['bus_id']} (ACSCtl 0x{hop['acs_control']:04x})" for hop in on])
        return [finding("ACS_REDIRECT", "ACS", f"on at {told}")]
    unread = _some([hop["bus_id"] for hop in known["hops"] if None in [hop[bit] for bit in bits]])
    detail = f"the configuration space cannot be read beyond 64 bytes: {unread}" if unread else "no port is shown"
    return [finding("ACS_REDIRECT", "ACS", detail, severity="unknown")]


def _machines(gpus: t.Iterable[t.Mapping[str, t.Any]]) -> list[Finding]:
    """Virtual machines that would take a GPU from the driver when they start."""
    return [finding("GPU_PASSED_THROUGH", gpu["bus_id"], holders(gpu)) for gpu in gpus if gpu["machines"]]


def holders(gpu: t.Mapping[str, t.Any]) -> str:
    """The virtual machines that have a GPU, in words."""
    words = {True: "runs", False: "does not run now"}
    told = [
        f"virtual machine '{one['name']}' ({one['vmid']}) has it as {one['key']} and {words[one['running']]}"
        for one in gpu["machines"]
    ]
    return "; ".join(told)


def _parameters(facts: Facts) -> list[Finding]:
    """What waits for the next load of a module, except for HMM, which has findings of its own."""
    waiting = modules.pending(facts["modules"], facts["driver"]["parameters"])
    return [
        finding("MODULE_PARAMETER_PENDING", name, f"it is {now} now, and {then} for the next load")
        for name, now, then in waiting
        if not name.endswith(".uvm_disable_hmm")
    ]


def _xids(facts: Facts) -> list[Finding]:
    if facts["xids"] is None:
        unread = kernel_log.PATH in facts["unreadable"]  # FACT_UNREADABLE has been said
        return [] if unread else [finding("XID_RECENT", "kernel log", f"{kernel_log.PATH} is not here", "unknown")]
    groups: dict[tuple[str, int], list[t.Mapping[str, t.Any]]] = {}
    for xid in facts["xids"]:
        if xid["age_seconds"] is None or xid["age_seconds"] <= _RECENT_SECONDS:
            groups.setdefault((xid["bus_id"], xid["code"]), []).append(xid)
    found = []
    for (address, code), known in groups.items():
        last = known[-1]
        age = "" if last["age_seconds"] is None else f", the last {_age(last['age_seconds'])} ago"
        severity = "fail" if code in kernel_log.HARDWARE else None
        times = "once" if len(known) == 1 else f"{len(known)} times"
        found.append(finding("XID_RECENT", address, f"Xid {code}, {times}{age}: {last['text']}", severity))
    return found


def _age(seconds: int) -> str:
    return f"{seconds // 3600} h" if seconds >= 3600 else f"{seconds // 60} min"


def _some(told: t.Sequence[str]) -> str:
    """A list for a sentence, cut where nobody would read on."""
    more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    return ", ".join(told[:_MOST_NAMED]) + more
