# SPDX-License-Identifier: GPL-3.0-or-later
"""What a start that failed says."""

from __future__ import annotations

from ansible.module_utils.slipway.pve import power

# Of a start with debug, in the form of lxc 6.0; names replaced.
LOG = """\
lxc-start 101 20261201101010.100 INFO     confile - ../src/lxc/confile.c:set_config_idmaps:2299 - Read uid map
lxc-start 101 20261201101010.101 DEBUG    seccomp - ../src/lxc/seccomp.c:parse_config_v2:664 - Host native arch is [3221225534]
DEBUG    utils - ../src/lxc/utils.c:run_buffer:560 - Script exec hook 101 lxc pre-start produced output: volume 'x' does not exist
20261201101010.102 ERROR    utils - ../src/lxc/utils.c:run_buffer:571 - Script exited with status 2
WARN     conf - ../src/lxc/conf.c:lxc_setup:99 - Something odd
NOTICE   start - ../src/lxc/start.c:start:2205 - Exec'ing
mount_entry: 100 No such file or directory - Failed to mount "/srv/models"

mount_entry: 100 No such file or directory - Failed to mount "/srv/models"
TASK ERROR: startup for container '101' failed
"""


def test_what_is_no_reason_is_left_out() -> None:
    assert power.reasons(LOG.splitlines()) == [
        "volume 'x' does not exist",
        "ERROR    utils - ../src/lxc/utils.c:run_buffer:571 - Script exited with status 2",
        "WARN     conf - ../src/lxc/conf.c:lxc_setup:99 - Something odd",
        'mount_entry: 100 No such file or directory - Failed to mount "/srv/models"',
        "TASK ERROR: startup for container '101' failed",
    ]
    assert len(power.reasons(f"line {number}" for number in range(99))) == 20
