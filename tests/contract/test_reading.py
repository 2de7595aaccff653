# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the contract that only reads. What it rests on: the guard sends nothing but GETs, and a login.

Here it meets guests that are somebody's. What a failure says of them goes into a report for others: numbers and keys, no values.
"""

from __future__ import annotations

import re

import pytest
from ansible.module_utils.slipway.pve import api, lookup, properties
from ansible.modules import pve_container, pve_container_info, pve_preflight, pve_snapshot
from contract.stage import DISK_GIB, Stage

# The part of a property string that stands without its name.
DEFAULT_KEYS = {"rootfs": "volume", "mp": "volume", "dev": "path", "net": None, "features": None}


def spare_vmid(reader: Stage) -> int:
    """A vmid without a guest: the user's first, or one that Proxmox names."""
    return reader.settings.vmids[0] if reader.settings.vmids else int(reader.client.call("get", "cluster/nextid"))


def declared(reader: Stage) -> dict[str, object]:
    """A guest on a storage and a bridge of the user's."""
    settings = reader.settings
    for key in ("ostemplate", "storage"):
        if not getattr(settings, key):
            pytest.skip(f"'{key}' is not given")
    return {
        "vmid": spare_vmid(reader),
        "hostname": "contract",
        "ostemplate": settings.ostemplate,
        "rootfs": {"storage": settings.storage, "size_gib": DISK_GIB},
        "memory_mib": 256,
        "features": {"nesting": True},
        **reader.quiet_net(),
    }


def test_the_version_is_one_that_slipway_is_for(reader: Stage) -> None:
    found = re.match(r"(\d+)\.(\d+)", reader.client.call("get", "version")["version"])
    assert found and (8, 2) <= (int(found[1]), int(found[2])) < (10, 0)


def test_the_node_has_what_was_named(reader: Stage) -> None:
    settings, client = reader.settings, reader.client
    states = {row["node"]: row.get("status") for row in api.nodes(client)}
    assert states.get(settings.node) == "online"
    storages = {row["storage"]: row for row in api.storages(client, settings.node)}
    bridges = [row["iface"] for row in api.bridges(client, settings.node)]
    if settings.storage:
        assert "rootdir" in storages[settings.storage]["content"].split(",")
    if settings.bridge:
        assert settings.bridge in bridges
    if settings.ostemplate:
        rows = api.templates(client, settings.node, settings.ostemplate.split(":")[0])
        assert settings.ostemplate in [row["volid"] for row in rows]


def test_the_identity_is_told_what_it_may(reader: Stage) -> None:
    tree = api.own_permissions(reader.client)
    assert all(path.startswith("/") for path in tree)
    if reader.is_root:
        assert tree["/"]["Sys.Modify"] == 1
    else:
        assert tree, "it has no privilege at all"


def test_every_guest_is_told(reader: Stage) -> None:
    rows = api.containers(reader.client, reader.settings.node)
    told = reader.run(pve_container_info, {})
    assert told["rc"] == 0, told.get("msg")
    found = {guest["vmid"]: guest for guest in told["containers"]}
    # One that came or went in between is no fault.
    known = {int(row["vmid"]): row for row in rows}
    assert len(found.keys() ^ known.keys()) <= 1
    both = sorted(found.keys() & known.keys())
    assert [vmid for vmid in both if found[vmid]["hostname"] not in (None, known[vmid].get("name"))] == []
    assert [vmid for vmid in both if not re.fullmatch("[0-9a-f]{40}", found[vmid]["digest"])] == []


def test_property_strings_of_guests_are_understood(reader: Stage) -> None:
    strange = []
    for row in api.containers(reader.client, reader.settings.node):
        for key, value in api.config(reader.client, reader.settings.node, int(row["vmid"])).items():
            kind = re.sub(r"\d+$", "", key)
            try:
                options = properties.parse(value, DEFAULT_KEYS[kind]) if kind in DEFAULT_KEYS else {}
            except ValueError:
                strange.append(f"{key} of {row['vmid']}")
                continue
            # Options without a value, a volume or a path among them.
            strange += [f"{name} in {key} of {row['vmid']}" for name, given in options.items() if not given]
    assert strange == []


def test_a_guest_that_is_there_stays_as_it_is(reader: Stage) -> None:
    rows = [row for row in api.containers(reader.client, reader.settings.node) if not row.get("lock")]
    if not rows:
        pytest.skip("the node has no guest that could be looked at")
    vmid = int(rows[0]["vmid"])
    result = reader.run(pve_container, {"vmid": vmid})
    unchanged = result["rc"] == 0 and not result["changed"]
    assert unchanged, f"guest {vmid} could not be read, or would be changed by a declaration of nothing"
    assert lookup.holder(reader.client, vmid) is not None, f"vmid {vmid} is told as free"


def test_a_guest_that_is_not_there(reader: Stage) -> None:
    vmid = spare_vmid(reader)
    assert lookup.holder(reader.client, vmid) is None
    reader.stays(pve_container, {"vmid": vmid, "state": "absent"})
    assert "it does not exist" in reader.refused(pve_container, {"vmid": vmid})["msg"]
    assert "it does not exist" in reader.refused(pve_snapshot, {"vmid": vmid, "name": "proven"})["msg"]


def test_nothing_stands_against_a_guest(reader: Stage) -> None:
    ahead = reader.run(pve_preflight, declared(reader))
    assert ahead["rc"] == 0, ahead.get("msg")
    assert ahead["identity"] == reader.client.identity and ahead["container"]["exists"] is False
    bad = [found for found in ahead["findings"] if found["severity"] in ("fail", "unknown")]
    assert [f"{found['summary']} {found['detail']} {found['remedy']}" for found in bad] == []


def test_a_new_guest_is_foretold(reader: Stage) -> None:
    foretold = reader.foretold(pve_container, {**declared(reader), "state": "started"})
    assert foretold["rc"] == 0 and foretold["changed"], foretold.get("msg")
    assert foretold["diff"]["after"]["status"] == "running"


def test_only_root_may_set_devices(reader: Stage) -> None:
    options = {**declared(reader), "devices": [{"path": "/dev/fuse"}]}
    if reader.is_root:
        assert reader.foretold(pve_container, options)["diff"]["after"]["dev0"] == "/dev/fuse"
        return
    result = reader.refused(pve_container, options)
    assert "may not set dev0" in result["msg"] and result["findings"][0]["id"] == "PVE_ROOT_ONLY_KEYS"
