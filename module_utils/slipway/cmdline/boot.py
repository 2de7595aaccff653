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
from pathlib import Path

from .. import files
from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from ..gpu import place
from . import grub, loader, parameters

_SUBJECT = "the kernel command line"
_UUIDS = "etc/kernel/proxmox-boot-uuids"
_LOADER_INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
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

    @property
    def file(self) -> Path:
        """Where this loader's parameters are kept."""
        return self.root / self.loader.file.lstrip("/")

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
    before, after, line = _edit(host, declared)
    record = _record(host, after)
    missing = parameters.differs(host.live, declared)
    written = before != after
    # A text of which nothing is recorded is one that somebody wrote by hand; if it is in force, so is what was made of it.
    refresh = written or record.get("refreshed") is False or (missing and not record)
    tool = _tool(host) if refresh else ""
    if refresh and not check_mode:
        _remember(host, after, refreshed=False)
        if written:
            _write(host, after)
        _refresh(host, tool, timeout_seconds)
        _remember(host, after, refreshed=True)
    return {
        "changed": refresh,
        "loader": host.loader.name,
        "file": host.loader.file,
        "configured": line,
        "live": host.live,
        "restart_required": missing,
        "refreshed": refresh,
        "findings": [told.as_dict() for told in _findings(host, record, missing, refresh)],
        "diff": {**_diff(host, before, after), **({"prepared": _told(host)} if refresh and not written else {})},
    }


def _edit(host: Host, declared: parameters.Wanted) -> tuple[str, str, str]:
    """The file's text before and after, and the command line that it then makes."""
    text = host.text(host.loader.file.lstrip("/"))
    try:
        if host.loader.file == loader.DEFAULT_GRUB:
            return _edit_grub(host, text, declared)
        return _edit_cmdline(host, text, declared)
    except ValueError as error:
        remedy = f"Write them into {host.loader.file} as plain text"
        raise cannot("change", f"file '{host.loader.file}'", here(), str(error), remedy) from error


def _edit_grub(host: Host, text: str | None, declared: parameters.Wanted) -> tuple[str, str, str]:
    if text is None:
        raise ValueError("GRUB booted this host, and the file does not exist")
    extra = _drop_ins(host, declared)
    values = grub.read(text)
    lines = parameters.change([values.get(name, "") for name in grub.VARIABLES], declared)
    after = grub.write(text, dict(zip(grub.VARIABLES, lines)))
    return text, after, " ".join(part.strip() for part in [*lines, *extra] if part.strip())


def _drop_ins(host: Host, declared: parameters.Wanted) -> list[str]:
    """What the files of /etc/default/grub.d add. Raises ValueError where one is in the way of what is declared."""
    extra = []
    for path in sorted((host.root / "etc/default/grub.d").glob("*.cfg")):
        name = f"/etc/default/grub.d/{path.name}"
        try:
            found = grub.added(files.read(path))
        except ValueError as error:
            raise ValueError(f"{name}, which comes after it, takes it over: its {error}") from error
        mine = {*declared.present, *(one.key for one in declared.absent)}
        if clash := [one.text for one in found if one.key in mine]:
            raise ValueError(f"{name}, which comes after it, adds {', '.join(clash)}")
        extra += [one.text for one in found]
    return extra


def _edit_cmdline(host: Host, text: str | None, declared: parameters.Wanted) -> tuple[str, str, str]:
    # Without the file proxmox-boot-tool takes the running kernel's line: so that is what there is.
    there = text is not None
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
    if not there and changed == line:
        return "", "", line
    split[lines[0]] = changed + whole[len(line) :]
    return text or "", "".join(split), changed.strip()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogateescape")).hexdigest()


def _record(host: Host, text: str) -> dict[str, t.Any]:
    """What was recorded of this text with this loader; an unfinished refresh counts for any text."""
    try:
        record = json.loads(host.text(_RECORD) or "{}")
    except ValueError:
        record = {}
    if not isinstance(record, dict) or record.get("loader") != host.loader.name:
        return {}
    same = record.get("sha256") == _digest(text)
    return record if same or record.get("refreshed") is False else {}


def _remember(host: Host, text: str, refreshed: bool) -> None:
    path = host.root / _RECORD
    record = {"sha256": _digest(text), "loader": host.loader.name, "refreshed": refreshed, "boot_id": host.boot_id}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, json.dumps(record) + "\n")
    except OSError as error:
        raise _failed("write", f"record '/{_RECORD}'", error) from error


def _write(host: Host, text: str) -> None:
    # A link stays one: what it leads to is replaced.
    path = Path(os.path.realpath(host.file))
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode) if path.exists() else 0o644
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, text, mode)
    except OSError as error:
        raise _failed("write", f"file '{host.loader.file}'", error) from error


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


def _told(host: Host) -> str:
    return f"{' '.join(host.loader.refresh)}: the boot loader was not told of {host.loader.file} yet\n"


def _diff(host: Host, before: str, after: str) -> dict[str, str]:
    header = host.loader.file
    return {"before": before, "after": after, "before_header": header, "after_header": header}
