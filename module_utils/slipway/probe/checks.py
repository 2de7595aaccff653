# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a server: is it ready, do its answers make sense, how fast is it. What was not looked at is never good."""

from __future__ import annotations

import re
import typing as t

from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from . import baseline, cases, coherence, occupancy, ready, throughput
from .client import Client
from .load import Shape
from .warmup import Warm, warm_up

# A busy server is not a dead one.
LEAST_ANSWER_TIMEOUT_SECONDS = 5
BAD = ("fail", "unknown")


def look(params: t.Mapping[str, t.Any], check_mode: bool = False) -> dict[str, t.Any]:
    """The result of ``inference_probe`` for its options. Raises ``SlipwayError`` for options that cannot be, before anything is asked."""
    params = {**params, "thresholds": params["thresholds"] or {}}
    _check(params)
    asked = read_cases(params)
    client = Client(params["endpoint"], params["api_key"], params["ca_path"])
    state = ready.probe(client, params["model"], params["answer_timeout_seconds"])
    told: dict[str, t.Any] = {
        "changed": False,
        "ready": state.ready,
        "model": state.model,
        "answers": [],
        "throughput": None,
        "final": state.final,
    }
    findings = list(state.findings)
    further = [check for check in params["checks"] if check != "ready"]
    warm = Warm()
    if state.model is not None and further:
        warm, fault = warm_up(client, state.model, state.template_tokens, params["warm_up_timeout_seconds"])
        findings += [fault] if fault else []
    if findings:
        findings += [finding("CHECK_NOT_MADE", check, "the server is not ready") for check in further]
    elif state.model is not None:
        if "coherence" in further:
            talk = coherence.Talk(client, state.model, params["answer_timeout_seconds"], warm.characters_per_token)
            told["answers"], faults = _ask(talk, asked)
            findings += faults
        if "throughput" in further:
            findings += _speed(told, params, client, state.model, warm, check_mode)
    return {**told, "findings": [found.as_dict() for found in findings]}


def read_cases(params: t.Mapping[str, t.Any]) -> list[cases.Case]:
    """The cases, checked: a mistake in the last one is told before the first is asked. Raises ``SlipwayError``."""
    try:
        return cases.read(params["cases"])
    except ValueError as error:
        raise _refusal(params, str(error), "Correct it in the profile or in the file that it is from") from None


def _check(params: t.Mapping[str, t.Any]) -> None:
    if not re.match(r"https?://[^/]+", params["endpoint"]):
        raise _refusal(params, "it is no address of the form http://ADDRESS:PORT/v1", "Correct the endpoint")
    least = LEAST_ANSWER_TIMEOUT_SECONDS
    for name in ("answer_timeout_seconds", "warm_up_timeout_seconds"):
        if params[name] < least:
            raise _refusal(params, f"{name} is less than {least}", f"Give at least {least} seconds")
    lengths = ("throughput_tokens", "throughput_prompt_tokens", "throughput_rounds")
    least_of = {"throughput_tokens": 2}  # with one there is no time between two
    wrong = [name for name in lengths if params[name] < least_of.get(name, 1)]
    wrong += ["throughput_concurrency"] if any(one < 1 for one in params["throughput_concurrency"] or [0]) else []
    if wrong:
        raise _refusal(params, f"{wrong[0]} is {params[wrong[0]]}", "Give whole numbers that can be measured with")
    lacking = throughput.not_measured(params["thresholds"], params["throughput_concurrency"])
    if lacking and "throughput" in params["checks"]:
        cause = (
            f"thresholds name {lacking[0]} at a time, and throughput_concurrency is {params['throughput_concurrency']}"
        )
        raise _refusal(params, cause, "Measure it as well, or take the threshold out")


def _ask(talk: coherence.Talk, asked: t.Sequence[cases.Case]) -> tuple[list[dict[str, t.Any]], list[Finding]]:
    answers, findings = [], []
    for case in asked:
        answer, faults = coherence.ask(talk, case)
        answers.append(answer)
        findings += faults
    if not asked:
        findings.append(finding("CHECK_NOT_MADE", "coherence", "no case was given to ask"))
    return answers, findings


def _speed(
    told: dict[str, t.Any],
    params: t.Mapping[str, t.Any],
    client: Client,
    model: str,
    warm: Warm,
    check_mode: bool,
) -> list[Finding]:
    if params["require_idle"]:
        serving = occupancy.requests(client)
        if serving != 0:
            detail = "it does not say how many it serves" if serving is None else f"it has {serving} at this moment"
            return [finding("SERVER_IN_USE", params["endpoint"], detail)]
    shape = Shape(
        model,
        params["throughput_prompt_tokens"],
        params["throughput_tokens"],
        params["throughput_rounds"],
        characters_per_token=warm.characters_per_token,
    )
    speed, found = throughput.measure(client, shape, params["throughput_concurrency"], params["answer_timeout_seconds"])
    if speed is None:
        return found
    found = found + throughput.compare(speed, params["thresholds"], params["endpoint"])
    speed["warm_up"] = warm.as_dict()
    speed["baseline"] = None
    if params["baseline"]:
        good = not any(one.severity in BAD for one in found)
        record = params["record_baseline"] and good and not check_mode
        of = {"model": model, **params["baseline_of"]}
        try:
            speed["baseline"], compared = baseline.hold_against(
                speed, params["baseline"], of, params["thresholds"], record
            )
        except OSError as error:
            cause = f"baseline {params['baseline']}: {error.strerror}"
            raise _refusal(params, cause, "Give a path that can be written") from error
        found += compared
        told["changed"] = speed["baseline"]["recorded"]
    told["throughput"] = speed
    return found


def _refusal(params: t.Mapping[str, t.Any], cause: str, remedy: str) -> SlipwayError:
    return cannot("probe", f"server '{params['endpoint']}'", here(), cause, remedy)
