# SPDX-License-Identifier: GPL-3.0-or-later
"""What is no prose in an answer: code and formulas, which other rules leave out, and tokens that no client should see. Pure."""

from __future__ import annotations

import re

_FENCED = re.compile(r"(?ms)^[ \t]*(```|~~~).*?(^[ \t]*\1|\Z)")
_INLINE = re.compile(r"`[^`\n]+`")
_FORMULAS = re.compile(r"(?s)\$\$.*?\$\$|\\\[.*?\\\]|\\\(.*?\\\)|\\begin\{(\w+\*?)\}.*?\\end\{\1\}")
_FORMULA = re.compile(r"\$[^$\n]{1,300}\$|\\[A-Za-z]+")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_TABLE_RULE = re.compile(r"(?m)^[\s|:+=*_#~.-]*$")
# Chat templates of Llama, Qwen, GLM, Kimi, Mistral, Gemma and DeepSeek; bytes and unknown tokens of SentencePiece.
_TOKEN = re.compile(
    r"<\|[A-Za-z0-9_/-]{1,40}\|>|<\uff5c[^\uff5c\n]{1,40}\uff5c>|</?think>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"
    r"|<0x[0-9A-F]{2}>|<unk>|<pad>|\[gMASK\]|<sop>|</?tool_calls?>|^<s>|</s>$"
)
# How byte-level BPE writes a space and a line's end, and SentencePiece a space.
_MARKS = re.compile(r"[\u0120\u010a\u2581]")
_WORDS_MARKED = 0.3


def without_code(text: str) -> str:
    """The text without blocks and spans of code."""
    return _INLINE.sub(" ", _FENCED.sub("\n", text))


def prose(text: str) -> str:
    """The text without code, formulas, addresses and lines that only rule a table."""
    rest = _FORMULA.sub(" ", _FORMULAS.sub(" ", without_code(text)))
    return _TABLE_RULE.sub("", _ADDRESS.sub(" ", rest))


def leaked(text: str) -> str:
    """The first token in the text that steers the model and is no answer, such as ``<|im_end|>``; empty without one.

    In code it may be meant.
    """
    rest = without_code(text).strip()
    found = _TOKEN.search(rest)
    if found:
        return found.group()
    words = rest.split()
    marked = [word for word in words if _MARKS.search(word)]
    return marked[0][:40] if len(marked) > 2 and len(marked) > _WORDS_MARKED * len(words) else ""
