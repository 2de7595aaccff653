# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures of kernel modules as the kernel checks them: a PKCS#7 message at the end of the file (scripts/sign-file)."""

from __future__ import annotations

import struct
import subprocess
import tempfile
import typing as t
from pathlib import Path

MAGIC = b"~Module signature appended~\n"


def split(content: bytes) -> tuple[bytes, bytes] | None:
    """What was signed, and the signature; None for a file without one."""
    if not content.endswith(MAGIC):
        return None
    end = len(content) - len(MAGIC) - 12
    (size,) = struct.unpack_from(">I", content, end + 8)
    return content[: end - size], content[end - size : end]


def is_trusted(module: Path, certificates: t.Sequence[bytes]) -> bool:
    """Whether one of these certificates (DER) belongs to the key that signed this module's file."""
    parts = split(module.read_bytes())
    if parts is None:
        return False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "signed").write_bytes(parts[0])
        (folder / "signature").write_bytes(parts[1])
        for certificate in certificates:
            (folder / "certificate").write_bytes(certificate)
            # The chain is not asked for: that the certificate is on the list is what makes it trusted.
            line = [
                "openssl",
                "cms",
                "-verify",
                "-binary",
                "-noverify",
                "-nointern",
                "-inform",
                "DER",
                "-out",
                "/dev/null",
            ]
            files = ["-in", "signature", "-content", "signed", "-certfile", "certificate"]
            if subprocess.run([*line, *files], cwd=folder, capture_output=True).returncode == 0:
                return True
    return False
