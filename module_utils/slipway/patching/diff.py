# SPDX-License-Identifier: GPL-3.0-or-later
"""Unified diffs, read strictly. Pure: bytes in, changes out.

The forms are those of ``diff -u`` and of ``git diff`` without ``--binary``: git headers, new, deleted and renamed files, names that
git quotes, files that end without a line break, and lines that end in CRLF. What a reader would have to guess is refused: truncated
hunks, counts or positions that do not add up, binary parts, copies, links, changes of mode. (GNU diffutils manual, "Detailed Unified";
git-diff-format(7), "generate_patch".)
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from . import paths

HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: .*)?")
# Lines of a git header that change nothing that matters here.
IGNORED = (b"index ", b"similarity index ", b"dissimilarity index ", b"rename from ", b"rename to ")
REFUSED = {
    b"GIT binary patch": "it has a binary part",
    b"Binary files ": "it has a binary part",
    b"copy from ": "it copies a file; give the copy as a new one",
    b"old mode ": "it changes the mode of a file, and modes are kept",
    b"new mode ": "it changes the mode of a file, and modes are kept",
}
ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
SIGNATURE = b"-- "


class DiffError(Exception):
    """Why a diff cannot be used, as the rest of a sentence; it names the line."""


@dataclass(frozen=True)
class Hunk:
    """Lines of one place. ``old`` and ``new`` hold them with their ends; positions count lines from 0."""

    old_at: int
    new_at: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]


@dataclass(frozen=True)
class Change:
    """What a diff does to one file. ``old`` is empty for a new file, ``new`` for a deleted one; they differ for a renamed one."""

    old: str
    new: str
    hunks: tuple[Hunk, ...] = ()
    executable: bool = False

    def reversed(self) -> Change:
        """The change that takes this one back."""
        hunks = tuple(Hunk(hunk.new_at, hunk.old_at, hunk.new, hunk.old) for hunk in self.hunks)
        return Change(self.new, self.old, hunks, self.executable)


@dataclass
class _Lines:
    """The lines of a diff, without their ends, and how far they have been read."""

    lines: list[bytes]
    at: int = 0

    def peek(self) -> bytes | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def take(self) -> bytes:
        self.at += 1
        return self.lines[self.at - 1]

    def fail(self, cause: str) -> DiffError:
        """The error about the line that was read last."""
        return DiffError(f"line {max(self.at, 1)}: {cause}")


@dataclass
class _Header:
    """What the lines above the hunks of a file say."""

    old: str | None = None
    new: str | None = None
    named: bool = False  # by --- and +++
    created: bool = False
    deleted: bool = False
    renamed: dict[str, str] = field(default_factory=dict)
    executable: bool = False


def parse(content: bytes) -> list[Change]:
    """The changes of a diff, in its order. Raises ``DiffError``."""
    if not content.endswith(b"\n"):
        raise DiffError("its last line has no end, so it was cut off")
    lines = _Lines(content.split(b"\n")[:-1])
    changes = []
    while (change := _next_change(lines)) is not None:
        changes.append(change)
    if not changes:
        raise DiffError("it changes nothing")
    touched = [path for change in changes for path in {change.old, change.new} if path]
    for path in touched:
        if touched.count(path) > 1:
            raise DiffError(f"it names {path} twice")
        if cause := paths.fault(path):
            raise DiffError(f"{path} {cause}")
    return changes


def _next_change(lines: _Lines) -> Change | None:
    """The next file of a diff; ``None`` at its end. What stands before its first header is a letter, and is passed over."""
    started = lines.at == 0
    while (line := lines.peek()) is not None:
        if line.startswith((b"diff --git ", b"--- ")):
            header = _header(lines)
            return _change(lines, header)
        lines.take()
        if line == SIGNATURE and not started:
            _signature(lines)
            return None
        if line.startswith(b"@@"):
            raise lines.fail("a hunk stands where no file is named")
        if not started and line.strip():
            raise lines.fail(
                f"'{_shown(line)}' stands after a hunk that is complete: the counts are wrong, or lines were lost"
            )
    return None


def _signature(lines: _Lines) -> None:
    """What git puts below a diff that is sent as a letter: its version."""
    while (line := lines.peek()) is not None:
        lines.take()
        if line.startswith((b"diff --git ", b"--- ", b"@@", b"+", b"-")):
            raise lines.fail("the diff goes on after the signature of its letter")


def _header(lines: _Lines) -> _Header:
    """The lines up to the first hunk. Raises ``DiffError``."""
    header = _Header()
    git = t.cast(bytes, lines.peek()).startswith(b"diff --git ")
    if git:
        lines.take()
        _git_lines(lines, header)
    line = lines.peek()
    if line is not None and line.startswith(b"--- "):
        lines.take()
        old = _name(lines, line[4:])
        following = lines.peek()
        if following is None or not following.startswith(b"+++ "):
            raise lines.fail("'---' is not followed by '+++'")
        lines.take()
        new = _name(lines, following[4:])
        header.old, header.new = _without_prefixes(lines, old, new, git)
        header.named = True
    return header


def _git_lines(lines: _Lines, header: _Header) -> None:
    while (line := lines.peek()) is not None and not line.startswith((b"--- ", b"diff --git ", b"@@")):
        if not line or line == SIGNATURE:
            return
        lines.take()
        for start, cause in REFUSED.items():
            if line.startswith(start):
                raise lines.fail(cause)
        if line.endswith(b"\r"):
            raise lines.fail("its line ends were converted to CRLF")
        if line.startswith((b"new file mode ", b"deleted file mode ")):
            _mode(lines, header, line)
        elif line.startswith((b"rename from ", b"rename to ")):
            header.renamed[line.split(b" ")[1].decode()] = _name(lines, line.split(b" ", 2)[2])
        elif not line.startswith(IGNORED):
            raise lines.fail(f"'{_shown(line)}' is no line of a git header")


def _mode(lines: _Lines, header: _Header, line: bytes) -> None:
    mode = line.rsplit(b" ", 1)[1]
    if mode not in (b"100644", b"100755"):
        raise lines.fail(
            f"it makes or deletes something of mode {mode.decode(errors='replace')}, which is no plain file"
        )
    header.created = line.startswith(b"new")
    header.deleted = not header.created
    header.executable = mode == b"100755"


def _change(lines: _Lines, header: _Header) -> Change:
    """The change with its hunks. Raises ``DiffError``."""
    hunks = _hunks(lines)
    if header.renamed:
        if set(header.renamed) != {"from", "to"}:
            raise lines.fail("a rename says only one of its two names")
        renamed = (header.renamed["from"], header.renamed["to"])
        if header.named and (header.old, header.new) != renamed:
            raise lines.fail("a rename and the names above its hunks differ")
        return Change(*renamed, tuple(hunks))
    if not header.named:
        raise lines.fail("a header names no file by '---' and '+++' (an empty file is made or deleted by other means)")
    old, new = t.cast(str, header.old), t.cast(str, header.new)
    if not old and not new:
        raise lines.fail("both names are /dev/null")
    if old and new and old != new:
        raise lines.fail(f"it goes from {old} to {new} without saying that it renames")
    if (header.created and old) or (header.deleted and new):
        raise lines.fail("the git header and the names say different things")
    if not hunks:
        raise lines.fail("a file has no hunk")
    if (not old and any(hunk.old for hunk in hunks)) or (not new and any(hunk.new for hunk in hunks)):
        raise lines.fail("a new or deleted file has lines on the side where there is none")
    return Change(old, new, tuple(hunks), header.executable)


def _hunks(lines: _Lines) -> list[Hunk]:
    hunks: list[Hunk] = []
    end = shift = 0
    while (line := lines.peek()) is not None and line.startswith(b"@@"):
        lines.take()
        match = HUNK.fullmatch(line)
        if not match:
            raise lines.fail(
                "its line ends were converted to CRLF" if line.endswith(b"@@\r") else "that is no head of a hunk"
            )
        old_from, old_count, new_from, new_count = (int(part) if part else 1 for part in match.groups())
        # With no lines on a side, its number is that of the line before (GNU diffutils manual).
        old_at, new_at = old_from - bool(old_count), new_from - bool(new_count)
        if old_at < end or new_at != old_at + shift:
            raise lines.fail("the position of this hunk does not follow from those before it")
        hunk = _hunk(lines, old_at, new_at, old_count, new_count)
        hunks.append(hunk)
        end, shift = old_at + old_count, shift + new_count - old_count
    return hunks


def _hunk(lines: _Lines, old_at: int, new_at: int, old_count: int, new_count: int) -> Hunk:
    """The lines of a hunk, as many as its head says. Raises ``DiffError``."""
    old: list[bytes] = []
    new: list[bytes] = []
    while len(old) < old_count or len(new) < new_count:
        line = lines.peek()
        if line is None:
            raise lines.fail("it ends inside a hunk, so it was cut off")
        lines.take()
        mark = line[:1]
        if mark not in (b" ", b"-", b"+"):
            raise lines.fail(f"'{_shown(line)}' is no line of a hunk")
        sides = {b" ": (old, new), b"-": (old,), b"+": (new,)}[mark]
        last = (lines.peek() or b"").startswith(b"\\ ")
        for side in sides:
            if side and not side[-1].endswith(b"\n"):
                raise lines.fail("a line follows one that has no end")
            side.append(line[1:] if last else line[1:] + b"\n")
        if last:
            lines.take()
    if (len(old), len(new)) != (old_count, new_count):
        raise lines.fail("a hunk has more lines on one side than its head says")
    if old == new:
        raise lines.fail("a hunk changes nothing")
    return Hunk(old_at, new_at, tuple(old), tuple(new))


def _name(lines: _Lines, raw: bytes) -> str:
    """A file's name, with its quotes, its time and ``/dev/null`` (empty) understood. Raises ``DiffError``."""
    if raw.endswith(b"\r"):
        raise lines.fail("its line ends were converted to CRLF")
    if raw.startswith(b'"'):
        quoted = re.fullmatch(rb'"((?:[^"\\]|\\.)*)"', raw)
        if not quoted:
            raise lines.fail("a quoted name does not end")
        raw = re.sub(rb"\\([0-7]{3}|.)", lambda match: _unescaped(lines, match[1]), quoted[1])
    else:
        raw = raw.split(b"\t")[0]
    if raw == b"/dev/null":
        return ""
    return raw.decode("utf-8", "surrogateescape")


def _unescaped(lines: _Lines, escape: bytes) -> bytes:
    if len(escape) == 3:
        return bytes([int(escape, 8) & 255])
    if escape not in ESCAPES:
        raise lines.fail("a quoted name has an escape that git does not write")
    return bytes([ESCAPES[escape]])


def _without_prefixes(lines: _Lines, old: str, new: str, git: bool) -> tuple[str, str]:
    """Names without git's ``a/`` and ``b/``. Without a git header they are taken for that where both sides have them."""
    prefixed = old.startswith("a/") * 1 + new.startswith("b/") * 1 + (not old) + (not new)
    if git and prefixed != 2:
        raise lines.fail("the names do not begin with a/ and b/")
    if prefixed == 2:
        return old[2:] if old else "", new[2:] if new else ""
    return old, new


def _shown(line: bytes) -> str:
    return line[:40].decode("utf-8", "replace").strip()
