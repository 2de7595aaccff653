# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command and see meanwhile which of some addresses answer: `watch.py ADDRESS,ADDRESS COMMAND...`, which ends with its status.

The last line is JSON: for each address how often it was seen down, and how often two were down together.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time

PORT = 8006  # Proxmox's API: gone before the node goes down, back when its services are


def is_up(address: str) -> bool:
    try:
        socket.create_connection((address, PORT), timeout=1).close()
    except OSError:
        return False
    return True


def main(addresses: list[str], command: list[str]) -> int:
    down = dict.fromkeys(addresses, 0)
    together = 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            gone = [address for address in addresses if not is_up(address)]
            for address in gone:
                down[address] += 1
            together += len(gone) > 1
            time.sleep(0.1)
    print(json.dumps({"down": down, "together": together}), flush=True)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].split(","), sys.argv[2:]))
