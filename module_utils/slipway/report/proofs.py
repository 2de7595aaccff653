# SPDX-License-Identifier: GPL-3.0-or-later
"""What is proven of a host, when that was and on what it rests; and what is not, said as plainly. Pure."""

from __future__ import annotations

import typing as t

from . import blocks

Data = t.Mapping[str, t.Any]
PROVEN, BAD, LET_PASS, STALE, OPEN = "proven", "bad", "let pass", "stale", "not proven"
GOOD = ("ok", "degraded")


def rows(report: Data) -> list[dict[str, t.Any]]:
    """A row for each thing that can be proven: ``what state when rests_on text``."""
    proof, now = report["acceptance"], report["run"]["ended"]
    return [
        _kept("Links between GPUs", proof.get("links"), "Nobody has copied data between the GPUs"),
        _kept("All-reduce over the GPUs", proof.get("all_reduce"), "It was not reached"),
        _answers(proof, now),
        _kept("Speed", proof.get("speed"), "No load was put on the server")
        if proof.get("speed")
        else _speed(proof, now),
        _audit(report["audit"], now),
    ]


def unproven(report: Data) -> list[str]:
    """Sentences on what nobody should take for proven."""
    told = [f"{row['what']}: {row['text']}" for row in report["proofs"] if row["state"] not in (PROVEN, LET_PASS)]
    memory = report["memory"].get("verdict", "unknown")
    if memory == "unknown":
        told.append("Memory: whether the model fits into the GPUs was not computed.")
    if report["engine"] and not report["evidence"]:  # else the profile was not read
        told.append("The profile brings no evidence: nobody has written down where it ran before.")
    return told


def words(kept: Data) -> str:
    """What stands of a proof that `proof_record` keeps."""
    verdict = (kept.get("result") or {}).get("verdict", "ok")
    state = {
        "holds": "proven" if verdict == "ok" else "measured and found bad, which is let pass,",
        "failed": "measured and found bad",
        "stale": "no longer proven, measured",
    }[kept["state"]]
    changed = f", and since then changed: {'; '.join(kept['differences'])}" if kept["state"] == "stale" else ""
    rests = ", ".join(kept.get("rests_on") or {})
    return f"{state} {blocks.moment(kept['proven_at'])} ({kept['age']} ago){changed}." + (
        f" This rests on {rests}." if rests else ""
    )


def _kept(what: str, kept: Data | None, otherwise: str) -> dict[str, t.Any]:
    """One that `proof_record` keeps."""
    if kept and kept.get("asked") is False:
        return _row(what, OPEN, text="The profile asks for none.")
    if not kept or kept["state"] == "absent":
        return _row(what, OPEN, text=f"{otherwise}.")
    verdict = (kept.get("result") or {}).get("verdict", "ok")
    state = {"holds": PROVEN if verdict == "ok" else LET_PASS, "failed": BAD, "stale": STALE}[kept["state"]]
    text = words(kept)
    return _row(what, state, kept["proven_at"], list(kept.get("rests_on") or {}), text[:1].upper() + text[1:])


def _answers(proof: Data, now: str) -> dict[str, t.Any]:
    answers = proof.get("answers") or []
    if not answers:
        return _row("Answers", OPEN, text="The model was asked nothing.")
    wrong = [answer["case"] for answer in answers if not answer["passed"]]
    if wrong:
        return _row("Answers", BAD, now, text=f"{len(wrong)} of {len(answers)} are wrong: {', '.join(wrong)}.")
    kept = proof.get("answers_proof") or {}
    since = f" They stand proven since {blocks.moment(kept['proven_at'])}." if kept.get("state") == "holds" else ""
    return _row(
        "Answers",
        PROVEN,
        now,
        ["this run"],
        f"All {len(answers)} were asked and answered as expected in this run.{since}",
    )


def _speed(proof: Data, now: str) -> dict[str, t.Any]:
    measured = proof.get("throughput")
    if not measured:
        return _row("Speed", OPEN, text="No load was put on the server.")
    rate = blocks.figure(measured.get("output_tokens_per_second"))
    return _row("Speed", PROVEN, now, ["this run"], f"{rate} tokens a second for one request, measured in this run.")


def _audit(audit: Data | None, now: str) -> dict[str, t.Any]:
    what = "Files of the environment"
    if not audit:
        return _row(what, OPEN, text="They were not compared with their wheels in this run.")
    bad = [one for one in audit.get("findings") or [] if one["severity"] in ("fail", "unknown")]
    pristine = blocks.figure(audit["totals"]["pristine"], 0)
    text = f"{pristine} are as their wheels brought them; others: {len(audit['files'])}."
    return _row(what, BAD if bad else PROVEN, now, ["the wheels' records", "the lock", "the record of patches"], text)


def _row(what: str, state: str, when: str = "", rests_on: t.Sequence[str] = (), text: str = "") -> dict[str, t.Any]:
    return {"what": what, "state": state, "when": when, "rests_on": list(rests_on), "text": text}
