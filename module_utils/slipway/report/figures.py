# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections with what was measured: answers, speed, memory, links, all-reduce, GPUs, files, the server's command line. Pure.

Proofs that are kept may be of an earlier version and come from the guest: what is missing in them, or of another form, is told as such.
"""

from __future__ import annotations

import shlex
import typing as t

from ..p2p import matrix
from . import blocks, proofs

Data = t.Mapping[str, t.Any]
PERCENTILES = ("p50", "p90", "p99")
UNREADABLE = "The figures that are kept are of a form that cannot be read."


def sections(report: Data) -> list[dict[str, t.Any]]:
    """All of them, whether or not there is anything in them."""
    proof = report["acceptance"]
    return [
        blocks.section("answers", "Answers", *answers(proof.get("answers") or [])),
        blocks.section("speed", "Speed", *speed(proof.get("throughput"), proof.get("speed"), report["expected"])),
        blocks.section("memory", "Memory of the GPUs", *memory(report["memory"])),
        blocks.section("links", "Links between GPUs", *links(proof.get("links"))),
        blocks.section("all-reduce", "All-reduce", *all_reduce(proof.get("all_reduce"))),
        blocks.section("gpus", "GPUs and driver", *gpus(proof)),
        blocks.section("files", "Files of the environment", *files(report["audit"])),
        blocks.section(
            "server",
            "Server",
            blocks.text(f"Environment: {report['environment']}." if report["environment"] else ""),
            {"kind": "code", "text": shlex.join(str(word) for word in report["argv"])}
            if report["argv"]
            else blocks.text("Not planned in this run."),
        ),
    ]


def answers(cases: t.Sequence[Data]) -> list[blocks.Block | None]:
    """Each question with its answer and the verdict of the rules."""
    if not cases:
        return [blocks.text("The model was asked nothing.")]
    talks = []
    for case in cases:
        turns = case.get("turns") or [case]
        cause = case.get("cause") or ""
        verdict = (
            "as expected"
            if case["passed"]
            else " ".join(part for part in (case.get("finding") or "wrong", cause) if part)
        )
        talks.append(
            {
                "case": case["case"],
                "about": ", ".join(
                    part
                    for part in (
                        str(case.get("kind") or "").replace("_", " "),
                        f"{blocks.figure(case.get('seconds'), 2)} s",
                    )
                    if part
                ),
                "verdict": blocks.mark("good" if case["passed"] else "bad", verdict),
                "turns": [
                    {
                        "question": turn.get("question") or case.get("question") or "",
                        "answer": turn.get("answer") or "",
                        "note": "; ".join(str(part) for part in (turn.get("note"), turn.get("cause")) if part),
                    }
                    for turn in turns
                ],
            }
        )
    wrong = sum(not case["passed"] for case in cases)
    return [
        blocks.text(f"{len(cases) - wrong} of {len(cases)} are as expected; rules judge them, no other model."),
        {"kind": "talk", "talks": talks},
    ]


def speed(measured: Data | None, kept: Data | None, expected: t.Sequence[Data]) -> list[blocks.Block | None]:
    """Tokens a second and times by how many requests were at work, and what others reported."""
    reported = blocks.table(
        "What others reported of this profile; nothing is judged by it",
        ("figure", "requests at once", "from", "to", "source"),
        [
            [str(one.get("figure") or "").replace("_", " "), one.get("concurrency") or "", blocks.figure(one.get("from"), 0),
             blocks.figure(one.get("to"), 0), one.get("source") or ""]
            for one in expected
        ],
        right=(1, 2, 3),
    )  # fmt: skip
    if not measured:
        return [blocks.text("Not measured."), reported]
    first = blocks.text(
        f"Speed: {proofs.words(kept)}" if kept and kept["state"] != "absent" else "",
        f"One request: {blocks.figure(measured.get('output_tokens_per_second'))} tokens a second, the first after "
        f"{blocks.figure(measured.get('time_to_first_token_seconds'), 2)} s.",
    )
    loads = measured.get("loads") or []
    if not loads:
        return [first, reported]
    asked = blocks.text(
        f"Prompts of {blocks.figure(measured.get('prompt_tokens_wanted'), 0)} tokens, answers of {blocks.figure(measured.get('output_tokens_wanted'), 0)}"
        + (", each of that length. " if measured.get("fixed_length") else " at most. ")
        + "What was read before the first token (prefill) is kept apart."
    )
    return [first, asked, *_loads(loads), reported]


def _loads(loads: t.Sequence[Data]) -> list[blocks.Block | None]:
    together = [
        [
            load["concurrency"],
            blocks.figure(load.get("output_tokens_per_second")),
            _or(load.get("threshold"), "none"),
            _or(load.get("baseline"), "none"),
            blocks.figure(load.get("prompt_tokens_per_second"), 0),
            f"{load.get('failed', 0)} of {load.get('requests', 0)}",
        ]
        for load in loads
    ]
    times = [
        [
            load["concurrency"],
            _spread(load.get("stream_tokens_per_second"), 1, 1),
            _spread(load.get("time_to_first_token_seconds"), 2, 1),
            _spread(load.get("time_per_output_token_seconds"), 1, 1000),
        ]
        for load in loads
    ]
    errors = [
        f"{load['concurrency']} at once: {error.get('count')} times {error.get('error')}"
        for load in loads
        for error in load.get("errors") or []
    ]
    return [
        blocks.table(
            "All requests together, tokens a second",
            ("requests at once", "measured", "wanted at least", "this host's first", "prefill", "failed"),
            together,
            right=(0, 1, 2, 3, 4, 5),
        ),
        blocks.table(
            "Each request by itself: p50 / p90 / p99 / worst",
            ("requests at once", "tokens a second", "seconds to the first token", "milliseconds a token"),
            times,
            right=(0, 1, 2, 3),
        ),
        blocks.listing(errors),
    ]


def _spread(values: Data | None, digits: int, scale: float) -> str:
    return (
        " / ".join(blocks.figure((values or {}).get(key), digits, scale) for key in (*PERCENTILES, "worst"))
        if values
        else blocks.NOTHING
    )


def _or(value: t.Any, otherwise: str) -> str:
    return otherwise if value is None else blocks.figure(value)


def memory(fit: Data) -> list[blocks.Block | None]:
    """What is on each GPU, and what is left for keys and values."""
    if not fit.get("rows"):
        return [blocks.text("Not computed: the weights or the model's configuration were not there to be read.")]
    where = "of the machine" if fit.get("device") == "cpu" else f"of each of {fit.get('ranks') or '?'} GPUs"
    rows = [
        [row.get("what") or row.get("name"), blocks.figure(row.get("mib"), 0), row.get("how") or ""]
        for row in fit["rows"]
    ]
    rows.append(["Altogether", blocks.figure(fit.get("memory_mib"), 0), ""])
    kv = fit.get("kv") or {}
    verdicts = {"fits": "It fits", "tight": "It is tight", "short": "It does not fit"}
    told = (
        f"{verdicts.get(str(fit.get('verdict')), 'Whether it fits is not known')}: room for {blocks.figure(fit.get('kv_tokens'), 0)} tokens, which is "
        f"{blocks.figure(fit.get('requests_at_context'))} requests of {blocks.figure(fit.get('context_length'), 0)} tokens. A token takes "
        f"{blocks.figure(kv.get('bytes_per_token'), 0)} bytes ({kv.get('form') or '?'}, {kv.get('dtype') or '?'}; {kv.get('how') or 'not known how'})."
    )
    return [
        blocks.text(told),
        blocks.table(f"Memory {where}, computed before the start", ("what", "MiB", "how"), rows, right=(1,)),
        blocks.listing(fit.get("assumptions") or []),
    ]


def links(kept: Data | None) -> list[blocks.Block | None]:
    """The heat map, drawn from the figures, since what a guest keeps as HTML is the guest's."""
    result = (kept or {}).get("result")
    if not result:
        return [blocks.text("Not measured.")]
    try:
        drawn = {"kind": "matrix", "html": matrix.fragment(result), "markdown": matrix.markdown(result)}
    except (KeyError, TypeError, ValueError, AttributeError):
        return [blocks.text(UNREADABLE)]
    plan = result.get("plan") or {}
    parts = [
        f"{part.get('test')} {part.get('kind')} {blocks.figure(part.get('took_seconds') or 0)} s"
        for part in plan.get("parts") or []
    ]
    took = (
        f"Measured in {blocks.figure(plan['took_seconds'])} s: {', '.join(parts)}." if plan.get("took_seconds") else ""
    )
    return [blocks.text(f"Verdict: {result.get('verdict') or 'none'}.", took), drawn]


def all_reduce(kept: Data | None) -> list[blocks.Block | None]:
    """One row a size."""
    result = (kept or {}).get("result")
    if not kept or not result:
        return [
            blocks.text(
                "Not measured: the profile asks for none." if kept and kept.get("asked") is False else "Not measured."
            )
        ]
    verdict = str(result.get("verdict") or "not measured").replace("_", " ")
    past = "No longer proven. It was " if kept["state"] == "stale" else ""
    told = f"{past}{verdict} with NCCL {result.get('nccl_version')} over {len(result.get('ranks') or [])} GPUs, measured {blocks.moment(kept['proven_at'])}."
    rows = [
        [blocks.figure(row.get("size"), 3, 1 / 1048576), blocks.figure(row.get("seconds"), 6), blocks.figure(row.get("busbw_gbps")),
         blocks.figure(row.get("checked"), 0), blocks.figure(row.get("wrong"), 0)]
        for row in result.get("results") or []
    ]  # fmt: skip
    heads = ("MiB", "seconds", "bus bandwidth, GB/s", "sums compared", "wrong")
    return [blocks.text(told[:1].upper() + told[1:]), blocks.table("By size", heads, rows, right=(0, 1, 2, 3, 4))]


def gpus(proof: Data) -> list[blocks.Block | None]:
    """What the guest sees."""
    driver, cuda = proof.get("driver"), proof.get("cuda") or {}
    if not driver:
        return [blocks.text("Not looked at: the proof was cut short.")]
    rows = [
        [
            gpu["bus_id"],
            gpu.get("device"),
            gpu.get("name"),
            blocks.figure(gpu.get("memory_mib"), 0),
            gpu.get("numa_node"),
        ]
        for gpu in proof.get("gpus") or []
    ]
    result = cuda.get("result")
    told = f"Driver {driver.get('kernel_version')} in the kernel, {driver.get('user_version')} in the guest; CUDA " + (
        "starts." if result == 0 else f"does not start (cuInit {blocks.figure(result, 0)})."
    )
    return [
        blocks.text(told),
        blocks.table(
            "GPUs of the guest", ("PCI address", "device", "name", "memory MiB", "NUMA node"), rows, right=(3, 4)
        ),
    ]


def files(audit: Data | None) -> list[blocks.Block | None]:
    """What is not as the wheels brought it."""
    if not audit:
        return [blocks.text("Not compared with their wheels in this run.")]
    rows = [
        [one.get("path"), one.get("package") or "none", one.get("state"), ", ".join(one.get("patches") or []) or "none"]
        for one in audit["files"]
    ]
    return [
        blocks.text(f"{blocks.figure(audit['totals']['pristine'], 0)} files are as their wheels brought them."),
        blocks.table("What is not", ("file", "package", "state", "patches"), rows),
    ]
