# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what the demo ended with, from the report that the run wrote. Argument: the seconds that it took."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def summary(report: dict, path: Path, rig: str, seconds: int) -> str:
    """The lines to print: endpoint, answer, report, time, what to try next."""
    proof = report["acceptance"]
    shown = next((answer for answer in proof["answers"] if answer["case"] == "shown"), None)
    question = [f"question: {shown['question']}", f"answer:   {shown['answer'].strip()}"] if shown else []
    ask = json.dumps(
        {"model": proof["model"], "messages": [{"role": "user", "content": "What is the capital of France?"}]}
    )
    key = f'$(python3 -c \'import json; print(json.load(open(".rig/{rig}/fleet.json"))["api_key"])\')'
    return "\n".join(
        [
            "",
            f"endpoint: {proof['endpoint']}",
            *question,
            f"report:   {path}",
            f"time:     {seconds // 60} min {seconds % 60} s",
            "",
            "Try next:",
            "  .venv/bin/ansible-playbook deploy.yml      # changes nothing now",
            f'  curl {proof["endpoint"]}/chat/completions -H "Authorization: Bearer {key}" -H "Content-Type: application/json" -d \'{ask}\'',
            f"  ssh -i .rig/{rig}/ssh/id_ed25519 -o UserKnownHostsFile=.rig/{rig}/ssh/known_hosts root@{proof['endpoint'].split('//')[1].split(':')[0]}",
            "  make clean                                 # takes everything away again",
        ]
    )


if __name__ == "__main__":
    name = os.environ.get("SLIPWAY_RIG") or "demo"
    latest = (ROOT / ".rig" / name / "reports/infer1/latest").resolve() / "report.md"
    data = json.loads(latest.with_suffix(".json").read_text())
    print(summary(data, latest, name, int(sys.argv[1])))
