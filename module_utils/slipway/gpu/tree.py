# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a machine's files below a root, with a memory of what was there and could not be read."""

from __future__ import annotations

import errno
import os

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


class Tree:
    """``root`` stands for ``/``. ``unreadable`` maps each path that exists and refused to the name of its errno."""

    def __init__(self, root: str = "/") -> None:
        self.root = root
        self.unreadable: dict[str, str] = {}

    def path(self, path: str) -> str:
        """The absolute ``path`` below the root."""
        return os.path.join(self.root, path.lstrip("/"))

    def text(self, path: str) -> str | None:
        """The file's text, or ``None`` if there is none or it could not be read (which is then remembered)."""
        try:
            with open(self.path(path), encoding="utf-8", errors="replace") as stream:
                return stream.read()
        except OSError as error:
            self.remember(path, error)
            return None

    def data(self, path: str) -> bytes | None:
        """The file's bytes, or ``None`` as for ``text``."""
        try:
            with open(self.path(path), "rb") as stream:
                return stream.read()
        except OSError as error:
            self.remember(path, error)
            return None

    def attribute(self, path: str) -> str | None:
        """A one-line sysfs attribute. One that refuses has no value (a link that is down gives EINVAL): ``None``."""
        try:
            with open(self.path(path), encoding="ascii", errors="replace") as stream:
                return stream.read().strip()
        except OSError:
            return None

    def binary_attribute(self, path: str) -> bytes | None:
        """A binary sysfs attribute (a PCI device's ``config``), as much of it as is shown; ``None`` as for ``attribute``."""
        try:
            with open(self.path(path), "rb") as stream:
                return stream.read()
        except OSError:
            return None

    def names(self, path: str) -> list[str] | None:
        """What lies in a folder, sorted, or ``None`` as for ``text``."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError as error:
            self.remember(path, error)
            return None

    def exists(self, path: str) -> bool:
        """Whether there is something at ``path``."""
        return os.path.exists(self.path(path))

    def link_name(self, path: str) -> str | None:
        """The last part of what a link points to (a PCI device's ``driver``), or ``None`` if it is not there."""
        try:
            return os.path.basename(os.readlink(self.path(path)))
        except OSError as error:
            self.remember(path, error)
            return None

    def remember(self, path: str, error: OSError) -> None:
        """Keep that something is there and could not be read; what is not there is no more than that."""
        if error.errno not in _ABSENT:
            self.unreadable[path] = errno.errorcode.get(error.errno or 0, str(error.errno))
