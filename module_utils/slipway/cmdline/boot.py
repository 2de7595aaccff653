# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeping kernel parameters on a host: the file is written whole or not at all, and the boot loader told of it.

The file and what the loader boots from are two things, and a run can be killed between them. So a record beside them says of
which text the loader was told, and in which boot: then the next run tells it, and one after a reboot that did not help says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import typing as t
from dataclasses import dataclass
from pathlib import Path

from .. import files
from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from ..gpu import place
from . import grub, loader, parameters

_SUBJECT = "the kernel command line"
_UUIDS = "etc/kernel/proxmox-boot-uuids"
_LOADER_INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_DROP_INS = "etc/default/grub.d"
_RECORD = "var/lib/slipway/kernel-cmdline.json"
# Where the tools are, if a PATH without them came with the connection.
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


class Host:
    """A host below ``root``, with what it boots by. Raises SlipwayError where that is none that is known."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        if place.find(str(root)) == place.GUEST:
            cause = "a container runs on its node's kernel and has none of its own"
            raise cannot("change", _SUBJECT, here(), cause, "Run this on the node")
        self.live = (self.text("proc/cmdline") or "").strip()
        try:
            self.loader = loader.find(
                loader.Evidence(
                    live=self.live,
                    loader_info=loader.loader_info(self._data(_LOADER_INFO)),
                    cmdline=self.text("etc/kernel/cmdline"),
                    proxmox_boot_tool=bool((self.text(_UUIDS) or "").strip()),
                )
            )
        except ValueError as error:
            remedy = "Set the parameters by this loader's own means"
            raise cannot("change", _SUBJECT, here(), str(error), remedy) from error

    @property
    def boot_id(self) -> str:
        return (self.text("proc/sys/kernel/random/boot_id") or "").strip()

    def text(self, path: str) -> str | None:
        """A file's text, None if there is none. Raises SlipwayError where it cannot be read."""
        try:
            return files.read(self.root / path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot("read", f"file '/{path}'", here(), error.strerror or str(error), "Run as root") from error

    def _data(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except OSError:
            return None  # without EFI, or without its variables: then /proc/cmdline has to tell


def ensure(
    host: Host, present: t.Sequence[str], absent: t.Sequence[str], check_mode: bool, timeout_seconds: float
) -> dict[str, t.Any]:
    """Have these parameters on the host's command line at its next boot. Returns what ``kernel_cmdline`` does.

    Raises SlipwayError. ``timeout_seconds`` is how long the loader's tool may take.
    """
    try:
        declared = parameters.wanted(present, absent)
    except ValueError as error:
        raise cannot("read", "the declared parameters", here(), str(error), "Correct them") from error
    edit = _edit(host, declared)
    record = _record(host, edit.after)
    missing = parameters.differs(host.live, declared)
    written = [file for file, text in edit.after.items() if edit.before[file] != text]
    # A text of which nothing is recorded is one that somebody wrote by hand; if it is in force, so is what was made of it.
    refresh = bool(written) or record.get("refreshed") is False or (missing and not record)
    tool = _tool(host) if refresh else ""
    if refresh and not check_mode:
        _remember(host, edit.after, refreshed=False)
        for file in written:
            _write(host, file, edit.after[file])
        _refresh(host, tool, timeout_seconds)
        _remember(host, edit.after, refreshed=True)
    return {
        "changed": refresh,
        "loader": host.loader.name,
        "file": host.loader.file,
        "configured": edit.line,
        "live": host.live,
        "restart_required": missing,
        "refreshed": refresh,
        "findings": [told.as_dict() for told in _findings(host, record, missing, refresh)],
        "diff": _diff(host, edit, written, refresh),
    }


@dataclass(frozen=True)
class _Edit:
    """The texts of the loader's files by path, before and after, and the command line that they make afterwards."""

    before: dict[str, str]
    after: dict[str, str]
    line: str


def _edit(host: Host, declared: parameters.Wanted) -> _Edit:
    file = host.loader.file
    text = host.text(file.lstrip("/"))
    try:
        if file == loader.DEFAULT_GRUB:
            return _edit_grub(host, text, declared)
        return _edit_cmdline(host, text, declared)
    except ValueError as error:
        where = error.file if isinstance(error, grub.Refused) else file
        remedy = "Write the parameters there as plain text"
        raise cannot("change", f"file '{where}'", here(), str(error), remedy) from error


def _edit_grub(host: Host, text: str | None, declared: parameters.Wanted) -> _Edit:
    if text is None:
        raise ValueError("GRUB booted this host, and the file does not exist")
    before = {host.loader.file: text}
    for path in sorted((host.root / _DROP_INS).glob("*.cfg")):
        before[f"/{_DROP_INS}/{path.name}"] = host.text(f"{_DROP_INS}/{path.name}") or ""
    return _Edit(before, *grub.change(before, declared))


def _edit_cmdline(host: Host, text: str | None, declared: parameters.Wanted) -> _Edit:
    # Without the file proxmox-boot-tool takes the running kernel's line: so that is what there is.
    body = text if text is not None else parameters.without_the_loaders(host.live) + "\n"
    lines = [number for number, line in enumerate(body.splitlines()) if line.strip()]
    if len(lines) != 1:
        raise ValueError(f"it has {len(lines)} lines with text, and must have one")
    if not any(one.name == "root" for one in parameters.parse(body)):
        raise ValueError("it has no root=, and the host would not boot by it")
    split = body.splitlines(keepends=True)
    whole = split[lines[0]]
    line = whole.rstrip("\r\n")
    (changed,) = parameters.change([line], declared)
    split[lines[0]] = changed + whole[len(line) :]
    before = text or ""
    after = before if text is None and changed == line else "".join(split)
    return _Edit({host.loader.file: before}, {host.loader.file: after}, changed.strip())


def _digest(texts: t.Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


def _record(host: Host, texts: t.Mapping[str, str]) -> dict[str, t.Any]:
    """What was recorded of these texts with this loader; an unfinished refresh counts for any."""
    try:
        record = json.loads(host.text(_RECORD) or "{}")
    except ValueError:
        record = {}
    if not isinstance(record, dict) or record.get("loader") != host.loader.name:
        return {}
    same = record.get("sha256") == _digest(texts)
    return record if same or record.get("refreshed") is False else {}


def _remember(host: Host, texts: t.Mapping[str, str], refreshed: bool) -> None:
    path = host.root / _RECORD
    record = {"sha256": _digest(texts), "loader": host.loader.name, "refreshed": refreshed, "boot_id": host.boot_id}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, json.dumps(record) + "\n")
    except OSError as error:
        raise _failed("write", f"record '/{_RECORD}'", error) from error


def _write(host: Host, file: str, text: str) -> None:
    # A link stays one: what it leads to is replaced.
    path = Path(os.path.realpath(host.root / file.lstrip("/")))
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode) if path.exists() else 0o644
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, text, mode)
    except OSError as error:
        raise _failed("write", f"file '{file}'", error) from error


def _tool(host: Host) -> str:
    name = host.loader.refresh[0]
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SBIN}")
    if found is None:
        cause = f"the host boots by {host.loader.name}, and there is no program {name}"
        raise cannot("change", _SUBJECT, here(), cause, "Install the package that brings it")
    return found


def _refresh(host: Host, tool: str, timeout_seconds: float) -> None:
    command = [tool, *host.loader.refresh[1:]]
    words = " ".join(host.loader.refresh)
    remedy = f"See what '{words}' says on the host; the next run tries again"
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        cause = f"'{words}' did not end within {timeout_seconds:g} seconds"
        raise cannot("refresh", "the boot loader", here(), cause, remedy) from error
    except OSError as error:
        raise _failed("refresh", "the boot loader", error) from error
    if done.returncode:
        said = " ".join(f"{done.stdout}\n{done.stderr}".split())[-400:]
        cause = f"'{words}' ended with {done.returncode}: {said or 'it said nothing'}"
        raise cannot("refresh", "the boot loader", here(), cause, remedy)


def _failed(verb: str, subject: str, error: OSError) -> SlipwayError:
    return cannot(verb, subject, here(), error.strerror or str(error), "Run as root, and see that the disk has space")


def _findings(host: Host, record: t.Mapping[str, t.Any], missing: bool, refresh: bool) -> list[Finding]:
    if not missing:
        return []
    if not refresh and record.get("boot_id") != host.boot_id:
        detail = f"{host.loader.file} has been in force for {host.loader.name} since before this boot"
        return [finding("KERNEL_CMDLINE_NOT_TAKEN", _SUBJECT, f"{detail}; the kernel was booted with: {host.live}")]
    return [finding("KERNEL_CMDLINE_PENDING", _SUBJECT, f"the kernel was booted with: {host.live}")]


def _diff(host: Host, edit: _Edit, written: t.Sequence[str], refresh: bool) -> list[dict[str, str]]:
    """One for each file that changes; and where only the boot loader is to be told, that."""
    if refresh and not written:
        said = f"{' '.join(host.loader.refresh)}: the boot loader was not told of {host.loader.file} yet\n"
        return [{"prepared": said}]
    return [
        {"before": edit.before[file], "after": edit.after[file], "before_header": file, "after_header": file}
        for file in written
    ]
