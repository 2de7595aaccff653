# SPDX-License-Identifier: GPL-3.0-or-later
"""``/etc/pve`` as a file system of its own, as on Proxmox: ``python3 -m pve.pmxcfs BEHIND MOUNTPOINT``.

Its files lie as plain files below BEHIND. What makes it pmxcfs: modes and owners are its own and can not be changed (chmod and
chown give EPERM, unless they ask for what is there), no file is larger than a mebibyte, there are no new links and no extended
attributes, and without quorum nothing is written (EACCES). It speaks the kernel's FUSE protocol itself (linux/fuse.h, 7.31),
because a node has no library for that.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import typing as t
from pathlib import Path

LARGEST_FILE_BYTES = 1024 * 1024
LARGEST_WRITE_BYTES = 128 * 1024
WWW_DATA = 33
ROOT_ID = 1
IN, OUT = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<6Q10I")
MODE, UID, GID, SIZE = 1, 2, 4, 8  # which attributes a SETATTR is about
FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36  # these get no answer
UNMOUNTED = (errno.ENODEV, errno.ECONNABORTED)
FUSE = os.makedev(10, 229)
BEHIND = "var/lib/pve-cluster/db"  # below a node's root: where the plain files are seen while this is in front of them

Answer = t.Optional[bytes]


class Files:
    """The files behind, by the numbers that the kernel knows them by, and the answers to its requests."""

    group = WWW_DATA
    # Requests that are answered by a thread of their own, since they may have to wait for something.
    waits: tuple[int, ...] = ()

    def __init__(self, behind: Path) -> None:
        self.behind = behind
        self.names = {ROOT_ID: ""}
        self.numbers = {"": ROOT_ID}
        self.next = ROOT_ID + 1

    def quorate(self) -> bool:
        try:
            return bool(json.loads((self.behind / ".members").read_text())["cluster"]["quorate"])
        except (OSError, KeyError):
            return True

    def _path(self, number: int, name: bytes = b"") -> str:
        inside = self._inside(number, name)
        return f"{self.behind}/{inside}" if inside else str(self.behind)

    def _inside(self, number: int, name: bytes = b"") -> str:
        if number not in self.names:
            raise FileNotFoundError(errno.ENOENT, "gone")
        return "/".join(filter(None, (self.names[number], os.fsdecode(name.rstrip(b"\0")))))

    def _writable(self) -> None:
        if not self.quorate():
            raise PermissionError(errno.EACCES, "no quorum")

    def _mode(self, inside: str, mode: int) -> int:
        private = "priv" in inside.split("/")
        allowed = 0o755 if stat.S_ISDIR(mode) or stat.S_ISLNK(mode) else 0o640
        return stat.S_IFMT(mode) | (allowed & (0o700 if private else 0o777) & (0o777 if self.quorate() else 0o555))

    def _attributes(self, number: int, inside: str, found: os.stat_result) -> bytes:
        times = [
            (int(at // 10**9), int(at % 10**9)) for at in (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
        ]
        whole, rest = [at[0] for at in times], [at[1] for at in times]
        owner = (self._mode(inside, found.st_mode), found.st_nlink, 0, self.group, 0, 4096, 0)
        return ATTRIBUTES.pack(number, found.st_size, found.st_blocks, *whole, *rest, *owner)

    def _entry(self, inside: str) -> bytes:
        found = os.lstat(f"{self.behind}/{inside}")
        if inside not in self.numbers:
            self.numbers[inside], self.names[self.next] = self.next, inside
            self.next += 1
        number = self.numbers[inside]
        return struct.pack("<4Q2I", number, 0, 0, 0, 0, 0) + self._attributes(number, inside, found)

    def _forget(self, inside: str) -> None:
        if inside in self.numbers:
            del self.names[self.numbers.pop(inside)]

    def answer(self, opcode: int, number: int, body: bytes) -> bytes:
        """The body of an answer. Raises OSError."""
        method = METHODS.get(opcode)
        if method is None:
            raise OSError(errno.ENOSYS, "not there")
        # By name: another kind of file system has some of its own.
        answer: Answer = getattr(self, method.__name__)(number, body)
        return answer or b""

    def lookup(self, number: int, body: bytes) -> bytes:
        return self._entry(self._inside(number, body))

    def getattr(self, number: int, body: bytes) -> bytes:
        by_handle, _, handle = struct.unpack_from("<IIQ", body) if body else (0, 0, 0)
        # What is open is still there when its name is gone or is another file's.
        found = os.fstat(handle) if by_handle & 1 else os.lstat(self._path(number))
        return struct.pack("<QII", 0, 0, 0) + self._attributes(number, self.names.get(number, ""), found)

    def setattr(self, number: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        mode, _, uid, gid = struct.unpack_from("<IIII", body, 68)
        inside = self._inside(number)
        found = os.lstat(self._path(number))
        if valid & (MODE | UID | GID | SIZE):
            self._writable()
        if valid & MODE and stat.S_IMODE(mode) != stat.S_IMODE(self._mode(inside, found.st_mode)):
            raise PermissionError(errno.EPERM, "chmod")
        if (valid & UID and uid != 0) or (valid & GID and gid != WWW_DATA):
            raise PermissionError(errno.EPERM, "chown")
        if valid & SIZE:
            self._fits(size)
            os.truncate(self._path(number), size)
        return self.getattr(number, b"")

    def _fits(self, size: int) -> None:
        if size > LARGEST_FILE_BYTES:
            raise OSError(errno.EFBIG, "too large")

    def readlink(self, number: int, body: bytes) -> bytes:
        return os.fsencode(os.readlink(self._path(number)))

    def mknod(self, number: int, body: bytes) -> bytes:
        self._writable()
        if not stat.S_ISREG(struct.unpack_from("<I", body)[0]):
            raise PermissionError(errno.EPERM, "mknod")
        os.close(os.open(self._path(number, body[16:]), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640))
        return self._entry(self._inside(number, body[16:]))

    def mkdir(self, number: int, body: bytes) -> bytes:
        self._writable()
        os.mkdir(self._path(number, body[8:]), 0o755)
        return self._entry(self._inside(number, body[8:]))

    def unlink(self, number: int, body: bytes) -> None:
        self._writable()
        os.unlink(self._path(number, body))
        self._forget(self._inside(number, body))

    def rmdir(self, number: int, body: bytes) -> None:
        self._writable()
        os.rmdir(self._path(number, body))
        self._forget(self._inside(number, body))

    def rename(self, number: int, body: bytes) -> None:
        self._rename(number, struct.unpack_from("<Q", body)[0], body[8:])

    def rename2(self, number: int, body: bytes) -> None:
        target, flags = struct.unpack_from("<QI", body)
        if flags:
            raise OSError(errno.EINVAL, "flags")
        self._rename(number, target, body[16:])

    def _rename(self, number: int, target: int, names: bytes) -> None:
        self._writable()
        old, new = names.split(b"\0")[:2]
        before, after = self._inside(number, old), self._inside(target, new)
        os.rename(f"{self.behind}/{before}", f"{self.behind}/{after}")
        self._forget(after)
        for known in [name for name in self.numbers if name == before or name.startswith(f"{before}/")]:
            moved = self.numbers.pop(known)
            self.names[moved] = after + known[len(before) :]
            self.numbers[self.names[moved]] = moved

    def open(self, number: int, body: bytes) -> bytes:
        flags = struct.unpack_from("<I", body)[0]
        if flags & (os.O_WRONLY | os.O_RDWR):
            self._writable()
        return struct.pack("<QII", os.open(self._path(number), flags & ~os.O_CREAT & ~os.O_NOFOLLOW), 0, 0)

    def create(self, number: int, body: bytes) -> bytes:
        self._writable()
        handle = os.open(self._path(number, body[16:]), struct.unpack_from("<I", body)[0] | os.O_CREAT, 0o640)
        return self._entry(self._inside(number, body[16:])) + struct.pack("<QII", handle, 0, 0)

    def read(self, number: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(handle, size, offset)

    def write(self, number: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        self._writable()
        self._fits(offset + size)
        return struct.pack("<II", os.pwrite(handle, body[40 : 40 + size], offset), 0)

    def release(self, number: int, body: bytes) -> None:
        os.close(struct.unpack_from("<Q", body)[0])

    def fsync(self, number: int, body: bytes) -> None:
        os.fsync(struct.unpack_from("<Q", body)[0])

    def nothing(self, number: int, body: bytes) -> None:
        """Agreed, and nothing to do."""

    def opendir(self, number: int, body: bytes) -> bytes:
        os.scandir(self._path(number)).close()
        return struct.pack("<QII", 0, 0, 0)

    def readdir(self, number: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        with os.scandir(self._path(number)) as found:
            kinds = sorted((entry.name, entry.stat(follow_symlinks=False).st_mode >> 12) for entry in found)
        listing = b""
        for at, (name, kind) in enumerate([(".", 4), ("..", 4), *kinds][offset:], offset + 1):
            raw = os.fsencode(name)
            entry = struct.pack("<QQII", at, at, len(raw), kind) + raw
            entry += b"\0" * (-len(entry) % 8)
            if len(listing) + len(entry) > size:
                break
            listing += entry
        return listing

    def statfs(self, number: int, body: bytes) -> bytes:
        found = os.statvfs(self.behind)
        counts = (found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree)
        return struct.pack("<5Q10I", *counts, found.f_bsize, 255, found.f_frsize, *(0,) * 7)

    def init(self, number: int, body: bytes) -> bytes:
        readahead = struct.unpack_from("<III", body)[2]
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, readahead, 0, 16, 12, LARGEST_WRITE_BYTES, 1, 0, 0, 0)


METHODS: dict[int, t.Callable[[Files, int, bytes], Answer]] = {
    1: Files.lookup,
    3: Files.getattr,
    4: Files.setattr,
    5: Files.readlink,
    8: Files.mknod,
    9: Files.mkdir,
    10: Files.unlink,
    11: Files.rmdir,
    12: Files.rename,
    14: Files.open,
    15: Files.read,
    16: Files.write,
    17: Files.statfs,
    18: Files.release,
    20: Files.fsync,
    25: Files.nothing,  # flush
    26: Files.init,
    27: Files.opendir,
    28: Files.readdir,
    29: Files.nothing,  # releasedir
    30: Files.nothing,  # fsyncdir
    35: Files.create,
    45: Files.rename2,
}


def serve(device: int, files: Files) -> None:
    """Answer the kernel until the file system is unmounted."""
    while True:
        try:
            request = os.read(device, LARGEST_WRITE_BYTES + 4096)
        except OSError as error:
            if error.errno in UNMOUNTED:
                return
            if error.errno in (errno.EINTR, errno.ENOENT):
                continue
            raise
        _, opcode, unique, number, *_ = IN.unpack_from(request)
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        asked = (device, files, opcode, unique, number, request[IN.size :])
        if opcode in files.waits:
            threading.Thread(target=_reply, args=asked, daemon=True).start()
        else:
            _reply(*asked)


def _reply(device: int, files: Files, opcode: int, unique: int, number: int, asked: bytes) -> None:
    try:
        status, body = 0, files.answer(opcode, number, asked)
    except OSError as error:
        status, body = -(error.errno or errno.EIO), b""
    try:
        os.write(device, OUT.pack(OUT.size + len(body), status, unique) + body)
    except OSError as error:
        if error.errno not in (errno.ENOENT, *UNMOUNTED):  # nobody waits for it any more
            raise


def mount(mountpoint: Path, kind: str = "pmxcfs") -> int:
    """Mount the file system; returns what its requests are read from. Raises OSError."""
    path = Path("/dev/fuse")
    if not path.exists():
        os.mknod(path, stat.S_IFCHR | 0o600, FUSE)
    device = os.open(path, os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"/dev/fuse", os.fsencode(mountpoint), f"fuse.{kind}".encode(), 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount: {os.strerror(ctypes.get_errno())}")
    return device


def unmount_when_told(mountpoint: Path) -> None:
    """Unmount on SIGTERM, by force: a file that somebody holds open would keep the file system alive."""
    signal.sigwait({signal.SIGTERM})
    subprocess.run(["umount", "--force", "--lazy", mountpoint], check=True)


def main(behind: Path, mountpoint: Path, kind: type[Files] = Files, name: str = "pmxcfs") -> None:
    """Put the file system in front of the files that are at its mount point, which are then also to be seen ``behind``."""
    # Waited for by a thread: a handler could be kept waiting by a read that began a moment before, and one that runs keeps requests waiting.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    behind.mkdir(parents=True, exist_ok=True)
    # Private: else what is mounted in front of the files would also be mounted in front of them here.
    subprocess.run(["mount", "--bind", "--make-private", mountpoint, behind], check=True)
    device = mount(mountpoint, name)
    threading.Thread(target=unmount_when_told, args=(mountpoint,), daemon=True).start()
    try:
        serve(device, kind(behind))
    finally:
        subprocess.run(["umount", "--lazy", behind], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
