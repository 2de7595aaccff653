# SPDX-License-Identifier: GPL-3.0-or-later
"""Coherence: does the model say what it must, and does it talk sense. Cases are asked at temperature 0 and judged by ``judge``."""

from __future__ import annotations

import time
import typing as t
from dataclasses import asdict, dataclass, field

from ..findings import Finding, finding
from . import prompts, reply
from .cases import Case, Turn
from .client import Client, Unreachable
from .judge import agreement, excerpt, judge
from .reply import Said

# A server that takes less of a long prompt than this has cut it, and proves nothing about its length.
LEAST_OF_LENGTH = 0.75
Message = dict[str, str]


@dataclass(frozen=True)
class Talk:
    """With whom is talked. ``characters_per_token`` is what the server's counting of a first request showed."""

    client: Client
    model: str
    timeout_seconds: float
    characters_per_token: float = prompts.CHARACTERS_PER_TOKEN


@dataclass
class Answer:
    """One answer and what is wrong with it. ``note`` says what the question was for, where that is not in its words."""

    turn: Turn
    said: Said = field(default_factory=Said)
    seconds: float = 0.0
    note: str = ""
    fault: Finding | None = None


def ask(talk: Talk, case: Case) -> tuple[dict[str, t.Any], list[Finding]]:
    """Put one case; its answer as the module returns it, with what is wrong with it."""
    answers = _WAYS.get(case.kind, _single)(talk, case)
    faults = [answer.fault for answer in answers if answer.fault]
    bad = [fault for fault in faults if fault.severity not in ("ok", "info")]
    told = {
        "case": case.id,
        "kind": case.kind,
        "question": case.turns[0].prompt,
        "answer": answers[-1].said.text,
        "passed": not bad,
        "seconds": round(sum(answer.seconds for answer in answers), 3),
        "finding": bad[0].id if bad else "",
        "cause": bad[0].detail or bad[0].summary if bad else "",
        "prompt_tokens": max((answer.said.prompt_tokens or 0 for answer in answers), default=0) or None,
        "output_tokens": sum(answer.said.output_tokens or 0 for answer in answers) or None,
        "turns": [_row(answer) for answer in answers],
    }
    return told, faults


def _row(answer: Answer) -> dict[str, t.Any]:
    said, fault = asdict(answer.said), answer.fault
    good = fault is None or fault.severity in ("ok", "info")
    return {
        "question": answer.turn.prompt,
        "answer": answer.said.text,
        "passed": good,
        "seconds": round(answer.seconds, 3),
        **{name: said[name] for name in ("finish_reason", "prompt_tokens", "cached_tokens", "output_tokens")},
        "reasoning_characters": len(answer.said.reasoning),
        "note": answer.note,
        "finding": "" if fault is None else fault.id,
        "cause": "" if fault is None else fault.detail or fault.summary,
    }


def _single(talk: Talk, case: Case) -> list[Answer]:
    return [_put(talk, case, case.turns[0], _alone(case.turns[0].prompt))]


def _conversation(talk: Talk, case: Case) -> list[Answer]:
    """Turn after turn with all that was said before; ends at the first bad answer, since later ones rest on it."""
    answers: list[Answer] = []
    messages: list[Message] = []
    for number, turn in enumerate(case.turns, 1):
        messages.append({"role": "user", "content": turn.prompt})
        answers.append(_put(talk, case, turn, messages, note=f"turn {number}"))
        if answers[-1].fault:
            break
        messages.append({"role": "assistant", "content": answers[-1].said.text})
    return answers


def _long_prompt(talk: Talk, case: Case) -> list[Answer]:
    """The sentence hidden at each place, each time in other text, so that nothing is answered from a cached prefix."""
    answers: list[Answer] = []
    turn = case.turns[0]
    for number, where in enumerate(case.at):
        needles = [(turn.needle, prompts.place(where))] if turn.needle else []
        prompt = _long(talk, case, needles, turn.prompt, start=prompts.FIRST + 1000 * number)
        note = f"{turn.needle and 'its sentence at the ' + where + ' of '}about {case.tokens} tokens"
        answer = _put(talk, case, turn, _alone(prompt), note=note)
        answers.append(answer)
        if answer.fault and answer.fault.id == "ANSWER_MISSING":
            answer.fault = finding("LONG_PROMPT_FAILS", case.id, f"{note}: {answer.fault.detail}")
            break
        answer.fault = answer.fault or _too_short(case, answer)
    return answers


def _cached_prefix(talk: Talk, case: Case) -> list[Answer]:
    """One long text with a question at its end, then the same text with another: its beginning comes out of the cache."""
    answers: list[Answer] = []
    hidden = [turn.needle for turn in case.turns if turn.needle]
    needles = list(zip(hidden, prompts.spread(len(hidden))))
    for number, turn in enumerate(case.turns, 1):
        prompt = _long(talk, case, needles, turn.prompt)
        answer = _put(talk, case, turn, _alone(prompt), note=f"question {number} about the same text")
        answers.append(answer)
        if answer.fault:
            if number > 1:
                answer.fault = finding("PREFIX_CACHE_WRONG", case.id, f"question {number}: {_words(answer.fault)}")
            elif answer.fault.id == "ANSWER_MISSING":
                answer.fault = finding(
                    "LONG_PROMPT_FAILS", case.id, f"about {case.tokens} tokens: {answer.fault.detail}"
                )
            break
        answer.fault = _too_short(case, answer)
    return answers


def _same_twice(talk: Talk, case: Case) -> list[Answer]:
    turn = case.turns[0]
    answers = [_put(talk, case, turn, _alone(turn.prompt), note=note) for note in ("first time", "second time")]
    return _alike(case, answers, "ANSWER_UNSTABLE")


def _streaming(talk: Talk, case: Case) -> list[Answer]:
    turn = case.turns[0]
    answers = [
        _put(talk, case, turn, _alone(turn.prompt), note="in one piece"),
        _put(talk, case, turn, _alone(turn.prompt), note="streamed", stream=True),
    ]
    return _alike(case, answers, "STREAM_WRONG")


def _alike(case: Case, answers: list[Answer], fault_id: str) -> list[Answer]:
    """Mark the second answer where it is not like a good first one.

    Other words are told and let pass: an engine adds numbers in another order when a prefix comes out of its cache or requests are
    batched, which decides between words that are equally good. What must stay is the content.
    """
    first, second = answers
    if first.fault:
        return answers[:1]
    if second.fault:
        second.fault = finding(fault_id, case.id, f"{second.note}: {_words(second.fault)}")
    elif first.said.text != second.said.text:
        shared = agreement(first.said.text, second.said.text)
        detail = f"{first.note}: {excerpt(first.said.text)} -- {second.note}: {excerpt(second.said.text)} ({shared:.0%} of the words are the same)"
        second.fault = finding(fault_id, case.id, detail, severity=None if shared < case.agreement else "info")
    return answers


_WAYS: dict[str, t.Callable[[Talk, Case], list[Answer]]] = {
    "conversation": _conversation,
    "long_prompt": _long_prompt,
    "cached_prefix": _cached_prefix,
    "same_twice": _same_twice,
    "streaming": _streaming,
}


def _put(
    talk: Talk, case: Case, turn: Turn, messages: t.Sequence[Message], note: str = "", stream: bool = False
) -> Answer:
    """Ask and judge one question."""
    request = {"model": talk.model, "temperature": 0, "max_tokens": case.max_tokens, "messages": list(messages)}
    answer = Answer(turn, note=note)
    started = time.monotonic()
    try:
        if stream:
            events = talk.client.stream({**request, "stream_options": {"include_usage": True}}, talk.timeout_seconds)
            answer.said = reply.streamed(events)
        else:
            got = talk.client.chat(request, talk.timeout_seconds)
            if got.status != 200:
                raise Unreachable(got.words)
            answer.said = reply.whole(got.body)
        answer.fault = judge(answer.said, case, turn)
    except (Unreachable, ValueError) as error:
        answer.fault = finding("ANSWER_MISSING", case.id, str(error))
    answer.seconds = time.monotonic() - started
    return answer


def _long(
    talk: Talk, case: Case, needles: t.Sequence[tuple[str, float]], question: str, start: int = prompts.FIRST
) -> str:
    """A prompt of about ``case.tokens`` tokens."""
    length = (
        int(case.tokens * talk.characters_per_token) - len(question) - sum(len(needle) for needle, _place in needles)
    )
    text = prompts.grown(case.text, length) if case.text else prompts.filler(length, start)
    return f"{prompts.hidden(text, needles)}\n\n{question}"


def _too_short(case: Case, answer: Answer) -> Finding | None:
    counted = answer.said.prompt_tokens
    if counted is None or counted >= LEAST_OF_LENGTH * case.tokens:
        return None
    detail = f"the prompt was to have {case.tokens} tokens, the server read {counted}"
    return finding("CHECK_NOT_MADE", case.id, detail)


def _alone(prompt: str) -> list[Message]:
    return [{"role": "user", "content": prompt}]


def _words(fault: Finding) -> str:
    return f"{fault.id}, {fault.detail}" if fault.detail else f"{fault.id}, {fault.summary}"
