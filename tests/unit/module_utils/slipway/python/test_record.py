# SPDX-License-Identifier: GPL-3.0-or-later
"""RECORD: what is read, and what is taken for no hash."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.python import record
from ansible.module_utils.slipway.python.record import Entry

# printf hello | sha256sum, and the same as RECORD has it.
HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
HELLO_ENCODED = "sha256=LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ"


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        (f"a.py,{HELLO_ENCODED},5\n", [Entry("a.py", "sha256", HELLO, 5)]),
        (f"../../../bin/a,{HELLO_ENCODED},5\r\n", [Entry("../../../bin/a", "sha256", HELLO, 5)]),
        (f'"a, b.py",{HELLO_ENCODED},5\n', [Entry("a, b.py", "sha256", HELLO, 5)]),
        (f'"a\nb.py",{HELLO_ENCODED},5\n', [Entry("a\nb.py", "sha256", HELLO, 5)]),
        ("a-1.dist-info/RECORD,,\n", [Entry("a-1.dist-info/RECORD", "", "", None)]),
        ("a.pyc\n", [Entry("a.pyc", "", "", None)]),
        ("\n,,\n", []),
        ("", []),
        # What nobody can check is no hash.
        ("a.py,sha256=!!,5\n", [Entry("a.py", "", "", 5)]),
        ("a.py,crc7=LPJN,5\n", [Entry("a.py", "", "", 5)]),
        ("a.py,shake_128=LPJN,5\n", [Entry("a.py", "", "", 5)]),
        (f"a.py,{HELLO_ENCODED},x\n", [Entry("a.py", "sha256", HELLO, None)]),
    ],
)
def test_reads(text: str, entries: list[Entry]) -> None:
    assert record.parse(text) == entries


def test_refuses_what_is_no_table() -> None:
    with pytest.raises(ValueError, match="it is no table of files"):
        record.parse("a" * 200_000)


@pytest.mark.parametrize("torn", ["\0" * 300, "a.py,,\nb\0.py,,\n"])
def test_refuses_what_the_power_left_of_one(torn: str) -> None:
    with pytest.raises(ValueError, match="zero bytes"):
        record.parse(torn)
