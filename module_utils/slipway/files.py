# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing a file whole or not at all, also on Proxmox's cluster file system; and reading it back to the same bytes."""

from __future__ import annotations

import os
import typing as t
from contextlib import suppress

if t.TYPE_CHECKING:
    from pathlib import Path


def replace(path: Path, text: str, mode: int = 0o644, chmod: bool = True) -> None:
    """Write a temporary file in the same folder, sync it and rename it over ``path``. Raises OSError.

    ``chmod=False`` leaves the mode to the umask and the file system: pmxcfs (/etc/pve) keeps modes of its own and refuses
    chmod (ansible#70535).
    """
    temporary = path.with_name(f"{path.name}.slipway.{os.getpid()}")
    # Left over by a process of the same number that was killed; it never became anybody's file.
    with suppress(FileNotFoundError):
        temporary.unlink()
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(handle, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            if chmod:
                os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def read(path: Path) -> str:
    """Read a file so that writing it again gives the same bytes, whatever is in it. Raises OSError."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()
