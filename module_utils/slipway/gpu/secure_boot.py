# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot: whether it is on, whether the key that signs modules is one that the kernel will trust, and modprobe's words."""

from __future__ import annotations

import re
import subprocess
import typing as t

from .tree import Tree

_VARIABLES = "/sys/firmware/efi/efivars"
_STATE = f"{_VARIABLES}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# 1 where somebody switched the shim's validation off: the kernel then counts as booted insecurely (efi/libstub/secureboot.c).
_INSECURE_SHIM = f"{_VARIABLES}/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"
# EKEYREJECTED and ENOKEY. A kernel that is only locked down says EPERM, which says nothing by itself.
_REFUSED = re.compile(r"Key was rejected by service|Required key not available")
_LOCKED_DOWN = re.compile(r"Operation not permitted|module is not signed|trusted by the kernel")


def is_on(tree: Tree) -> bool | None:
    """Whether the kernel was booted securely; ``None`` without EFI, or where its variables tell nothing.

    A variable in efivarfs is four bytes of attributes and then its value, here one byte.
    """
    state = tree.data(_STATE)
    if not state:
        return None
    insecure = tree.data(_INSECURE_SHIM)
    return state[-1] == 1 and not (insecure and insecure[-1] == 1)


def refused(modprobe_error: str, secure_boot: bool | None) -> bool:
    """Whether modprobe's words, or the installer's, say that the kernel wants a signature by a key that it trusts."""
    if _REFUSED.search(modprobe_error):
        return True
    return bool(secure_boot and _LOCKED_DOWN.search(modprobe_error))


def signing(tree: Tree, key: str, certificate: str, mokutil: str = "mokutil") -> dict[str, t.Any]:
    """``missing`` (files of the pair that are not there), ``enrolled`` and ``said``: what mokutil says of the certificate.

    ``enrolled`` is ``None`` where mokutil cannot tell. Its status is no help: 1 is "enrolled" and also many an error.
    """
    missing = [path or "nothing" for path in (key, certificate) if not path or not tree.exists(path)]
    found: dict[str, t.Any] = {"missing": missing, "enrolled": None, "said": ""}
    if not missing:
        try:
            line = [mokutil, "--test-key", tree.path(certificate)]
            done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            found["said"] = f"mokutil does not run: {error}"
        else:
            found["said"] = " ".join(f"{done.stdout} {done.stderr}".split())
            if "is already enrolled" in found["said"]:
                found["enrolled"] = True
            elif "is not enrolled" in found["said"] or "already in the enrollment request" in found["said"]:
                found["enrolled"] = False
    return found
