# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from pve import formats, schema
from pve.errors import ApiError

PUT = "PUT /nodes/{node}/lxc/{vmid}/config"
WHERE = {"node": "node1", "vmid": "101"}


def _comparable(spec: dict[str, t.Any]) -> dict[str, t.Any]:
    keys = ("type", "enum", "maximum", "minLength", "maxLength", "requires")
    form = spec.get("format")
    return {
        **{key: spec[key] for key in keys if key in spec},
        "minimum": int(spec["minimum"]) if "minimum" in spec else None,
        "optional": bool(spec.get("optional")),
        "pattern": bool(spec.get("pattern")),
        "format": {key: _comparable(value) for key, value in form.items()} if isinstance(form, dict) else form,
    }


def test_tables_say_what_the_published_description_says(shared_data: Path) -> None:
    published = json.loads((shared_data / "pve-api-lxc.json").read_text())
    compared = 0
    for name in schema.METHODS.keys() & published.keys():
        theirs = published[name]["parameters"].get("properties", {})
        assert {key: _comparable(spec) for key, spec in schema.METHODS[name].items()} == {
            key: _comparable(spec) for key, spec in theirs.items()
        }, name
        compared += len(theirs)
    assert compared > 100


def test_real_device_strings(shared_data: Path) -> None:
    for text, case in json.loads((shared_data / "pve-golden.json").read_text())["devices"].items():
        try:
            parsed = formats.parse_property_string(schema.DEVICE, text)
        except formats.FormatError as error:
            assert (text, str(error)[:-1]) == (text, case["error"])
            continue
        if "path" not in parsed:  # the update refuses these, with words of its own
            assert case["error"] == "Path has to be defined"
            continue
        printed = formats.print_property_string(schema.DEVICE, parsed)
        assert (text, parsed, printed) == (text, case["parsed"], case["printed"])


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("memory", "15", "value must have a minimum value of 16"),
        ("cores", "8193", "value must have a maximum value of 8192"),
        ("cores", "two", "type check ('integer') failed - got 'two'"),
        ("onboot", "2", "type check ('boolean') failed - got '2'"),
        (
            "ostype",
            "beos",
            "value 'beos' does not have a value in the enumeration 'debian, devuan, ubuntu, centos, fedora, opensuse, "
            "archlinux, alpine, gentoo, nixos, unmanaged'",
        ),
        ("hostname", "a_b", "invalid format - value does not look like a valid DNS name\n"),
        ("dev0", "/dev/x,mode=660", "invalid format - format error\ndev0.mode: value does not match the regex pattern\n"),
        ("net0", "bridge=b", "invalid format - format error\nnet0.name: property is missing and it is not optional\n"),
        ("tags", "a;b!", "invalid format - invalid characters in tag\n"),
        ("digest", "0" * 41, "value may only be 40 characters long"),
        *((key, "1", "property is not defined in schema and the schema does not allow additional properties")
          for key in ("dev256", "dev01", "dev[n]", "lxc.idmap", "snaptime")),
    ],
)  # fmt: skip
def test_refused_values(key: str, value: str, why: str) -> None:
    with pytest.raises(ApiError) as caught:
        schema.check(PUT, {**WHERE, key: value})
    assert (caught.value.status, caught.value.errors) == (400, {key: why})


def test_every_refused_parameter_is_named() -> None:
    with pytest.raises(ApiError) as caught:
        schema.check("POST /nodes/{node}/lxc", {"node": "node1", "vmid": "9", "unique": True})
    assert set(caught.value.errors or {}) == {"vmid", "ostemplate", "restore"}


def test_values_come_out_typed() -> None:
    given = {
        **WHERE,
        "onboot": True,
        "memory": "64",
        "cpulimit": "1.5",
        "dev255": "/dev/x",
        "delete": ["tags", "cores"],
    }
    assert schema.check(PUT, given) == {
        **{"node": "node1", "vmid": 101, "onboot": 1, "memory": 64, "cpulimit": "1.5"},
        **{"dev255": "/dev/x", "delete": "tags,cores"},
    }


def test_property_strings_are_printed_in_proxmox_order() -> None:
    text = "type=veth,ip=dhcp,firewall=yes,bridge=vmbr0,name=eth0"
    parsed = formats.parse_property_string(schema.NETWORK, text)
    printed = formats.print_property_string(schema.NETWORK, parsed)
    assert printed == "name=eth0,bridge=vmbr0,firewall=1,ip=dhcp,type=veth"
