# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user says of a node: what is understood, and what is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from contract.run import Run
from contract.settings import Unusable, load

HTTPS = "api_host: pve1.example.com\nnode: pve1\napi_user: deploy@pve\napi_token_id: slipway\n"
SSH = "api_host: pve1.example.com\nnode: pve1\n"
PLACE = "ostemplate: local:vztmpl/debian-13.tar.zst\nstorage: local-zfs\n"
SECRET = {"PROXMOX_TOKEN_SECRET": "7-letters"}


def written(folder: Path, text: str) -> Path:
    path = folder / "my-node.yml"
    path.write_text(text)
    return path


def test_ways(tmp_path: Path) -> None:
    by_token = load(written(tmp_path, HTTPS + "ca_path: ca.pem\n"), SECRET)
    assert by_token.ways == {
        "https": {
            "api_backend": "https",
            "api_host": "pve1.example.com",
            "api_user": "deploy@pve",
            "api_token_id": "slipway",
            "api_token_secret": "7-letters",
            "ca_path": str(tmp_path / "ca.pem"),
        }
    }
    assert by_token.vmids is None
    assert list(load(written(tmp_path, SSH), {}).ways) == ["ssh"]
    both = load(written(tmp_path, HTTPS + PLACE + "ways: [https, ssh]\nvmids: 9000-9002\n"), SECRET)
    assert both.ways["ssh"]["api_backend"] == "ssh_paramiko" and "api_token_secret" not in both.ways["ssh"]
    assert both.vmids == range(9000, 9003)
    assert "7-letters" not in repr(both)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- a list\n", "it has no keys"),
        ("node: pve1\n", "'api_host' is missing"),
        (HTTPS + "api_token_secret: x\n", "'api_token_secret' is a secret. Export it as PROXMOX_TOKEN_SECRET"),
        (HTTPS + "vmid: 9000-9009\n", "there is no key 'vmid'. Write vmids."),
        (HTTPS + "ways: [telnet]\n", "there is no way 'telnet'. Choose of https, ssh."),
        (HTTPS + PLACE + "vmids: 9000\n", "'vmids' is no range of 3 or more from 100 on"),
        (HTTPS + PLACE + "vmids: 50-60\n", "'vmids' is no range of 3 or more from 100 on"),
        (HTTPS + "vmids: 9000-9009\n", "guests are to be made on 9000-9009, and 'ostemplate' is missing"),
    ],
)
def test_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(Unusable) as caught:
        load(written(tmp_path, text), SECRET)
    assert sentence in str(caught.value)


def test_a_secret_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="PROXMOX_TOKEN_SECRET"):
        load(written(tmp_path, HTTPS), {})
    with pytest.raises(Unusable, match="Cannot read"):
        load(tmp_path / "none.yml", {})


def test_a_report_tells_nothing_private(tmp_path: Path) -> None:
    run = Run(load(written(tmp_path, HTTPS), SECRET))
    told = run.scrubbed(
        "UPID:pve1:0000ABCD: deploy@pve!slipway at pve1.example.com (192.0.2.21/24, BC:24:11:00:00:01) "
        "x7-lettersx pve-manager/9.1.4"
    )
    assert told == (
        "UPID:<node>:0000ABCD: <api_user>!slipway at <api_host> (<address>/24, <mac>) x<secret>x pve-manager/9.1.4"
    )
