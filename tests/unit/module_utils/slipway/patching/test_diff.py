# SPDX-License-Identifier: GPL-3.0-or-later
"""Unified diffs: read strictly, applied to the byte; against diff and git, where they are installed."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils.slipway.patching import diff, hunks

OLD = b"one\ntwo\nthree\nfour\nfive\n"
PLAIN = (
    b"--- a/pkg/x.py\t2026-01-01\n+++ b/pkg/x.py\t2026-01-02\n@@ -1,3 +1,4 @@ def f():\n one\n-two\n+2\n+2.5\n three\n"
)


def apply(change: bytes, content: bytes | None) -> bytes | None:
    (one,) = diff.parse(change)
    result = hunks.apply(one, content)
    assert hunks.apply(one.reversed(), result) == content
    return result


def test_a_change_and_its_way_back() -> None:
    (one,) = diff.parse(PLAIN)
    assert (one.old, one.new, len(one.hunks)) == ("pkg/x.py", "pkg/x.py", 1)
    assert apply(PLAIN, OLD) == b"one\n2\n2.5\nthree\nfour\nfive\n"


def test_names_without_prefixes_are_what_they_are() -> None:
    (one,) = diff.parse(PLAIN.replace(b"a/pkg", b"pkg").replace(b"b/pkg", b"pkg"))
    assert one.old == "pkg/x.py"


def test_a_letter_of_git_with_several_files() -> None:
    letter = (
        b"From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] Mend it\n\nSome words.\n---\n x.py | 2 +-\n\n"
        b"diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-one\n+1\n"
        b"diff --git a/new.py b/new.py\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+new\n"
        b"diff --git a/gone.py b/gone.py\ndeleted file mode 100644\nindex 1..0\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        b"diff --git a/from.py b/to.py\nsimilarity index 100%\nrename from from.py\nrename to to.py\n"
        b"-- \n2.39.5\n\n"
    )
    assert [(one.old, one.new, one.executable) for one in diff.parse(letter)] == [
        ("x.py", "x.py", False),
        ("", "new.py", True),
        ("gone.py", "", False),
        ("from.py", "to.py", False),
    ]


def test_names_that_git_quotes() -> None:
    quoted = b'diff --git "a/na\\303\\257ve \\"x\\".py" "b/na\\303\\257ve \\"x\\".py"\n--- "a/na\\303\\257ve \\"x\\".py"\n+++ "b/na\\303\\257ve \\"x\\".py"\n'
    (one,) = diff.parse(quoted + b"@@ -1 +1 @@\n-one\n+1\n")
    assert one.new == 'na\u00efve "x".py'


def test_line_ends_are_content() -> None:
    dos = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n"
    assert apply(dos, b"one\r\ntwo\r\n") == b"one\r\n2\r\n"
    with pytest.raises(hunks.Mismatch, match=r"line 1 is 'one\\n'"):
        apply(dos, b"one\ntwo\n")


@pytest.mark.parametrize(
    ("body", "before", "after"),
    [
        (b"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", b"a", b"b"),
        (b"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", b"a", b"a\n"),
        (b"@@ -1,2 +1,2 @@\n-a\n+b\n c\n\\ No newline at end of file\n", b"a\nc", b"b\nc"),
        (b"@@ -1 +0,0 @@\n-a\n", b"a\n", b""),
        (b"@@ -0,0 +1 @@\n+a\n", b"", b"a\n"),
    ],
)
def test_ends_of_files(body: bytes, before: bytes, after: bytes) -> None:
    change = b"--- a/x\n+++ b/x\n" + body
    assert apply(change, before) == after
    if not before.endswith(b"\n") and before:
        with pytest.raises(hunks.Mismatch):
            apply(change, before + b"\n")


def test_nothing_is_looked_for_elsewhere() -> None:
    """GNU patch would find the place by an offset, and take a repeated context for the right one."""
    with pytest.raises(hunks.Mismatch, match="line 1 is"):
        apply(PLAIN, b"zero\n" + OLD)
    with pytest.raises(hunks.Mismatch, match="line 3 is not there"):
        apply(PLAIN, b"one\ntwo\n")
    (new,) = diff.parse(b"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n")
    with pytest.raises(hunks.Mismatch, match="there is a file already"):
        hunks.apply(new, b"")
    (gone,) = diff.parse(b"--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")
    with pytest.raises(hunks.Mismatch, match="1 lines more than the diff deletes"):
        hunks.apply(gone, b"a\nmine\n")
    with pytest.raises(hunks.Mismatch, match="there is no file"):
        hunks.apply(gone, None)


HEAD = b"--- a/x\n+++ b/x\n"
GIT = b"diff --git a/x b/x\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "its last line has no end"),
        (b"words\n", "it changes nothing"),
        (PLAIN[:-1], "its last line has no end"),
        (PLAIN[: PLAIN.rindex(b" three")], "it ends inside a hunk"),
        (PLAIN.replace(b"-1,3 +1,4", b"-1,2 +1,3"), "stands after a hunk that is complete"),
        (PLAIN.replace(b"-1,3 +1,4", b"-1,4 +1,5"), "it ends inside a hunk"),
        (PLAIN.replace(b"-1,3 +1,4", b"-1,3 +2,4"), "the position of this hunk does not follow"),
        (PLAIN.replace(b"-1,3 +1,4", b"-1,3 +1,x"), "no head of a hunk"),
        (PLAIN.replace(b"\n", b"\r\n"), "converted to CRLF"),
        (PLAIN + PLAIN, "it names pkg/x.py twice"),
        (HEAD + b"@@ -5 +5 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+b\n", "the position of this hunk does not follow"),
        (HEAD + b"@@ -1 +1 @@\n a\n", "a hunk changes nothing"),
        (HEAD + b"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n@@ -3 +3 @@\nx", "its last line has no end"),
        (HEAD + b"@@ -1,2 +1,2 @@\n-a\n\\ No newline at end of file\n-b\n+a\n+c\n", "follows one that has no end"),
        (HEAD, "a file has no hunk"),
        (b"--- a/x\n@@ -1 +1 @@\n-a\n+b\n", "'---' is not followed by '+++'"),
        (b"--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "without saying that it renames"),
        (b"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "both names are /dev/null"),
        (b"--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "lines on the side where there is none"),
        (b"@@ -1 +1 @@\n-a\n+b\n", "a hunk stands where no file is named"),
        (GIT + b"GIT binary patch\nliteral 1\n", "a binary part"),
        (GIT + b"old mode 100644\nnew mode 100755\n", "changes the mode"),
        (GIT + b"new file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc/passwd\n", "no plain file"),
        (GIT + b"copy from x\ncopy to y\n", "copies a file"),
        (GIT + b"rename from x\n", "only one of its two names"),
        (GIT + b"something else\n", "no line of a git header"),
        (GIT + b"--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n", "do not begin with a/ and b/"),
        (b"--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", "climbs out of site-packages"),
        (b"--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n", "is absolute"),
        (b"--- a/./x\n+++ b/./x\n@@ -1 +1 @@\n-a\n+b\n", "not written plainly"),
        (b"--- a/p-1.dist-info/RECORD\n+++ b/p-1.dist-info/RECORD\n@@ -1 +1 @@\n-a\n+b\n", "installers keep"),
        (b"--- a/x.pth\n+++ b/x.pth\n@@ -1 +1 @@\n-a\n+b\n", "path file"),
    ],
)
def test_what_would_have_to_be_guessed_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(diff.DiffError, match=words.replace("+", r"\+").replace("/", "/")):
        diff.parse(content)


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_what_git_writes_is_read_and_leads_there_and_back(tmp_path: Path) -> None:
    choose = random.Random(6)  # noqa: S311 - for files, not for secrets
    for round_ in range(25):
        contents = []
        for side in ("a", "b"):
            lines = [
                b"%d%s" % (choose.randrange(6), choose.choice([b"\n", b"\r\n"])) for _ in range(choose.randrange(40))
            ]
            content = b"".join(lines)[: choose.choice([None, -1])]
            contents.append(content)
            (tmp_path / side).mkdir(exist_ok=True)
            (tmp_path / side / "x.py").write_bytes(content)
        if contents[0] == contents[1]:
            continue
        command = ["git", "diff", "--no-index", "--no-prefix", f"-U{choose.randrange(4)}", "a/x.py", "b/x.py"]
        made = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout
        assert apply(made, contents[0]) == contents[1], (round_, made)
