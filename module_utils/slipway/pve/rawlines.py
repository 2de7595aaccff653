# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing the raw lines of a container to what is declared, on its node."""

from __future__ import annotations

import typing as t

from .. import files
from ..errors import SlipwayError, cannot, here
from ..findings import finding
from . import conf, node, rawkeys, record

if t.TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..findings import Finding

# What pmxcfs shows of every file that is not private.
CONFIG_MODE = 0o640


def ensure(
    place: node.Place, lines: Sequence[str], exclusive_keys: Collection[str], check_mode: bool
) -> dict[str, t.Any]:
    """Bring the raw lines to ``lines`` and return the module's result. Raises SlipwayError."""
    declared = list(dict.fromkeys(_declared(line, place.vmid) for line in lines))
    if not place.config.exists():
        if not check_mode:
            raise _trouble(place, "it is not on this node", "Make it first, or run this on the node that it is on")
        # It would be made by a task before this one.
        result = _result(place, "", conf.edit("", declared, (), ()), declared)
        return {**result, "digest": None, "restart_required": False}
    before = files.read(place.config)
    identity = node.identity(place, before)
    known = {**record.read(place.record, identity), "guest": identity}
    ours = [found for line in known.get("lines", []) if (found := conf.raw(str(line)))]
    start = node.running(place)
    edit = conf.edit(before, declared, ours, exclusive_keys)
    locked = conf.lock(before) if edit else None
    if not check_mode:
        if edit:
            _refuse_locked(place, before)
            # First, so that a run killed between the two leaves lines that the next one knows for ours.
            known = _record(known, [*ours, *declared], start, place, before)
            record.write(place.record, known)
            before, edit = _write(place, declared, ours, exclusive_keys)
        if known.get("lines") != [str(line) for line in declared]:
            record.write(place.record, _record(known, declared, start, place, before))
    result = _result(place, before, edit, declared)
    result["digest"] = conf.digest(before if check_mode else edit.text)
    result["restart_required"] = _restart_required(place, known, start, edit)
    if check_mode:
        result["findings"] = [found.as_dict() for found in _foreseen(place, locked, edit)]
    return result


def _foreseen(place: node.Place, locked: str | None, edit: conf.Edit) -> Iterator[Finding]:
    """What may stand against an edit when it is made for real."""
    subject = f"container '{place.vmid}'"
    if locked:
        detail = f"Its lock is '{locked}'; as long as it has one, its raw lines are not changed."
        yield finding("PVE_GUEST_LOCKED", subject, detail, "warn")
    for line in edit.added:
        # A newer Proxmox may know it: what it reads back decides.
        if not rawkeys.known(line.key):
            yield finding("PVE_RAW_LINE_UNKNOWN", subject, f"Proxmox 9.1 does not know '{line}'.", "warn")


def _refuse_locked(place: node.Place, text: str) -> None:
    """Raise where a task is at work on the guest: what it has read of the file it writes again when it ends."""
    if (lock := conf.lock(text)) is not None:
        raise _trouble(
            place,
            f"it is locked ({lock})",
            f"Wait for the task that holds it; if none runs any more, run 'pct unlock {place.vmid}'",
            "PVE_GUEST_LOCKED",
        )


def _write(
    place: node.Place, declared: Sequence[conf.Raw], ours: Sequence[conf.Raw], exclusive_keys: Collection[str]
) -> tuple[str, conf.Edit]:
    """Write under the lock, from what the file holds then; put it back where Proxmox does not understand it."""
    with node.locked(place):
        before = files.read(place.config)
        _refuse_locked(place, before)
        edit = conf.edit(before, declared, ours, exclusive_keys)
        if not edit:
            return before, edit
        # Who does not take the lock (an editor, a script) may have written in between.
        if conf.digest(files.read(place.config)) != conf.digest(before):
            raise _trouble(place, "somebody changed the file at this moment", "Run again")
        _put(place, edit.text)
        read_back = node.pct_config(place)
        unknown = [str(line) for line in edit.added if line not in read_back]
        if unknown:
            _put(place, before)
            raise _trouble(
                place,
                f"Proxmox does not know {', '.join(unknown)}; the file is as it was",
                "Correct the key (lxc.container.conf(5))",
                "PVE_RAW_LINE_UNKNOWN",
            )
    return before, edit


def _put(place: node.Place, text: str) -> None:
    """Write the file whole, with no chmod."""
    try:
        files.replace(place.config, text, CONFIG_MODE, chmod=False)
    except OSError as error:
        raise _trouble(
            place,
            f"{place.config} cannot be written ({error.strerror})",
            "Check that the cluster has quorum (pvecm status); without it /etc/pve is read-only",
        ) from error


def _declared(line: str, vmid: int) -> conf.Raw:
    found = conf.raw(line) if "\n" not in line.strip() else None
    if found is None or found.key in rawkeys.GENERATED or not found.value:
        raise cannot(
            "use",
            f"line '{line}'",
            f"container '{vmid}'",
            "it is not a raw configuration line that Proxmox accepts",
            "Write 'lxc.<key>: <value>', one line each; the root disk has its own key, rootfs, from which Proxmox makes its lines",
        )
    return found


def _restart_required(place: node.Place, known: dict[str, t.Any], start: str | None, edit: conf.Edit) -> bool:
    """Whether the guest runs with other raw lines than its configuration has: they never come into force live.

    What it was started with is in the record, if we changed the file since. Else LXC's own configuration tells, which
    Proxmox writes at each start, but also at each change through its API.
    """
    if start is None:
        return False
    now = conf.raw_lines(edit.text)
    started = known.get("started") or {}
    if started.get("start") == start:
        return started.get("lines") != [str(line) for line in now]
    begun_with = node.started_with(place)
    if begun_with is None:
        # It runs, and nothing here says with what: not known is not good.
        return True
    gone = [line for line in edit.removed if line not in now]
    return any(line not in begun_with for line in now) or any(line in begun_with for line in gone)


def _record(
    known: dict[str, t.Any], lines: Sequence[conf.Raw], start: str | None, place: node.Place, before: str
) -> dict[str, t.Any]:
    """The record with these lines as ours and, where the guest runs, the lines that this start of it has."""
    started = known.get("started") or {}
    if start and started.get("start") != start:
        begun_with = node.started_with(place) or []
        started = {"start": start, "lines": [str(line) for line in conf.raw_lines(before) if line in begun_with]}
    return {**known, "vmid": place.vmid, "lines": list(dict.fromkeys(str(line) for line in lines)), "started": started}


def _result(place: node.Place, before: str, edit: conf.Edit, declared: Sequence[conf.Raw]) -> dict[str, t.Any]:
    left = conf.raw_lines(edit.text)
    old = conf.raw_lines(before)
    return {
        "changed": bool(edit),
        "diff": {
            "before_header": str(place.config),
            "after_header": str(place.config),
            "before": "".join(f"{line}\n" for line in old),
            "after": "".join(f"{line}\n" for line in left),
        },
        "lines": [str(line) for line in left],
        "unmanaged": [str(line) for line in left if line not in declared],
        "findings": [],
    }


def _trouble(place: node.Place, cause: str, remedy: str, fault: str | None = None) -> SlipwayError:
    subject = f"container '{place.vmid}'"
    found = [finding(fault, subject, cause)] if fault else []
    return cannot("edit the raw lines of", subject, here(), cause, remedy, found)
