# SPDX-License-Identifier: GPL-3.0-or-later
"""What this machine says of its GPUs and their driver, gathered into the dictionaries that ``gpu_host_info`` returns.

Everything is read below a root; nothing is written. Only ``mokutil`` is run, where it is asked about a key.
"""

from __future__ import annotations

import typing as t

from . import (
    capabilities,
    cards,
    cuda,
    devices,
    hops,
    host,
    installed,
    iommu,
    kernel_log,
    modprobe,
    modules,
    passthrough,
    pci,
    processes,
    secure_boot,
    userspace,
)
from . import place as place_of
from .tree import Tree

_PROC = "/proc/driver/nvidia"
_UVM = "/sys/module/nvidia_uvm"
_HMM = "uvm_disable_hmm"


def look(
    place: str = "auto",
    with_cuda: bool = False,
    timeout_seconds: float = 60.0,
    root: str = "/",
    library: str = userspace.LIBRARY,
    user: str | None = None,
    signing: tuple[str, str] | None = None,
) -> dict[str, t.Any]:
    """Gather what ``gpu_host_info`` returns, and what the judgement needs beside it.

    ``place`` is ``node``, ``guest`` or ``auto``. In a guest ``gpus`` holds those whose node was passed in; the driver's
    own list, which a container sees too, is in ``known_gpus``. ``unreadable`` maps paths to the errno that they gave.
    ``signing`` is a key and its certificate: with Secure Boot on, whether they could sign what is built here.
    ``user`` is whom nodes are opened and CUDA is asked as. ``timeout_seconds`` is the limit for opening all nodes, and again for CUDA.
    """
    tree = Tree(root)
    where = place_of.find(root) if place == "auto" else place
    on_node = where == place_of.NODE
    proc_devices = tree.text("/proc/devices")
    majors = host.character_majors(proc_devices) if proc_devices is not None else None
    # Before the nodes are opened, which leaves nothing behind but would be seen by a look at the same time.
    using = processes.look(tree)
    nodes = devices.nodes(tree, majors, timeout_seconds, user)
    cmdline = (tree.text("/proc/cmdline") or "").strip()
    units = iommu.units(tree)
    known = [{**gpu, **_depth(tree, gpu["bus_id"], units)} for gpu in cards.look(tree)]
    machines = passthrough.look(root, known) if on_node else {}
    ways = hops.paths(tree, [gpu["bus_id"] for gpu in known])
    for gpu in known:
        gpu["machines"], gpu["path"] = machines.get(gpu["bus_id"], []), ways[gpu["bus_id"]]
    present = {node["path"] for node in nodes}
    here = [gpu for gpu in known if on_node or gpu["device"] in present]
    own = [gpu for gpu in here if cards.is_hosts(gpu)]
    secure = secure_boot.is_on(tree) if on_node else None
    configuration = modules.configuration(tree) if on_node else None
    log = kernel_log.read(tree) if on_node else None
    facts: dict[str, t.Any] = {
        "place": where,
        "gpus": here,
        "known_gpus": known,
        "driver": _driver(tree),
        "uvm": _uvm(tree, majors, configuration, cmdline),
        "devices": nodes,
        "capability_nodes": capabilities.nodes(tree, majors),
        "modules": modules.look(tree, configuration, cmdline),
        "iommu": {"units": units, "mode": iommu.overall([gpu["iommu_mode"] for gpu in own])},
        "acs": hops.acs(gpu["path"] for gpu in own),
        "processes": using,
        "persistence": processes.persistence(using),
        "xids": None
        if log is None
        else kernel_log.xids(log, kernel_log.uptime_seconds(tree.attribute("/proc/uptime"))),
        "cmdline": cmdline,
        "kernel": (tree.text("/proc/sys/kernel/osrelease") or "").strip() or None,
        "boot_id": (tree.text("/proc/sys/kernel/random/boot_id") or "").strip() or None,
        "secure_boot": secure,
        "signing": secure_boot.signing(tree, *signing) if secure and signing else None,
        "cuda": cuda.probe(timeout_seconds, library, user) if with_cuda else None,
        "majors_known": majors is not None,
        "unreadable": tree.unreadable,
    }
    if facts["cuda"]:
        _add_measured(facts["gpus"], facts["cuda"]["gpus"])
    return facts


def _depth(tree: Tree, bus_id: str, units: list[str] | None) -> dict[str, t.Any]:
    number, domain = iommu.group(tree, f"{pci.DEVICES}/{bus_id}")
    mode = iommu.mode(units, number, domain)
    return {**pci.depth(tree, bus_id), "iommu_group": number, "iommu_type": domain, "iommu_mode": mode}


def _driver(tree: Tree) -> dict[str, t.Any]:
    banner_text = tree.text(f"{_PROC}/version")
    banner = host.driver_banner(banner_text or "")
    version = banner.version if banner else (tree.text("/sys/module/nvidia/version") or "").strip() or None
    parameters = tree.text(f"{_PROC}/params")
    user = userspace.find(tree.root)
    return {
        "loaded": banner_text is not None or tree.exists("/sys/module/nvidia"),
        "kernel_version": version,
        "open_kernel_module": banner.open_kernel_module if banner else None,
        "user_version": user.version if user else None,
        "user_library": user.path if user else None,
        "parameters": host.driver_parameters(parameters) if parameters is not None else None,
        **installed.look(tree),
    }


def _uvm(tree: Tree, majors: dict[str, int] | None, configuration: list[str] | None, cmdline: str) -> dict[str, t.Any]:
    loaded: bool | None = tree.exists(_UVM) or "nvidia-uvm" in (majors or {})
    if not loaded and majors is None and not tree.exists("/sys/module"):
        loaded = None
    live = tree.text(f"{_UVM}/parameters/{_HMM}")
    return {
        "loaded": loaded,
        "disable_hmm": host.boolean(live) if live is not None else None,
        # The module is loaded by the node: a guest's own files say nothing about it.
        "disable_hmm_on_disk": None if configuration is None else _hmm_on_disk(configuration, cmdline),
    }


def _hmm_on_disk(configuration: list[str], cmdline: str) -> bool | None:
    """Whether the next load of the module will have HMM off."""
    options = modprobe.module_options(configuration, "nvidia_uvm", cmdline)
    if _HMM not in options:
        return False
    value = options[_HMM]
    return host.boolean(value) if value is not None else True


def _add_measured(gpus: list[dict[str, t.Any]], measured: list[dict[str, t.Any]]) -> None:
    by_address = {gpu["bus_id"]: gpu for gpu in measured}
    for gpu in gpus:
        seen = by_address.get(gpu["bus_id"], {})
        gpu["name"] = seen.get("name") or gpu["name"]
        gpu["memory_mib"], gpu["sm"] = seen.get("memory_mib"), seen.get("sm")
