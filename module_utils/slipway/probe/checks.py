# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a server: is it ready, do its answers make sense, how fast is it. What was not looked at is never good."""

from __future__ import annotations

import re
import typing as t

from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from . import coherence, ready, throughput
from .client import Client

# A busy server is not a dead one.
LEAST_ANSWER_TIMEOUT_SECONDS = 5


def look(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The result of ``inference_probe`` for its options. Raises ``SlipwayError`` for options that cannot be."""
    if not re.match(r"https?://[^/]+", params["endpoint"]):
        raise _refusal(params, "it is no address of the form http://ADDRESS:PORT/v1", "Correct the endpoint")
    limit = params["answer_timeout_seconds"]
    if limit < LEAST_ANSWER_TIMEOUT_SECONDS:
        cause = f"answer_timeout_seconds is less than {LEAST_ANSWER_TIMEOUT_SECONDS}"
        raise _refusal(params, cause, f"Give at least {LEAST_ANSWER_TIMEOUT_SECONDS} seconds")
    cases = read_cases(params)
    client = Client(params["endpoint"], params["api_key"], params["ca_path"])
    state = ready.probe(client, params["model"], limit)
    findings = list(state.findings)
    answers: list[dict[str, t.Any]] = []
    speed = None
    if state.model is None:
        asked = [check for check in params["checks"] if check != "ready"]
        findings += [finding("CHECK_NOT_MADE", check, "the server is not ready") for check in asked]
    else:
        if "coherence" in params["checks"]:
            answers, faults = _ask(client, state.model, cases, limit)
            findings += faults
        if "throughput" in params["checks"]:
            speed, faults = throughput.measure(client, state.model, params["throughput_tokens"], limit)
            findings += faults
            if speed:
                findings += throughput.compare(speed, params["thresholds"], params["endpoint"])
    return {
        "changed": False,
        "ready": state.ready,
        "model": state.model,
        "answers": answers,
        "throughput": speed,
        "final": state.final,
        "findings": [found.as_dict() for found in findings],
    }


def read_cases(params: t.Mapping[str, t.Any]) -> list[coherence.Case]:
    """The cases, with their expressions compiled: a mistake in the last one is told before the first is asked."""
    cases = []
    for case in params["cases"]:
        try:
            expect = re.compile(case["expect"], re.IGNORECASE) if case["expect"] else None
        except re.error as error:
            cause = f"expect of case '{case['id']}' is no regular expression: {error}"
            raise _refusal(params, cause, "Correct it in the profile") from None
        cases.append(coherence.Case(case["id"], case["prompt"], expect, case["max_tokens"]))
    return cases


def _ask(
    client: Client, model: str, cases: t.Sequence[coherence.Case], timeout_seconds: float
) -> tuple[list[dict[str, t.Any]], list[Finding]]:
    answers, findings = [], []
    for case in cases:
        answer, faults = coherence.ask(client, model, case, timeout_seconds)
        answers.append(answer)
        findings += faults
    if not cases:
        findings.append(finding("CHECK_NOT_MADE", "coherence", "no case was given to ask"))
    return answers, findings


def _refusal(params: t.Mapping[str, t.Any], cause: str, remedy: str) -> SlipwayError:
    return cannot("probe", f"server '{params['endpoint']}'", here(), cause, remedy)
