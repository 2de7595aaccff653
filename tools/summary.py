# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what the demo ended with, from the report that the run wrote. Argument: the seconds that it took."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "What is the capital city of Italy? Answer in one sentence."


def summary(report: dict, fleet: dict, path: Path, seconds: int) -> str:
    """The lines to print: endpoint, answer, report, time, what to try next. Secrets stay in the file that has them."""
    proof = report["acceptance"]
    shown = next((answer for answer in proof["answers"] if answer["case"] == "shown"), None)
    question = [f"question: {shown['question']}", f"answer:   {shown['answer'].strip()}"] if shown else []
    state = f".rig/{fleet['name']}"
    body = {"model": proof["model"], "temperature": 0, "messages": [{"role": "user", "content": QUESTION}]}
    key = f'$(.venv/bin/python -c \'import json; print(json.load(open("{state}/fleet.json"))["api_key"])\')'
    curl = f'curl -H "Authorization: Bearer {key}" -H "Content-Type: application/json"'
    ssh = f"ssh -i {state}/ssh/id_ed25519 -o UserKnownHostsFile={state}/ssh/known_hosts root"
    return "\n".join(
        [
            "",
            f"endpoint: {proof['endpoint']}",
            *question,
            f"report:   {path}",
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


if __name__ == "__main__":
    rig = ROOT / ".rig" / (os.environ.get("SLIPWAY_RIG") or "demo")
    latest = (rig / "reports/infer1/latest/report.json").resolve()
    report, fleet = (json.loads(path.read_text()) for path in (latest, rig / "fleet.json"))
    print(summary(report, fleet, latest.with_suffix(".md"), int(sys.argv[1])))
