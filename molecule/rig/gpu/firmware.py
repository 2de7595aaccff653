# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's UEFI firmware: the variables of ``/sys/firmware/efi/efivars`` that Secure Boot and the shim's key list rest on.

    python3 -m gpu.firmware secure-boot FOLDER on|off    what somebody sets in the firmware's menu
    python3 -m gpu.firmware enrol FOLDER                 what somebody confirms in the MOK manager at the console

``FOLDER`` is the node's hardware folder on the controller. Variables outlive a power cycle. A real machine takes both over at a
boot; here they hold at once. Also runs on the node, where ``root`` is ``/``.
"""

from __future__ import annotations

import struct
import sys
import uuid
from pathlib import Path

VARIABLES = "sys/firmware/efi/efivars"
GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072")  # EFI_CERT_X509_GUID
SECURE_BOOT = f"SecureBoot-{GLOBAL}"
TRUSTED = f"MokListRT-{SHIM}"
REQUESTED = f"MokNew-{SHIM}"
# What a boot loader says of itself (https://systemd.io/BOOT_LOADER_INTERFACE).
LOADER = "LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
# BOOTSERVICE_ACCESS and RUNTIME_ACCESS, and NON_VOLATILE for what is stored: the first four bytes that efivarfs shows.
_VOLATILE, _STORED = 6, 7


def power_on(root: Path, loader: str | None = None) -> None:
    """Make the variables that every firmware has, where they are not there yet: Secure Boot is off. ``loader`` is started."""
    (root / VARIABLES).mkdir(parents=True, exist_ok=True)
    if not (root / VARIABLES / SECURE_BOOT).exists():
        set_secure_boot(root, False)
    (root / VARIABLES / LOADER).unlink(missing_ok=True)
    if loader:
        _write(root, LOADER, _VOLATILE, f"{loader}\0".encode("utf-16-le"))


def set_secure_boot(root: Path, on: bool) -> None:
    """Switch it on or off."""
    _write(root, SECURE_BOOT, _VOLATILE, bytes([on]))


def secure_boot(root: Path) -> bool:
    """Whether it is on."""
    return _read(root, SECURE_BOOT)[-1:] == b"\1"


def certificates(root: Path, variable: str = TRUSTED) -> list[bytes]:
    """The X.509 certificates (DER) in a variable's signature lists (UEFI 32.4.1)."""
    data, found = _read(root, variable), []
    while len(data) >= 28:
        kind, size, header, entry = uuid.UUID(bytes_le=data[:16]), *struct.unpack_from("<III", data, 16)
        entries = data[28 + header : size]
        if kind == X509 and entry > 16:
            found += [entries[at + 16 : at + entry] for at in range(0, len(entries) - entry + 1, entry)]
        data = data[size:]
    return found


def request(root: Path, certificate: bytes) -> None:
    """Ask for a certificate to be enrolled: it waits for somebody at the console."""
    _write_list(root, REQUESTED, [*certificates(root, REQUESTED), certificate])


def enrol(root: Path) -> int:
    """Confirm what was asked for; how many certificates that were."""
    asked = certificates(root, REQUESTED)
    _write_list(root, TRUSTED, [*certificates(root), *asked])
    (root / VARIABLES / REQUESTED).unlink(missing_ok=True)
    return len(asked)


def _write_list(root: Path, variable: str, found: list[bytes]) -> None:
    lists = [X509.bytes_le + struct.pack("<III", 44 + len(one), 0, 16 + len(one)) + bytes(16) + one for one in found]
    _write(root, variable, _VOLATILE if variable == TRUSTED else _STORED, b"".join(lists))


def _read(root: Path, variable: str) -> bytes:
    path = root / VARIABLES / variable
    return path.read_bytes()[4:] if path.exists() else b""


def _write(root: Path, variable: str, attributes: int, data: bytes) -> None:
    (root / VARIABLES / variable).write_bytes(struct.pack("<I", attributes) + data)


def main(arguments: list[str]) -> None:
    """The command line, on the controller."""
    if arguments[:1] == ["secure-boot"] and len(arguments) == 3 and arguments[2] in ("on", "off"):
        set_secure_boot(Path(arguments[1]), arguments[2] == "on")
    elif arguments[:1] == ["enrol"] and len(arguments) == 2:
        print(f"{enrol(Path(arguments[1]))} enrolled")
    else:
        raise SystemExit("usage: firmware secure-boot FOLDER on|off, firmware enrol FOLDER")


if __name__ == "__main__":
    main(sys.argv[1:])
