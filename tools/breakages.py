# SPDX-License-Identifier: GPL-3.0-or-later
"""Break what Slipway keeps true, by hand, on the rig; deploy; see what it said and did. docs/breakages.md is made of it.

    python tools/breakages.py run [BATCH...]   break, deploy and check; what came of it goes to build/breakages.json
    python tools/breakages.py short            the batches that a run of CI has time for, and a deploy that must change nothing
    python tools/breakages.py page             write docs/breakages.md from that record

molecule/repair/breakages.yml says what is broken and how it must come out. Several independent things are broken at once and
one deploy repairs them; a task that changes something and belongs to none of them is a failure, and so is a check that passes
while the thing is broken. SLIPWAY_RIG names the rig, which must be deployed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import typing as t
from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "molecule" / "repair" / "breakages.yml"
RECORD = ROOT / "build" / "breakages.json"
PAGE = ROOT / "docs" / "breakages.md"
CALLBACKS = ROOT / "molecule" / "repair" / "callback_plugins"
VMID = "101"
# In the order of a deploy.
ROLES = (
    "pve_host",
    "model_store",
    "gpu_container",
    "gpu_userspace",
    "inference_stack",
    "inference_server",
    "acceptance",
)
OUTCOMES = ("repaired", "refused", "kept")
# What differs from run to run, and what stands for it on the page.
NOISE = (
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b"), "<address>"),
    (re.compile(r"(?<=\w )\((guest \d+ )?\d+\)"), r"(\1<pid>)"),
    (re.compile(r"\S*/\.rig/[^/\s]+"), "<rig>"),
    (re.compile(r"(?<=The last lines of its log: ).*", re.DOTALL), "..."),
)


class Failure(Exception):
    """Something came out other than the data says, in a sentence."""


class Rig:
    """The places where things are broken: the node, the guest (through its node, whatever became of its SSH), the controller."""

    def __init__(self) -> None:
        self.folder = ROOT / ".rig" / os.environ.get("SLIPWAY_RIG", "demo")
        self.fleet = json.loads((self.folder / "fleet.json").read_text())
        self._control = tempfile.mkdtemp(prefix="breakages-")

    def shell(self, place: str, script: str) -> tuple[int, str]:
        """Run a script there with bash; its status and all that it said."""
        options = {
            "UserKnownHostsFile": self.folder / "ssh/known_hosts",
            "ControlMaster": "auto",
            "ControlPath": f"{self._control}/%C",
            "ControlPersist": "60",
            "BatchMode": "yes",
        }
        ssh = ["ssh", "-i", str(self.folder / "ssh/id_ed25519")]
        ssh += [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        ssh += [f"root@{self.fleet['nodes'][0]['address']}"]
        command = {
            "node": [*ssh, "bash -s"],
            "guest": [*ssh, f"pct exec {VMID} -- bash -s"],
            "controller": ["bash", "-s"],
        }[place]
        done = subprocess.run(
            command,
            input=f"set -eu -o pipefail\n{script}\n",
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "RIG": str(self.folder),
                "NODE": self.fleet["nodes"][0]["address"],
                "GUEST": f"{self.fleet['prefix']}.{VMID}",
            },
        )
        return done.returncode, done.stdout.strip()

    def each(self, scripts: dict[str, str]) -> str | None:
        """Run one script at each place, in order; what the first that failed said, or None."""
        for place, script in scripts.items():
            status, output = self.shell(place, script)
            if status:
                return f"{place}: status {status}, {output[-600:] or 'no output'}"
        return None


class Run:
    """One run of a playbook, and what each of its tasks did."""

    def __init__(self, variables: dict[str, t.Any], limit: str | None, playbook: str = "deploy.yml") -> None:
        words = ["ansible-playbook", "-i", "inventory/rig", "-e", json.dumps(variables), playbook]
        words += ["--limit", limit] if limit else []
        plugins = [str(folder) for folder in (ROOT / "callback_plugins", CALLBACKS) if folder.is_dir()]
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as record:
            environment = {"BREAKAGES_RECORD": record.name, "ANSIBLE_CALLBACK_PLUGINS": ":".join(plugins)}
            started = time.monotonic()
            with open(ROOT / "build" / "breakages.log", "a", encoding="utf-8") as log:
                done = subprocess.run(
                    words, cwd=ROOT, env={**os.environ, **environment}, stdout=log, stderr=subprocess.STDOUT
                )
            self.seconds = time.monotonic() - started
            self.status = done.returncode
            self.tasks = [json.loads(line) for line in record]

    def changed(self) -> list[str]:
        """Titles of the tasks that changed something, once each, in their order."""
        return list(dict.fromkeys(task["task"] for task in self.tasks if task["status"] == "changed"))

    def sentence(self) -> str:
        """What the last task that failed said."""
        return (self.sentences() or [""])[-1]

    def sentences(self) -> list[str]:
        """What each task that failed said."""
        failed = [task for task in self.tasks if task["status"] in ("failed", "unreachable")]
        return [" ".join(str(task["result"].get("msg", "")).split()) for task in failed]

    def findings(self) -> list[dict[str, str]]:
        """Every finding that a task of the run returned."""
        return [one for task in self.tasks for one in task["result"].get("findings") or []]

    def told(self, title: str) -> str:
        """All that the tasks of this title returned, as text."""
        return "\n".join(json.dumps(task["result"]) for task in self.tasks if task["task"] == title)


def load() -> list[dict[str, t.Any]]:
    """The batches. Raises ``Failure`` for an entry that is not complete."""
    batches: list[dict[str, t.Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))["batches"]
    entries = [entry for batch in batches for entry in batch["breakages"]]
    twice = [name for name, count in Counter(entry["id"] for entry in entries).items() if count > 1]
    if twice:
        raise Failure(f"{', '.join(twice)}: there is more than one")
    for entry in entries:
        needed = {"id", "role", "what", "break", "outcome", "check"}
        needed |= {"repaired": {"by"}, "refused": {"says", "by"}, "kept": set()}[entry["outcome"]]
        missing = sorted(needed - set(entry))
        if missing:
            raise Failure(f"{entry['id']}: it has no {', '.join(missing)}")
    return batches


def run_batch(rig: Rig, batch: dict[str, t.Any], say: t.Callable[[str], None]) -> list[dict[str, t.Any]]:
    """Break, see what is refused, deploy, check; one result an entry. Raises ``Failure``."""
    entries = batch["breakages"]
    say(f"{batch['id']}: {', '.join(entry['id'] for entry in entries)}")
    for entry in entries:
        break_it(rig, entry)
    variables, limit = batch.get("variables", {}), batch.get("limit")
    look([entry for entry in entries if "verify" in entry], variables, say)
    said: dict[str, str] = {}
    begun: list[dict[str, t.Any]] = []
    # What waits for the same consent is refused by one run.
    for consent in dict.fromkeys(_consent(entry) for entry in entries if entry["outcome"] == "refused"):
        waiting = [one for one in entries if _consent(one) == consent]
        refused = refuse(rig, waiting, variables, limit, say)
        said.update({entry["id"]: refused.sentence() for entry in waiting})
        begun += refused.tasks
    deploy = Run(variables, limit)
    say(f"{batch['id']}: deployed in {deploy.seconds:.0f} s, {len(deploy.changed())} tasks changed something")
    if deploy.status:
        raise Failure(f"{batch['id']}: the deploy failed: {deploy.sentence()}")
    deploy.tasks = begun + deploy.tasks  # what a refused run had begun counts too
    faults = [fault for entry in entries for fault in judge(rig, entry, deploy)]
    expected = {title for entry in entries for title in entry.get("by", [])} | set(batch.get("also", []))
    faults += [f"no breakage explains that '{title}' changed" for title in deploy.changed() if title not in expected]
    if faults:
        raise Failure("\n".join(f"{batch['id']}: {fault}" for fault in faults))
    return [result(entry, said.get(entry["id"], "")) for entry in entries]


def break_it(rig: Rig, entry: dict[str, t.Any]) -> None:
    """Break it, and see by its check that it is broken (that what is the user's is there)."""
    failed = rig.each(entry["break"])
    if failed:
        raise Failure(f"{entry['id']}: it could not be broken: {failed}")
    passes = rig.each(entry["check"]) is None
    if passes != (entry["outcome"] == "kept"):
        raise Failure(f"{entry['id']}: its check {'passes' if passes else 'fails'} right after it was done by hand")


def look(entries: list[dict[str, t.Any]], variables: dict[str, t.Any], say: t.Callable[[str], None]) -> None:
    """See that verify.yml, which changes nothing, names each of these. Raises ``Failure`` where it does not."""
    if not entries:
        return
    verify = Run(variables, None, "playbooks/verify.yml")
    say(f"{', '.join(entry['id'] for entry in entries)}: seen by verify.yml in {verify.seconds:.0f} s")
    if not verify.status:
        raise Failure("verify.yml ends well in spite of it all")
    if verify.changed():
        raise Failure(f"verify.yml changed something: {', '.join(verify.changed())}")
    known = {one["id"]: one for one in verify.findings()}
    said = " ".join(verify.sentences())
    for entry in entries:
        name = entry["verify"]
        if not (known[name]["remedy"] if name in known else name in said):
            raise Failure(f"{entry['id']}: verify.yml does not name {name} with a remedy; it says: {said}")


def _consent(entry: dict[str, t.Any]) -> str:
    """What a refused entry waits for: a variable, or the entry's own remedy. Empty for the others."""
    return entry.get("consent", f"mend {entry['id']}") if entry["outcome"] == "refused" else ""


def refuse(
    rig: Rig,
    entries: list[dict[str, t.Any]],
    variables: dict[str, t.Any],
    limit: str | None,
    say: t.Callable[[str], None],
) -> Run:
    """Deploy without the consent of these. Raises ``Failure`` where it is not refused, or not with their sentences."""
    consents = {entry["consent"]: False for entry in entries if "consent" in entry}
    names = ", ".join(entry["id"] for entry in entries)
    deploy = Run({**variables, **consents}, limit)
    sentence = deploy.sentence()
    say(f"{names}: refused in {deploy.seconds:.0f} s: {sentence}")
    if not deploy.status:
        raise Failure(f"{names}: the deploy was not refused")
    for entry in entries:
        missing = [words for words in [*entry["says"], entry.get("consent", "")] if words not in sentence]
        if missing:
            raise Failure(f"{entry['id']}: the refusal does not say {missing}; it says: {sentence}")
        if deploy.changed() and not entry.get("begun"):
            raise Failure(f"{entry['id']}: before the refusal these changed something: {', '.join(deploy.changed())}")
        failed = rig.each(entry.get("mend", {}))
        if failed:
            raise Failure(f"{entry['id']}: what the sentence advises failed: {failed}")
    return deploy


def judge(rig: Rig, entry: dict[str, t.Any], deploy: Run) -> list[str]:
    """What came out other than the entry says."""
    name = entry["id"]
    faults = [f"{name}: '{title}' changed nothing" for title in entry.get("by", []) if title not in deploy.changed()]
    for title, words in entry.get("tells", {}).items():
        if words not in deploy.told(title):
            faults.append(f"{name}: '{title}' does not tell {words}")
    if "finding" in entry and entry["finding"] not in [one["id"] for one in deploy.findings()]:
        faults.append(f"{name}: nothing found {entry['finding']}")
    failed = rig.each(entry["check"])
    return [*faults, f"{name}: after the deploy its check fails: {failed}"] if failed else faults


def result(entry: dict[str, t.Any], sentence: str) -> dict[str, t.Any]:
    """What is recorded of an entry that came out as it must: no times, no addresses, nothing of this run alone."""
    for pattern, word in NOISE:
        sentence = pattern.sub(word, sentence)
    return {
        "id": entry["id"],
        "role": entry["role"],
        "what": entry["what"],
        "outcome": entry["outcome"],
        "by": entry.get("by", []),
        "finding": entry.get("finding", ""),
        "said": sentence,
        "mended": entry.get("mended", ""),
        "consent": entry.get("consent", ""),
    }


def run(names: list[str], to_the_end: bool) -> None:
    """All batches, or those that are named; ``to_the_end``, then a deploy that must change nothing. Raises ``Failure``."""

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:4.0f} s] {text}", flush=True)

    started = time.monotonic()
    RECORD.parent.mkdir(exist_ok=True)
    (RECORD.parent / "breakages.log").unlink(missing_ok=True)
    rig = Rig()
    batches = load()
    for batch in (one for one in batches if not names or one["id"] in names):
        remember(batches, run_batch(rig, batch, say))
    if not to_the_end:
        return
    last = Run({}, None)
    say(f"deployed once more in {last.seconds:.0f} s")
    if last.status or last.changed():
        raise Failure(f"the last deploy was to change nothing: {', '.join(last.changed()) or last.sentence()}")
    if not names and page() != (PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""):
        # Told and no failure: each outcome was checked above, and words of other programs in a sentence may differ from run to run.
        say(f"{PAGE.relative_to(ROOT)} says something else than this run: make docs")


def remember(batches: list[dict[str, t.Any]], results: list[dict[str, t.Any]]) -> None:
    """Put the results of a batch beside those of the others, in the order of the data."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else []
    by_id = {one["id"]: one for one in [*known, *results]}
    names = [entry["id"] for batch in batches for entry in batch["breakages"]]
    RECORD.write_text(json.dumps([by_id[name] for name in names if name in by_id], indent=2) + "\n", encoding="utf-8")


HEAD = """\
# What happens to what is broken by hand

Each line was broken by hand on the simulated host of [molecule/rig](../molecule/rig/README.md), and then `deploy.yml` ran. This page is made of what that
run said and did (`molecule/repair`, `make docs`); do not edit it. A check of its own, beside Slipway's, saw each thing broken, and right and live
afterwards.

- **repaired**: the next run put it right; the tasks that did it are named.
- **refused**: the run ended with the sentence that is shown. With the consent, or after what the sentence advises, the next run put it right.
- **kept**: it is the user's, and was still there.
"""


def page() -> str:
    """The Markdown page of what is recorded. Raises ``Failure`` where a breakage has no result yet."""
    results = json.loads(RECORD.read_text(encoding="utf-8"))
    missing = {entry["id"] for batch in load() for entry in batch["breakages"]} - {one["id"] for one in results}
    if missing:
        raise Failure(f"no result yet of {', '.join(sorted(missing))}: python tools/breakages.py run")
    return render(results)


def render(results: list[dict[str, t.Any]]) -> str:
    """The Markdown page."""
    counts = Counter(one["outcome"] for one in results)
    parts = [HEAD, f"{len(results)} breakages: {', '.join(f'{counts[name]} {name}' for name in OUTCOMES)}.\n"]
    for role in ROLES:
        rows = [one for one in results if one["role"] == role]
        if rows:
            parts.append(
                f"## {role}\n\n| what was done by hand | outcome | what Slipway said | what it did | consent |"
            )
            parts[-1] += "\n|---|---|---|---|---|\n" + "".join(_row(one) for one in rows)
    return "\n".join(parts)


def _row(one: dict[str, t.Any]) -> str:
    did = "; ".join(one["by"])
    if one["mended"]:
        did = f"after {one['mended']}{': ' if did else ''}{did}"
    cells = [one["what"], one["outcome"], one["said"] or one["finding"], did, one["consent"]]
    # A sentence may hold what Markdown would read as a tag or a column.
    text = [cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells]
    return f"| {' | '.join(text)} |\n"


def main(words: list[str]) -> int:
    try:
        if words[:1] == ["run"]:
            run(words[1:], to_the_end=words == ["run"])
        elif words == ["short"]:
            run([batch["id"] for batch in load() if batch.get("short")], to_the_end=True)
        elif words == ["page"]:
            PAGE.write_text(page(), encoding="utf-8")
        else:
            print(__doc__)
            return 2
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
