# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what the demo ended with, from the report that the run wrote. Argument: the seconds that it took."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

WIDTH = 110
ROOT = Path(__file__).resolve().parent.parent
QUESTION = "What is the capital city of Italy? Answer in one sentence."


def summary(report: dict, fleet: dict, path: Path, seconds: int) -> str:
    """The lines to print: endpoint, what was asked and answered, speed, report, time, what to try next. Secrets stay in the file that has them."""
    proof = report["acceptance"]
    state = f".rig/{fleet['name']}"
    body = {"model": proof["model"], "temperature": 0, "messages": [{"role": "user", "content": QUESTION}]}
    key = f'$(.venv/bin/python -c \'import json; print(json.load(open("{state}/fleet.json"))["api_key"])\')'
    curl = f'curl -H "Authorization: Bearer {key}" -H "Content-Type: application/json"'
    ssh = f"ssh -i {state}/ssh/id_ed25519 -o UserKnownHostsFile={state}/ssh/known_hosts root"
    return "\n".join(
        [
            "",
            f"endpoint: {proof['endpoint']}",
            *coherence(proof["answers"]),
            *throughput(proof["throughput"]),
            f"report:   {path}   # open it in a browser",
            f"time:     {seconds // 60} min {seconds % 60} s",
            "",
            "Try next:",
            "  .venv/bin/ansible-playbook deploy.yml   # changes nothing now",
            f"  {curl} -d '{json.dumps(body)}' {proof['endpoint']}/chat/completions",
            f"  {ssh}@{urlsplit(proof['endpoint']).hostname}   # the guest: systemctl status slipway-inference",
            f"  {ssh}@{fleet['nodes'][0]['address']}    # its node: pct config {report['vmid']}, nvidia-smi",
            "  make clean                              # takes the rig away again",
        ]
    )


def coherence(answers: list[dict]) -> list[str]:
    """Each case with its question, its answer and the verdict."""
    wrong = sum(not answer["passed"] for answer in answers)
    lines = [f"answers:  {len(answers) - wrong} of {len(answers)} as expected"]
    for answer in answers:
        fault = ": ".join(part for part in (answer.get("finding"), answer.get("cause")) if part) or "wrong"
        lines += [
            f"  {'ok ' if answer['passed'] else 'NOT'} {one_line(answer['case'])}{'' if answer['passed'] else f' ({one_line(fault)})'}",
            f"      {one_line((answer.get('turns') or [answer])[-1]['question'])}",  # that which the answer is to
            f"      > {one_line(answer['answer']) or '(nothing)'}",
        ]
    return lines


def throughput(measured: dict | None) -> list[str]:
    """Tokens a second by how many requests were at work."""
    if not measured:
        return ["speed:    not measured"]
    loads = measured.get("loads") or []
    if not loads:
        return [
            f"speed:    {measured['output_tokens_per_second']:.1f} tokens/s for one request, the first after {measured['time_to_first_token_seconds']:.2f} s"
        ]
    lines = ["speed:    at once  tokens/s  of each  first token  worst"]
    for load in loads:
        first, each = load["time_to_first_token_seconds"] or {}, load["stream_tokens_per_second"] or {}
        figures = [
            figure(load["output_tokens_per_second"], 1),
            figure(each.get("p50"), 1),
            figure(first.get("p50"), 2),
            figure(first.get("worst"), 2),
        ]
        together, one, begun, worst = figures
        lines.append(f"          {load['concurrency']:>7}  {together:>8}  {one:>7}  {begun:>9} s  {worst} s")
    return lines


def figure(value: float | None, digits: int) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def one_line(text: str) -> str:
    """What a model said, for a terminal: in one line, not too long, and without characters that move its cursor."""
    shown = "".join(letter if letter.isprintable() else " " for letter in str(text))
    return textwrap.shorten(shown, WIDTH, placeholder=" ...")


if __name__ == "__main__":
    rig = ROOT / ".rig" / (os.environ.get("SLIPWAY_RIG") or "demo")
    latest = (rig / "reports/infer1/latest/report.json").resolve()
    report, fleet = (json.loads(path.read_text()) for path in (latest, rig / "fleet.json"))
    print(summary(report, fleet, latest.with_suffix(".html"), int(sys.argv[1])))
