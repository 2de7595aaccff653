# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's ``mokutil``, on the rig's firmware variables: state of Secure Boot, and the keys that the shim's list has.

The real one would not take a plain folder for efivarfs. Its words and, for --test-key, its unusual status: 1 is "enrolled".
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpu import firmware

ROOT = Path("/")


def main(arguments: list[str], root: Path = ROOT) -> int:
    """The command line."""
    option, *files = arguments or [""]
    if option == "--sb-state" and not files:
        print(f"SecureBoot {'enabled' if firmware.secure_boot(root) else 'disabled'}")
        return 0
    if option in ("-l", "--list-enrolled") and not files:
        print(f"{len(firmware.certificates(root))} enrolled")
        return 0
    if option in ("-t", "--test-key", "-i", "--import") and len(files) == 1:
        try:
            certificate = Path(files[0]).read_bytes()
        except OSError as error:
            return _fail(f"Failed to get file status, {files[0]}: {error.strerror}")
        if certificate[:1] != b"0":  # the first byte of every certificate in DER: a sequence
            return _fail(f"Abort!!! {files[0]} is not a valid x509 certificate in DER format")
        if certificate in firmware.certificates(root):
            print(f"{files[0]} is already enrolled")
            return 1 if option in ("-t", "--test-key") else 0
        if certificate in firmware.certificates(root, firmware.REQUESTED):
            print(f"{files[0]} is already in the enrollment request")
            return 1 if option in ("-t", "--test-key") else 0
        if option in ("-t", "--test-key"):
            print(f"{files[0]} is not enrolled")
            return 0
        print("input password: ", end="", flush=True)
        password = sys.stdin.readline()
        print("\ninput password again: ")
        if not password.strip() or sys.stdin.readline() != password:
            return _fail("password doesn't match\nFailed to get password")
        firmware.request(root, certificate)
        return 0
    return _fail("Usage:\n  mokutil OPTIONS [ARGS...]")


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 255


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
