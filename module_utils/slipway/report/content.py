# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of a report: what the roles gathered and what the run itself saw, made into one piece of data. Pure.

Everything that a page shows is in it, so that ``report.json`` says the same as the page.
"""

from __future__ import annotations

import typing as t

from . import proofs

Data = t.Mapping[str, t.Any]
BAD = ("fail", "unknown")
# The worst first; what could not be seen stands beside what is wrong, since it counts the same.
ORDER = ("fail", "unknown", "warn", "info", "ok")
COMMAND_LINE = "command line (-e)"
FIT, NOT_FIT, NOT_SEEN = "fit", "not fit", "not looked at"


def compose(host: str, gathered: Data, run: Data, earlier: t.Sequence[Data]) -> dict[str, t.Any]:
    """One host's report.

    ``gathered`` is what the role `report` handed over; of a run that ended early parts of it are missing. ``run`` has ``playbook began ended seconds
    extra_variables hosts``, and by host ``changed`` (lists of ``host role task count``), ``failures`` (lists of sentences) and ``unreachable``.
    ``earlier`` are the lines of earlier runs (``history.read``), the newest first.
    """
    node = gathered.get("node")
    own = [name for name in (node, host) if name]
    failures = [{"host": name, "text": text} for name in own for text in run["failures"].get(name, [])]
    acceptance = _acceptance(gathered.get("acceptance") or {})
    elsewhere = [
        {"host": name, "text": text}
        for name, texts in sorted(run["failures"].items())
        if name not in own
        for text in texts
    ]
    findings = sorted(gathered.get("findings") or [], key=lambda one: ORDER.index(one["severity"]))
    report: dict[str, t.Any] = {
        "format": 2,
        "host": host,
        "time": run["began"],
        "run": {key: run[key] for key in ("playbook", "began", "ended", "seconds")},
        "node": node,
        "vmid": gathered.get("vmid"),
        "profile": gathered.get("profile"),
        "summary": gathered.get("summary"),
        "engine": gathered.get("engine"),
        "asked": [_decided(row, run["extra_variables"]) for row in gathered.get("asked") or []],
        "consents": gathered.get("consents") or [],
        "findings": findings,
        "failures": failures,
        # Another host's failure ends a run for all before anything is changed; what was proven here stands all the same.
        "elsewhere": elsewhere if not failures and not acceptance.get("answers") else [],
        "changed": [row for name in own for row in run["changed"].get(name, [])],
        "acceptance": acceptance,
        "memory": gathered.get("memory") or {},
        "argv": gathered.get("argv") or [],
        "environment": gathered.get("environment"),
        "audit": gathered.get("audit"),
        "gathering": gathered.get("gathering") or "",
        "evidence": gathered.get("evidence") or [],
        "expected": gathered.get("expected") or [],
        "history": list(earlier),
    }
    report["fit"] = _fit(report)
    # What another host's failure kept the run from looking at may serve well.
    report["verdict"] = FIT if report["fit"] else NOT_SEEN if report["elsewhere"] and not failures else NOT_FIT
    report["outcome"] = _outcome(report)
    report["headline"] = headline(report)
    report["proofs"] = proofs.rows(report)
    report["unproven"] = proofs.unproven(report)
    report["next"] = _next(report)
    return report


def headline(report: Data) -> str:
    """The first sentence: whether the host is fit, and what it serves where."""
    proof = report["acceptance"]
    if report["verdict"] == NOT_SEEN:
        return f"{report['host']} was not looked at"
    serves = f" {proof['model']} at {proof['endpoint']}" if proof.get("model") and proof.get("endpoint") else ""
    return f"{report['host']} {'is fit and serves' if report['fit'] else 'is NOT fit to serve'}{serves or ' anything'}"


def attention(report: Data) -> list[str]:
    """A line for each finding that is not good news, as the terminal shows it."""
    return [
        f"{found['severity']} {found['id']}, {found['subject']}: {sentence(found, 'summary', 'detail', 'remedy')}"
        for found in report["findings"]
        if found["severity"] in ("warn", *BAD)
    ]


def told(report: Data) -> list[str]:
    """The report in some lines, for the terminal."""
    links = report["acceptance"].get("links") or {}
    proven = [f"Links between GPUs: {proofs.words(links)}"] if links.get("state") == "holds" else []
    return [headline(report), *proven, *attention(report)]


def sentence(found: Data, *parts: str) -> str:
    """Some parts of a finding as sentences."""
    texts = [str(found.get(part) or "").strip().rstrip(".") for part in parts]
    joined = ". ".join(text for text in texts if text)
    return f"{joined}." if joined else ""


def _acceptance(proof: Data) -> dict[str, t.Any]:
    """The proof. What was skipped, as for an engine that has no all-reduce, is absent because nobody asks for it."""
    nobody = {"state": "absent", "asked": False}
    return {key: nobody if isinstance(one, dict) and one.get("skipped") else one for key, one in dict(proof).items()}


def _fit(report: Data) -> bool:
    """Fit is what was asked and answered in a run that came to its end; that nothing was found is not enough."""
    proof = report["acceptance"]
    answers = proof.get("answers") or []
    return bool(
        answers
        and proof.get("gpus")
        and all(answer["passed"] for answer in answers)
        and not [found for found in report["findings"] if found["severity"] in BAD]
        and not report["failures"]
    )


def _outcome(report: Data) -> str:
    """How the run ended for this host, in a sentence."""
    if report["failures"]:
        who = sorted({failure["host"] for failure in report["failures"]})
        return f"The run ended early on {' and '.join(who)}: what is not told below was not looked at."
    if report["elsewhere"]:
        who = sorted({failure["host"] for failure in report["elsewhere"]})
        return f"The run ended before it came to this host, because of {', '.join(who)}."
    return "The run came to its end." if report["acceptance"] else "The run did not come to a proof."


def _decided(row: Data, extra_variables: t.Collection[str]) -> dict[str, t.Any]:
    """What was given with ``-e`` beats every other place, and only the run knows of it."""
    return {**row, "by": COMMAND_LINE} if row.get("variable") in extra_variables else dict(row)


def _next(report: Data) -> list[str]:
    """What somebody should do, the most pressing first, each once."""
    told = [failure["text"] for failure in report["failures"] + report["elsewhere"]]
    text = " ".join(told)
    subjects: dict[str, list[str]] = {}
    for found in report["findings"]:
        if found["severity"] in ("warn", *BAD) and found["remedy"] and found["id"] not in text:
            subjects.setdefault(found["remedy"], []).append(found["subject"])
    for remedy, about in subjects.items():
        told.append(f"{about[0]}{f' and {len(about) - 1} more' if len(about) > 1 else ''}: {remedy}")
    for proof in report["proofs"]:
        if proof["state"] == "stale":
            told.append(f"{proof['what']}: deploy again when the GPUs are free, so that it is proven anew.")
    if not told and not report["fit"]:
        told.append("Run deploy.yml: this run made no proof, and nothing that it found says why.")
    return list(dict.fromkeys(told))
