# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a machine says of its GPUs to findings: pure. Facts have the shape that ``machine.look`` returns.

A cause that explains another symptom silences it: a module that is not loaded explains dead nodes. What could not be
learnt is ``unknown``. In a guest only what was passed in, or what ``expected_gpus`` names, is asked for; where it names
any, a guest that has more has too many. A node owns them all, and there it names those that must be usable.
"""

from __future__ import annotations

import typing as t

from ..findings import Finding, finding
from . import board, cards, cuda_codes, devices, secure_boot

Facts = t.Mapping[str, t.Any]


def faults(
    facts: Facts, expected_gpus: t.Sequence[str] = (), modprobe_error: str = "", under_load: bool = False
) -> list[Finding]:
    """All findings about these facts, in the order in which one would look for the cause.

    ``modprobe_error`` is what modprobe said when it could not load the driver, or nothing. ``under_load`` is whether the GPUs
    were copying, so that the speed of their links counts.
    """
    found = [*_unreadable(facts), *_signing(facts), *_gpus_and_driver(facts, expected_gpus, modprobe_error)]
    if facts["driver"]["loaded"]:
        found += [*_versions(facts), *_uvm(facts), *_hmm(facts), *_nodes(facts), *_capabilities(facts)]
    found += board.faults(facts, under_load) if facts["place"] == "node" else []
    return found + _cuda(facts, {told.id for told in found if told.severity == "fail"})


def _unreadable(facts: Facts) -> list[Finding]:
    return [finding("FACT_UNREADABLE", path, f"reading gives {name}") for path, name in facts["unreadable"].items()]


def _signing(facts: Facts) -> list[Finding]:
    """Asked only where Secure Boot is on and modules are to be built."""
    signing = facts["signing"]
    if signing is None:
        return []
    if signing["missing"]:
        detail = f"the key or certificate that is declared does not exist: {', '.join(signing['missing'])}"
        declared = signing["missing"] != ["nothing", "nothing"]
        return [finding("SECURE_BOOT_UNSIGNED", "Secure Boot", detail if declared else "none is declared")]
    if signing["enrolled"]:
        return []
    severity = "unknown" if signing["enrolled"] is None else None
    return [finding("SECURE_BOOT_KEY_NOT_ENROLLED", "Secure Boot", signing["said"], severity=severity)]


def _gpus_and_driver(facts: Facts, expected_gpus: t.Sequence[str], modprobe_error: str) -> list[Finding]:
    found = []
    driver, present = facts["driver"], {node["path"] for node in facts["devices"]}
    known = {gpu["bus_id"]: gpu for gpu in facts["known_gpus"]}
    if secure_boot.refused(modprobe_error, facts["secure_boot"]):
        found.append(finding("SECURE_BOOT_MODULE_REFUSED", "driver", modprobe_error))
    elif known and not driver["loaded"]:
        said = f"; {modprobe_error}" if modprobe_error else ""
        found.append(finding("DRIVER_NOT_LOADED", "driver", f"{len(known)} GPUs are on the PCI bus{said}"))
    elif not facts["gpus"]:
        seen = f"; the node's driver has {len(known)}, none was passed in" if known else ""
        found.append(finding("NO_GPU", "GPUs", f"no NVIDIA GPU is visible here{seen}"))
    for address in sorted(expected_gpus):
        if address not in known:
            found.append(finding("GPU_NODE_MISSING", address, "no such GPU is on the PCI bus or in the driver's list"))
    if not driver["loaded"]:
        return found
    for address, gpu in known.items():
        expected = address in expected_gpus
        if not gpu["driven"] or gpu["minor"] is None:
            if expected or facts["place"] == "node":
                found.append(_not_driven(gpu, facts, "fail" if expected else None))
        elif gpu["device"] not in present and (expected or facts["place"] == "node"):
            found.append(finding("GPU_NODE_MISSING", address, f"{gpu['device']} does not exist"))
    if expected_gpus and facts["place"] == "guest":
        extra = [gpu for gpu in facts["gpus"] if gpu["bus_id"] not in expected_gpus]
        found += [finding("GPU_UNEXPECTED", gpu["bus_id"], f"{gpu['device']} was passed in") for gpu in extra]
    if facts["gpus"] and devices.CONTROL not in present:
        found.append(finding("GPU_NODE_MISSING", devices.CONTROL, "the control node does not exist"))
    return found


def _not_driven(gpu: t.Mapping[str, t.Any], facts: Facts, severity: str | None) -> Finding:
    bound = gpu["pci_driver"]
    if cards.is_hosts(gpu):
        detail = f"bound to {bound}" if bound and bound != "nvidia" else "the driver does not list it"
        return finding("GPU_NOT_DRIVEN", gpu["bus_id"], detail, severity=severity)
    told = [board.holders(gpu) if gpu["machines"] else "no virtual machine of this node has it"]
    # vfio-pci.ids names kinds of cards, as 10de:2bb5.
    kind = ":".join(str(gpu[key] or "").replace("0x", "") for key in ("vendor_id", "device_id"))
    if kind in str((facts["modules"]["vfio_pci"]["on_disk"] or {}).get("ids") or "").lower():
        told.append(f"{kind} is among the ids of vfio-pci in /etc/modprobe.d or on the kernel command line")
    if gpu["driver_override"]:
        told.append(f"its driver_override is {gpu['driver_override']}")
    return finding("GPU_BOUND_TO_VFIO", gpu["bus_id"], "; ".join(told), severity=severity)


def _versions(facts: Facts) -> list[Finding]:
    driver = facts["driver"]
    found = []
    if driver["open_kernel_module"] is None:
        found.append(finding("DRIVER_NOT_OPEN", "driver", "the module does not say what it is", severity="unknown"))
    elif not driver["open_kernel_module"]:
        found.append(finding("DRIVER_NOT_OPEN", "driver", f"the module loaded is {driver['kernel_version']}"))
    kernel, user, library = driver["kernel_version"], driver["user_version"], driver["user_library"]
    cuda = facts["cuda"] or {}
    if library is None and cuda.get("call"):
        detail = "libcuda.so.1 was loaded from a place that the loader's cache does not name"
        found.append(finding("DRIVER_MISMATCH", "driver", detail, severity="unknown"))
    elif library is None:
        # A node that only passes its GPUs on can do without; who asks for CUDA cannot.
        severity = "warn" if facts["place"] == "node" and not cuda else None
        found.append(finding("DRIVER_USERSPACE_MISSING", "libcuda.so.1", severity=severity))
    elif kernel is None or user is None:
        detail = f"kernel part {kernel or 'unknown'}, user part {user or 'unknown'} ({library})"
        found.append(finding("DRIVER_MISMATCH", "driver", detail, severity="unknown"))
    elif kernel != user:
        found.append(finding("DRIVER_MISMATCH", "driver", f"kernel part {kernel}, user part {user} ({library})"))
    return found


def _uvm(facts: Facts) -> list[Finding]:
    loaded = facts["uvm"]["loaded"]
    if loaded is None:
        return [finding("UVM_NOT_LOADED", "nvidia_uvm", "neither /sys/module nor /proc/devices is here", "unknown")]
    if not loaded:
        return [finding("UVM_NOT_LOADED", "nvidia_uvm")]
    node = next((node for node in facts["devices"] if node["path"] == devices.UVM), None)
    if node is None:
        # Without a GPU nothing here needs it, and NO_GPU has been said.
        return [finding("UVM_NODE_MISSING", devices.UVM)] if facts["gpus"] else []
    if not facts["majors_known"]:
        return [finding("UVM_NODE_STALE", devices.UVM, "/proc/devices cannot be read", severity="unknown")]
    return []


def _hmm(facts: Facts) -> list[Finding]:
    uvm, cuda = facts["uvm"], facts["cuda"] or {}
    subject = "uvm_disable_hmm"
    refused = cuda.get("call") == "cuInit" and cuda.get("result") == cuda_codes.NOT_INITIALIZED
    proof = "cuInit returns 3"
    if not uvm["loaded"]:
        return []
    if uvm["disable_hmm"] is False:
        detail = "it is N in the loaded module" + (f", and {proof}" if refused else "")
        return [finding("HMM_CONFLICT", subject, detail)]
    if uvm["disable_hmm"] is None:
        if refused:
            return [finding("HMM_CONFLICT", subject, f"{proof}; the loaded module does not show the parameter")]
        return [finding("HMM_CONFLICT", subject, "the loaded module does not show the parameter", severity="unknown")]
    if facts["place"] == "node" and uvm["disable_hmm_on_disk"] is not True:
        unread = uvm["disable_hmm_on_disk"] is None
        detail = "the files could not all be read" if unread else "it is Y now, and no file or kernel parameter sets it"
        return [finding("HMM_NOT_PERSISTENT", subject, detail, severity="unknown" if unread else None)]
    return []


_BY_ERRNO = {
    "EPERM": "DEVICE_DENIED",
    "EACCES": "DEVICE_NOT_ACCESSIBLE",
    "ENXIO": "DEVICE_NODE_DEAD",
    "ENODEV": "DEVICE_NODE_DEAD",
    devices.NOT_A_DEVICE: "DEVICE_NODE_DEAD",
    devices.HUNG: "DEVICE_HUNG",
}


def _nodes(facts: Facts) -> list[Finding]:
    found = []
    for node in facts["devices"]:
        path, opens = node["path"], node["opens"]
        is_uvm = path.startswith(devices.UVM)
        optional = "warn" if path in devices.OPTIONAL else None
        told = ", ".join(f"{key} {node[key]}" for key in ("major", "minor", "mode", "uid", "gid"))
        if is_uvm and facts["uvm"]["loaded"] is False:
            continue  # UVM_NOT_LOADED has been said
        if node["major"] is not None and node["expected_major"] not in (None, node["major"]):
            fault = "UVM_NODE_STALE" if is_uvm else "DEVICE_NODE_DEAD"
            detail = f"its major is {node['major']}, /proc/devices has {node['expected_major']}; opening gives {opens}"
            found.append(finding(fault, path, detail, severity=optional))
        elif opens == devices.NOT_TRIED:
            detail = "not tried: opening another node did not return"
            found.append(finding("DEVICE_OPEN_FAILED", path, detail, severity="unknown"))
        elif opens != devices.OK:
            fault = _BY_ERRNO.get(opens, "DEVICE_OPEN_FAILED")
            found.append(finding(fault, path, f"opening gives {opens}; {told}", severity=optional))
    return found


def _capabilities(facts: Facts) -> list[Finding]:
    """Nothing that computes on a whole GPU needs them, so a fault there stops no one."""
    return [
        finding("DEVICE_NODE_DEAD", node["path"], f"its major is {node['major']}, /proc/devices has {expected}", "warn")
        for node in facts["capability_nodes"]
        if (expected := node["expected_major"]) not in (None, node["major"])
    ]


def _cuda(facts: Facts, said: set[str]) -> list[Finding]:
    """``said`` are the faults found before: what they explain is not said twice."""
    cuda = facts["cuda"]
    if cuda is None:
        return []
    if cuda["hung"]:
        return [finding("CUDA_HUNG", "CUDA", cuda["error"])]
    hidden = cuda["visible_devices"]
    note = "" if hidden is None else f"; CUDA_VISIBLE_DEVICES is {hidden!r}"
    code = cuda["result"]
    if cuda["error"] and code is None:
        if cuda["call"] is None and facts["driver"]["user_library"] is None:
            missing = [finding("DRIVER_USERSPACE_MISSING", "libcuda.so.1")]
            return [] if "DRIVER_USERSPACE_MISSING" in said else missing
        return [finding("CUDA_INIT_FAILED", "CUDA", cuda["error"])]
    if cuda["error"]:
        if code == cuda_codes.NOT_INITIALIZED and "HMM_CONFLICT" in said:
            return []
        # Code 3 without HMM is rare enough that the table's cause would send people the wrong way.
        but = ", which is not so here" if code == cuda_codes.NOT_INITIALIZED else ""
        return [finding("CUDA_INIT_FAILED", "CUDA", f"{cuda['error']}; usually {cuda_codes.cause(code)}{but}{note}")]
    if not cuda["devices"]:
        return [finding("CUDA_INIT_FAILED", "CUDA", f"cuInit succeeds and there is no device{note}")]
    seen = {gpu["bus_id"] for gpu in cuda["gpus"]}
    return [
        finding("CUDA_GPU_MISSING", gpu["bus_id"], f"{gpu['device']} is here, CUDA has {cuda['devices']} GPUs{note}")
        for gpu in facts["gpus"]
        if gpu["driven"] and gpu["bus_id"] not in seen
    ]
