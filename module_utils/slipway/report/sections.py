# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of a host's page, in the order in which a colleague reads them. Pure."""

from __future__ import annotations

import typing as t
from urllib.parse import quote

from . import blocks, chart, content, figures, history, proofs

Data = t.Mapping[str, t.Any]
SEVERITIES = {
    "ok": blocks.mark("good", "good"),
    "info": blocks.mark("open", "note"),
    "warn": blocks.mark("doubt", "warning"),
    "fail": blocks.mark("bad", "failed"),
    "unknown": blocks.mark("bad", "not known"),
}
VERDICTS = {content.FIT: "good", content.NOT_FIT: "bad", content.NOT_SEEN: "open"}
TONES = {proofs.PROVEN: "good", proofs.BAD: "bad", proofs.LET_PASS: "doubt", proofs.STALE: "doubt", proofs.OPEN: "open"}


def page(report: Data) -> list[dict[str, t.Any]]:
    """All of them."""
    return [
        _next(report),
        _asked(report),
        _found(report),
        _changed(report),
        _proven(report),
        _unproven(report),
        *figures.sections(report),
        _history(report),
    ]


def facts(report: Data) -> list[tuple[str, str]]:
    """The run in a few words, for the top of the page."""
    run, proof = report["run"], report["acceptance"]
    told = [
        ("Run", f"{run['playbook']}, begun {blocks.moment(run['began'])}, {blocks.duration(run['seconds'])}"),
        ("Guest", f"{report['vmid'] or 'not known'} of node {report['node'] or 'not known'}"),
        ("Profile", ", ".join(str(one) for one in (report["profile"], report["summary"]) if one) or "not known"),
        ("Engine", report["engine"] or "not known"),
        ("Endpoint", proof.get("endpoint") or "not known"),
        ("Model", proof.get("model") or "not known"),
    ]
    return [(name, str(value)) for name, value in told]


def _next(report: Data) -> dict[str, t.Any]:
    stopped = (
        blocks.text(f"What could be gathered is not complete: {report['gathering']}") if report["gathering"] else None
    )
    steps = blocks.listing(report["next"])
    if steps is None:
        steps = blocks.text(
            "Nothing. Run the same command again after a change, and playbooks/verify.yml whenever in doubt."
        )
    return blocks.section("next", "What to do next", stopped, steps)


def _asked(report: Data) -> dict[str, t.Any]:
    rows = [
        [row["what"], blocks.figure(row["value"], 0), row.get("variable") or "", row["by"]] for row in report["asked"]
    ]
    consents = report["consents"]
    allowed = f"Allowed by consent: {', '.join(consents)}." if consents else "Nothing dangerous was allowed by consent."
    return blocks.section(
        "asked",
        "What was asked for",
        blocks.table("Settings, and who decided them", ("what", "value", "by which variable", "decided by"), rows),
        blocks.text(allowed) if rows else blocks.text("Not known: the run ended before it was read."),
    )


def _found(report: Data) -> dict[str, t.Any]:
    """Findings by severity, the worst first. What is good is counted, not shown."""
    told = [one for one in report["findings"] if one["severity"] != "ok"]
    good = len(report["findings"]) - len(told)
    rows = [
        [
            SEVERITIES[one["severity"]],
            f"{one['subject']}: {content.sentence(one, 'summary', 'detail')}",
            one["remedy"] or "nothing",
            one["id"],
        ]
        for one in told
    ]
    failures = blocks.table(
        "What ended the run",
        ("host", "why"),
        [[one["host"], one["text"]] for one in [*report["failures"], *report["elsewhere"]]],
    )
    return blocks.section(
        "found",
        "What was found",
        failures,
        blocks.table("Findings, the worst first", ("severity", "what and why", "what to do", "finding"), rows),
        blocks.text("" if rows else "No finding asks for anything.", f"Checks that were good: {good}." if good else ""),
    )


def _changed(report: Data) -> dict[str, t.Any]:
    rows = [
        [row["role"], row["task"] + (f" ({row['count']} times)" if row["count"] > 1 else ""), row["on"]]
        for row in report["changed"]
    ]
    early = report["failures"] or report["elsewhere"]
    nothing = (
        "Nothing was changed until the run ended." if early else "Nothing: all that was looked at was as declared."
    )
    return blocks.section(
        "changed",
        "What was changed",
        blocks.table("Tasks that changed something, in their order", ("role", "what it did", "on"), rows),
        None if rows else blocks.text(nothing),
    )


def _proven(report: Data) -> dict[str, t.Any]:
    rows = [
        [
            row["what"],
            blocks.mark(TONES[row["state"]], row["state"]),
            blocks.moment(row["when"]) if row["when"] else "never",
            row["text"],
        ]
        for row in report["proofs"]
    ]
    return blocks.section(
        "proven",
        "What is proven",
        blocks.table("Proofs", ("what", "state", "when", "what stands, and on what it rests"), rows),
    )


def _unproven(report: Data) -> dict[str, t.Any]:
    evidence = [
        [
            str(one.get("what") or "").strip(),
            str(one.get("where") or ""),
            str(one.get("by") or ""),
            str(one.get("when") or ""),
        ]
        for one in report["evidence"]
    ]
    nothing = blocks.text("All that Slipway can prove of this host is proven." if not report["unproven"] else "")
    return blocks.section(
        "unproven",
        "What is not proven",
        blocks.listing(report["unproven"]) or nothing,
        blocks.table(
            "What the profile itself says was shown, where and when; none of it was shown here",
            ("what", "where", "by", "when"),
            evidence,
        ),
    )


def _history(report: Data) -> dict[str, t.Any]:
    earlier = report["history"]
    speeds = [one["speed"] for one in reversed(earlier)]
    now = (report["acceptance"].get("throughput") or {}).get("output_tokens_per_second")
    rows = [
        [
            blocks.link(f"../{one['time']}/report.html", blocks.moment(one["time"])),
            one["playbook"] or "not known",
            blocks.mark(VERDICTS.get(one["verdict"], "open"), one["verdict"]),
            blocks.figure(one["speed"]),
            one["changed"] or "not known",
        ]
        for one in earlier
    ]
    drawing = chart.bars([*speeds, now], "Tokens a second over the runs, the oldest first")
    return blocks.section(
        "history",
        "Earlier runs of this host",
        {
            "kind": "chart",
            "svg": drawing,
            "caption": "Tokens a second of one request, the oldest run first, this one last",
        }
        if drawing
        else None,
        blocks.table("The newest first", ("run", "playbook", "verdict", "tokens/s", "changed"), rows, right=(3,)),
        None if rows else blocks.text("None are kept: this is the first report of this host here."),
    )


def index(hosts: t.Sequence[Data], run: Data) -> list[dict[str, t.Any]]:
    """The sections of the page over all hosts; ``hosts`` are lines of their last reports."""
    rows = [
        [
            blocks.link(f"{quote(one['host'])}/latest/report.html", one["host"]),
            blocks.mark(VERDICTS.get(one["verdict"], "open"), one["verdict"]),
            one["model"] or "not known",
            blocks.figure(one["speed"]),
            blocks.moment(one["time"]),
            one["changed"] or "not known",
        ]
        for one in hosts
    ]
    failures = [[host, text] for host, texts in sorted(run["failures"].items()) for text in texts]
    changed = [[host, history.summary(tasks)] for host, tasks in sorted(run["changed"].items()) if tasks]
    return [
        blocks.section(
            "hosts",
            "Hosts",
            blocks.table(
                "The last report of each", ("host", "verdict", "model", "tokens/s", "run", "changed"), rows, right=(3,)
            ),
        ),
        blocks.section(
            "run",
            "The last run",
            blocks.text(f"{run['playbook']}, begun {blocks.moment(run['began'])}, {blocks.duration(run['seconds'])}."),
            blocks.table("What ended it", ("host", "why"), failures),
            blocks.table("What it changed, by role", ("host", "changed"), changed),
            blocks.text("" if failures else "No host failed.", "" if changed else "Nothing was changed."),
        ),
    ]
