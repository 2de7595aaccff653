# SPDX-License-Identifier: GPL-3.0-or-later
"""How the unit is hardened, and what must not be among it."""

from __future__ import annotations

from ansible.module_utils.slipway.engines import server

SETTINGS = server.service_settings(server.Request("sglang", "/opt/venv", "/srv/models/m", "m", "192.0.2.21", 8000))


def test_nothing_takes_the_gpus_or_what_is_compiled_at_run_time_away() -> None:
    away = {"PrivateDevices", "DeviceAllow", "DevicePolicy", "ProtectClock", "PrivateUsers", "DynamicUser"}
    assert not set(SETTINGS) & {*away, "MemoryDenyWriteExecute", "SystemCallFilter", "PrivateNetwork", "ProtectProc"}


def test_it_has_no_way_to_more_rights_and_writes_to_its_own_folders_only() -> None:
    assert (SETTINGS["NoNewPrivileges"], SETTINGS["CapabilityBoundingSet"]) == ("yes", "")
    assert (SETTINGS["ProtectSystem"], SETTINGS["PrivateTmp"], SETTINGS["UMask"]) == ("strict", "yes", "0077")


def test_all_of_it_ends_with_it() -> None:
    assert (SETTINGS["KillMode"], SETTINGS["RemoveIPC"], SETTINGS["LimitMEMLOCK"]) == (
        "control-group",
        "yes",
        "infinity",
    )
    assert "SendSIGKILL" not in SETTINGS  # systemd's own default ends what does not end by itself
