# SPDX-License-Identifier: GPL-3.0-or-later
"""Sense and nonsense."""

from __future__ import annotations

import re

import pytest
from ansible.module_utils.slipway.probe import coherence

LOOP = "L'Étoile, la Marseillaise, " + "la femme au martyre, " * 30 + "la femme au"
STORY = (
    "The old ship left the harbour at dawn. The sea was calm, the sky was grey, and the sailors sang. "
    "By noon the wind had turned, and by evening the ship was far from any land."
)


@pytest.mark.parametrize(
    ("text", "expect", "finding_id"),
    [
        ("The capital city of Japan is Tokyo.", r"\btokyo\b", None),
        ("The capital city of Japan is Kyoto.", r"\bTokyo\b", "ANSWER_WRONG"),
        ("", None, "ANSWER_EMPTY"),
        (" \n ", r"x", "ANSWER_EMPTY"),
        (LOOP, None, "ANSWER_INCOHERENT"),
        (LOOP, "Marseillaise", "ANSWER_INCOHERENT"),
        ("!" * 200, None, "ANSWER_INCOHERENT"),
        ("Tokyo " * 40, "Tokyo", "ANSWER_INCOHERENT"),
        ("\ufffd\ufffd Tokyo \ufffd", "Tokyo", "ANSWER_INCOHERENT"),
        ("\x00\x01\x02 abc", None, "ANSWER_INCOHERENT"),
        # None of these is a loop or soup.
        (STORY, None, None),
        ("1. 1\n2. 2\n3. 3\n4. 4\n5. 5\n6. 6\n7. 7\n8. 8\n9. 9\n10. 10", None, None),
        ("Ha ha ha ha ha ha ha!", None, None),
        ("Title\n--------------------\nText", None, None),
        ("東京は日本の首都です。مرحبا 👩\u200d💻", None, None),
    ],
)
def test_judge(text: str, expect: str | None, finding_id: str | None) -> None:
    pattern = re.compile(expect, re.IGNORECASE) if expect else None
    fault = coherence.judge(text, coherence.Case("case", "?", pattern, 64))
    assert (fault and (fault.id, fault.subject)) == (finding_id and (finding_id, "case"))


def test_a_loop_is_named_and_cut_short() -> None:
    fault = coherence.judge(LOOP, coherence.Case("case", "?", None, 64))
    assert fault is not None
    assert "over and over" in fault.detail
    assert "la femme au martyre" in fault.detail
    assert len(fault.detail) < 300
