# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of tasks on containers: create, start, stop, shut down, reboot, destroy.

Each takes ``(node, say, vmid, **arguments)``; the arguments are JSON, because the work may run in another process.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from . import disks, lxcconf, lxclog, setup, update
from .conf import Conf
from .errors import ApiError, died
from .formats import parse_property_string
from .node import Node, check_lock, check_protection
from .permissions import NEW_VOLUME
from .schema import MOUNT
from .tasks import Say


def _offset(content: Conf) -> int:
    return lxcconf.ID_OFFSET if content.get("unprivileged") else 0


def _guest_root(node: Node, content: Conf) -> setup.GuestRoot:
    return setup.GuestRoot(node.storages.path(disks.entries(content)["rootfs"]), _offset(content))


def mount_folder(node: Node, vmid: int) -> None:
    """Proxmox mounts a guest's root disk here, also to unpack; the folder is there as long as the guest is."""
    (node.root / f"var/lib/lxc/{vmid}/rootfs").mkdir(parents=True, exist_ok=True)


def reserve(node: Node, vmid: int) -> None:
    """Take a vmid with a configuration that is locked. Raises ApiError where it is taken in the cluster."""
    with node.locked(vmid):
        if taken := node.guests().get(vmid):
            kind = {"lxc": "CT", "qemu": "VM"}[taken[0]]
            raise died(f"{kind} {vmid} already exists on node '{taken[1]}'")
        node.save(vmid, {"lock": "create"})


def after_clone(node: Node, vmid: int) -> None:
    """What makes a clone a machine of its own: a new machine ID. Its SSH host keys stay those of its source, as on Proxmox."""
    _guest_root(node, node.load(vmid)).write("etc/machine-id", "")
    mount_folder(node, vmid)


def allocate(node: Node, vmid: int, content: Conf) -> list[str]:
    """Turn every ``storage:size`` of a configuration into a volume; returns the new volume IDs."""
    made = []
    for key, volume in disks.volumes(content).items():
        if new := NEW_VOLUME.fullmatch(volume):
            volid = node.storages.allocate(new[1], vmid, _offset(content))
            made.append(volid)
            size = f"{float(new[2]):g}G"
            content[key] = update.canonical(key, content[key].replace(volume, volid, 1) + f",size={size}")
    return made


def plug_mounts(node: Node, vmid: int, content: Conf) -> None:
    """Give a running guest the disks that are pending and new; a volume that can not be plugged is freed, its key waits."""
    pending = content["pending"]
    for key in [key for key in disks.entries(pending) if key != "rootfs" and key not in content]:
        part: Conf = {"unprivileged": content.get("unprivileged", 0), key: update.canonical(key, pending[key])}
        made = allocate(node, vmid, part)
        volume, mount = disks.entries(part)[key], parse_property_string(MOUNT, part[key])
        source = str(node.storages.path(volume)) if key in disks.volumes(part) else volume
        if node.runtime.plug_mount(vmid, source, mount["mp"], bool(mount.get("ro"))):
            content[key] = part[key]
            del pending[key]
        else:
            for volid in made:
                node.storages.free(volid)


def create(
    node: Node,
    say: Say,
    vmid: int,
    content: Conf,
    ostemplate: str,
    password: str | None,
    ssh_public_keys: str | None,
    run: bool,
) -> None:
    """Make the volumes, unpack the template, write the configuration. What failed leaves nothing behind."""
    made: list[str] = []
    try:
        with node.locked(vmid):
            made = allocate(node, vmid, content)
            root = _guest_root(node, content)
            node.runtime.unpack(node.storages.template(ostemplate), root.path, say)
            content.setdefault("ostype", setup.os_type(root))
            say(f"Detected container architecture: {content.setdefault('arch', 'amd64')}")
            for line in setup.after_creation(root, password, ssh_public_keys):
                say(line)
            content = {"hostname": f"CT{vmid}", "memory": 512, "swap": 512, **content}
            mount_folder(node, vmid)
            node.save(vmid, content)
    except Exception as error:
        for volid in made:
            node.storages.free(volid)
        node.conf_path(vmid).unlink(missing_ok=True)
        raise died(f"unable to create CT {vmid} - {getattr(error, 'message', error)}") from error
    if run:
        start(node, say, vmid)


def start(node: Node, say: Say, vmid: int, skiplock: bool = False, debug: bool = False) -> None:
    """Apply what is pending, write the guest's own files and LXC's configuration, and start it.

    Why a start failed, the log tells only with ``debug``; that a device is missing, Proxmox finds and tells before.
    """
    with node.locked(vmid):
        content = node.load(vmid)
        if content.get("template"):
            raise died("you can't start a CT if it's a template")
        if not skiplock:
            check_lock(content)
        if content["pending"]:
            update.apply_stopped(content)
            allocate(node, vmid, content)
            node.save(vmid, content)
        unprivileged = bool(content.get("unprivileged"))
        devices = [node.runtime.pass_device(vmid, found, unprivileged) for _, found in lxcconf.device_numbers(content)]
        try:
            mounts = _before_start(node, vmid, content)
        except (ApiError, OSError) as error:
            told = lxclog.failed_hook(vmid, getattr(error, "message", str(error)), debug)
            for line in lxclog.shown(vmid, told):
                say(line)
            raise died(f"startup for container '{vmid}' failed") from error
        node.runtime.start(vmid, _rendered(node, vmid, content, devices, mounts), say, debug)


def _before_start(node: Node, vmid: int, content: Conf) -> dict[str, str]:
    """What Proxmox's hook before the start does: find and mount all disks, write the guest's own files.

    Returns the folders of the node that mpN are. Raises ApiError or OSError.
    """
    on_storages = disks.volumes(content)
    folders = {}
    for key, volume in disks.entries(content).items():
        path = node.storages.path(volume) if key in on_storages else Path(volume)
        if key in on_storages and not path.is_dir():
            raise died(f"zfs error: cannot open '{path.relative_to(node.root)}': dataset does not exist")
        if not path.exists():
            raise died(f"directory '{path}' does not exist")
        folders[key] = str(path)
    root = setup.GuestRoot(Path(folders.pop("rootfs")), _offset(content))
    setup.before_start(root, vmid, content, (node.root / "etc/resolv.conf").read_text())
    return folders


def _rendered(node: Node, vmid: int, content: Conf, devices: list[lxcconf.PassedDevice], mounts: dict[str, str]) -> str:
    """LXC's configuration."""
    extra = node.root / "etc/rig/guest-mounts"
    facts = lxcconf.Facts(
        rootfs=str(_guest_root(node, content).path),
        mounts=mounts,
        devices=devices,
        guest_mounts=[line for line in extra.read_text().splitlines() if line.strip()] if extra.exists() else [],
        controllers=node.runtime.controllers(),
    )
    return lxcconf.render(vmid, content, facts)


def stop(node: Node, say: Say, vmid: int, skiplock: bool = False) -> None:
    """Kill the guest."""
    with node.locked(vmid):
        if not skiplock:
            check_lock(node.load(vmid))
        if not node.runtime.stop(vmid, None):
            raise died(f"failed to stop CT {vmid}")


def shutdown(node: Node, say: Say, vmid: int, timeout_seconds: int = 60, force: bool = False) -> None:
    """Ask the guest to go down, and kill it afterwards if ``force`` allows that."""
    with node.locked(vmid):
        check_lock(node.load(vmid))
        if not node.runtime.stop(vmid, timeout_seconds) and not (force and node.runtime.stop(vmid, None)):
            raise died(f"command 'lxc-stop -n {vmid} --nokill --timeout {timeout_seconds}' failed: exit code 1")


def reboot(node: Node, say: Say, vmid: int, timeout_seconds: int = 60) -> None:
    """Shut down and start again, which is when pending changes take effect."""
    shutdown(node, say, vmid, timeout_seconds)
    start(node, say, vmid)


def destroy(node: Node, say: Say, vmid: int, force: bool = False) -> None:
    """Remove a guest with its volumes and its configuration."""
    with node.locked(vmid):
        content = node.load(vmid)
        check_destroyable(node, vmid, content, force)
        node.save(vmid, content)  # nothing is destroyed of a guest whose configuration can not be removed
        if node.runtime.running(vmid):
            node.runtime.stop(vmid, None)
        for volid in disks.owned(content):
            say(f"destroying volume {volid}")
            node.storages.free(volid)
        node.runtime.forget(vmid)
        node.conf_path(vmid).unlink()


def check_destroyable(node: Node, vmid: int, content: Conf, force: bool) -> None:
    """Refuse what is protected, locked or running."""
    check_protection(content, f"can't remove CT {vmid}")
    check_lock(content)
    if node.runtime.running(vmid) and not force:
        raise died(f"unable to destroy CT {vmid} - container is running")


def startup_order(content: Conf, vmid: int) -> tuple[int, int]:
    """Guests with an order come first, by it; then the others by number."""
    found = re.search(r"(?:^|,)(?:order=)?(\d+)(?:,|$)", content.get("startup", ""))
    return (int(found[1]) if found else 2**31, vmid)


def at_boot(node: Node, say: Say) -> None:
    """Start the guests that are to run after a boot. One that fails does not keep the others down."""
    found = [(vmid, node.load(vmid)) for vmid in node.vmids()]
    for vmid, content in sorted(found, key=lambda guest: startup_order(guest[1], guest[0])):
        if content.get("onboot") and not content.get("template") and not node.runtime.running(vmid):
            say(f"Starting CT {vmid}")
            try:
                start(node, say, vmid)
            except (ApiError, OSError) as error:
                say(f"Starting CT {vmid} failed: {error}")
            time.sleep(_delay(content, "up"))


def at_shutdown(node: Node, say: Say) -> None:
    """Shut the running guests down, last started first."""
    found = [(vmid, node.load(vmid)) for vmid in node.vmids() if node.runtime.running(vmid)]
    for vmid, content in sorted(found, key=lambda guest: startup_order(guest[1], guest[0]), reverse=True):
        say(f"Stopping CT {vmid}")
        node.runtime.stop(vmid, _delay(content, "down") or 60) or node.runtime.stop(vmid, None)


def _delay(content: Conf, name: str) -> int:
    found = re.search(rf"(?:^|,){name}=(\d+)", content.get("startup", ""))
    return int(found[1]) if found else 0
