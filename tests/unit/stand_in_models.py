# SPDX-License-Identifier: GPL-3.0-or-later
"""Minds for the stand-in server: a healthy one, and healthy ones that have one thing wrong with them.

A mind makes an answer of a request. What it is asked are the ``CASES``, one or more of each kind.
"""

from __future__ import annotations

import itertools
import re
import typing as t

from answers import BAD, GOOD
from openai_server import TOKEN

Request = dict[str, t.Any]
Mind = t.Callable[[Request], t.Any]

CODE = "The door code of the warehouse is 7421."
OWNER = "The warehouse belongs to Anna."
CASES: list[dict[str, t.Any]] = [
    {"id": "fact", "prompt": "What is the capital city of Japan?", "expect": r"\bTokyo\b", "script": "latin", "ends": True},
    {"id": "chinese", "prompt": "日本的首都是哪里?", "expect": "东京", "script": "chinese"},
    {"id": "reasoning", "kind": "reasoning", "prompt": "9 carriages have 40 seats each. How many seats are there?", "expect": r"\b360\b"},
    {"id": "code", "prompt": "Write a function for Fibonacci numbers in Python.", "expect": r"def \w+\("},
    {"id": "creative", "kind": "creative", "prompt": "Write a short story.", "script": "latin", "least_characters": 100},
    {"id": "free", "kind": "creative", "prompt": "Say anything."},
    {
        "id": "conversation",
        "kind": "conversation",
        "turns": [{"prompt": "My name is Peter."}, {"prompt": "What is my name?", "expect": r"\bPeter\b"}],
    },
    {"id": "long", "kind": "long_prompt", "tokens": 600, "needle": CODE, "at": ["start", "end"], "prompt": "What is the door code?", "expect": "7421"},
    {
        "id": "prefix",
        "kind": "cached_prefix",
        "tokens": 600,
        "turns": [
            {"prompt": "What is the door code?", "expect": "7421", "needle": CODE},
            {"prompt": "Whom does the warehouse belong to?", "expect": "Anna", "needle": OWNER},
        ],
    },
    {"id": "twice", "kind": "same_twice", "prompt": "What is the capital city of Italy?", "expect": "Rome"},
    {"id": "stream", "kind": "streaming", "prompt": "What is the capital city of Egypt?", "expect": "Cairo"},
]  # fmt: skip


class Healthy:
    """Knows the answers, reads what it is given, and says something else of all good answers each time it may say anything."""

    def __init__(self) -> None:
        self._anything = itertools.cycle(GOOD.values())

    def __call__(self, request: Request) -> t.Any:
        question = asked(request)
        before = " ".join(message["content"] for message in request["messages"])
        name = found(r"My name is (\w+)", before)
        code = found(r"door code of the warehouse is (\d+)", before)
        owner = found(r"warehouse belongs to (\w+)", before)
        told = {
            "capital city of Japan": "The capital city of Japan is Tokyo.",
            "日本的首都": "日本的首都是东京。",
            "9 carriages": GOOD["sums"],
            "Fibonacci": GOOD["python"],
            "short story": GOOD["story"],
            "Say anything": next(self._anything),
            "My name is": "Hello! How can I help you?",
            "What is my name": f"Your name is {name}.",
            "door code": f"The door code is {code}.",
            "belong to": f"It belongs to {owner}.",
            "capital city of Italy": "The capital city of Italy is Rome.",
            "capital city of Egypt": "The capital city of Egypt is Cairo.",
        }
        return next((answer for part, answer in told.items() if part in question), "I do not know.")


def asked(request: Request) -> str:
    """The question at the end of the last message."""
    return str(request["messages"][-1]["content"].rpartition("\n\n")[2])


def found(pattern: str, text: str) -> str:
    """What the pattern finds, or a guess."""
    match = re.search(pattern, text)
    return match.group(1) if match else "unknown"


def says(text: str, finish_reason: str = "stop") -> Mind:
    """It answers everything with the same."""
    return lambda request: {"message": {"content": text}, "finish_reason": finish_reason}


def reasons(text: str, field: str = "reasoning_content", finish_reason: str = "length") -> Mind:
    """It reasons, and comes to no answer."""
    return lambda request: {"message": {"content": None, field: text}, "finish_reason": finish_reason}


def when(condition: t.Callable[[Request], bool], otherwise: Mind) -> Mind:
    """Healthy, except where the condition holds."""
    healthy = Healthy()
    return lambda request: otherwise(request) if condition(request) else healthy(request)


def is_long(request: Request) -> bool:
    """A prompt of more than 512 tokens, from which on attention kernels were seen to fail."""
    return sum(len(message["content"]) for message in request["messages"]) > 512 * TOKEN


class MixesPrefixes:
    """Takes the values of a prefix out of its cache, and they are those of another text: the second question about one gets nonsense."""

    def __init__(self) -> None:
        self._healthy, self._seen = Healthy(), set[str]()

    def __call__(self, request: Request) -> t.Any:
        prefix = request["messages"][0]["content"][: 400 * TOKEN]
        cached = prefix in self._seen and is_long(request)
        self._seen.add(prefix)
        return BAD["tokens of all languages"][0] if cached else self._healthy(request)


class Forgets:
    """Answers well the first time, and something else when it is asked again."""

    def __init__(self, second: str) -> None:
        self._healthy, self._second, self._seen = Healthy(), second, set[str]()

    def __call__(self, request: Request) -> t.Any:
        question = asked(request)
        again = question in self._seen and "Italy" in question
        self._seen.add(question)
        return self._second if again else self._healthy(request)


def forgets_turns(request: Request) -> t.Any:
    """Sees the last message only."""
    return Healthy()({**request, "messages": request["messages"][-1:]})


def sees_only_the_end(request: Request) -> t.Any:
    """Of a long text the last half."""
    last = request["messages"][-1]
    return Healthy()({**request, "messages": [{**last, "content": last["content"][len(last["content"]) // 2 :]}]})


THOUGHT = (
    "The user wants to know something. I should think about it from all sides before I answer, and then once more."
)
# Of these the judge's own tests have all.
_SAID = (
    "nothing",
    "exclamation marks",
    "one phrase",
    "mojibake",
    "tokens of all languages",
    "pieces glued together",
    "end of turn",
)
# Each with the ids that it must get, apart from good answers.
SICK: dict[str, tuple[t.Callable[[], Mind], set[str]]] = {
    **{f"says {name}": (lambda text=BAD[name][0]: says(text), {BAD[name][1]}) for name in _SAID},
    "loops until it is cut": (lambda: says("I think so. " * 30, "length"), {"ANSWER_LOOPS"}),
    "never ends": (lambda: when(lambda r: "Japan" in asked(r), says("It is Tokyo, and Tokyo is a city, which", "length")), {"ANSWER_CUT_SHORT"}),
    "one token": (lambda: when(lambda r: "story" in asked(r), says("The")), {"ANSWER_CUT_SHORT"}),
    "talks chinese": (lambda: when(lambda r: "story" in asked(r), says(GOOD["chinese"] * 3)), {"ANSWER_LANGUAGE", "ANSWER_LOOPS"}),
    "reasons": (lambda: reasons(THOUGHT), {"REASONING_OVER_BUDGET"}),
    "reasons, as later vLLM says it": (lambda: reasons(THOUGHT, "reasoning"), {"REASONING_OVER_BUDGET"}),
    "reasons inside the answer": (lambda: says(f"<think>{THOUGHT}", "length"), {"REASONING_OVER_BUDGET"}),
    "its thoughts loop": (lambda: reasons("Wait, no. " * 40), {"ANSWER_LOOPS"}),
    "thinks nonsense": (lambda: reasons(BAD["tokens of all languages"][0]), {"ANSWER_INCOHERENT"}),
    "leaves its tag open": (lambda: says(f"<think>{THOUGHT}"), {"ANSWER_TOKENS_LEAKED"}),
    "calls a tool": (lambda: lambda r: {"message": {"content": None, "tool_calls": [{"id": "1"}]}}, {"ANSWER_EMPTY"}),
    "fails at long prompts": (lambda: when(is_long, lambda r: (500, {"error": {"message": "out of resource: shared memory"}})), {"LONG_PROMPT_FAILS"}),
    "talks nonsense after long prompts": (lambda: when(is_long, says(BAD["exclamation marks"][0])), {"ANSWER_LOOPS"}),
    "sees only the end": (lambda: sees_only_the_end, {"ANSWER_WRONG"}),
    "mixes up cached prefixes": (MixesPrefixes, {"PREFIX_CACHE_WRONG"}),
    "forgets what was said": (lambda: forgets_turns, {"ANSWER_WRONG"}),
    "changes its mind": (lambda: Forgets("The capital city of Italy is Madrid."), {"ANSWER_UNSTABLE"}),
    "breaks at the second time": (lambda: Forgets(BAD["exclamation marks"][0]), {"ANSWER_UNSTABLE"}),
    "streams nothing": (lambda: when(lambda r: bool(r.get("stream")), says("")), {"STREAM_WRONG"}),
    "streams something else": (lambda: when(lambda r: bool(r.get("stream")), says("Cairo? No idea about such questions, sorry!")), {"STREAM_WRONG"}),
    "server errors": (lambda: lambda r: (500, {"error": {"message": "CUDA error"}}), {"SERVER_NOT_READY"}),
    "does not know": (lambda: when(lambda r: "Japan" in asked(r), says("I do not know.")), {"ANSWER_WRONG"}),
}  # fmt: skip
