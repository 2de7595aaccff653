# SPDX-License-Identifier: GPL-3.0-or-later
"""What was proven, when, and on what that rests: kept on the machine that it was proven of.

A proof holds while each thing that it rests on is as it was then. When one differs, nobody knows any more: it is stale, which is
``unknown``. Nothing is ever concluded from a proof that is not there.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from . import files
from .findings import Finding, finding

FORMAT = 1
BAD = ("fail", "unknown")
GOOD = "ok"
HOLDS, FAILED, STALE, ABSENT = "holds", "failed", "stale", "absent"
Proof = t.Mapping[str, t.Any]
# A value of what a proof rests on is shown up to here; the whole of it is in the file.
_SHOWN = 120


def load(path: Path) -> tuple[dict[str, t.Any], str]:
    """The proofs of a file by name, and why it cannot be used, which is empty where it can be or where there is none yet."""
    try:
        found = json.loads(files.read(path))
        if found["format"] != FORMAT:
            return {}, f"{path} is of another form"
        proofs = dict(found["proofs"])
        for proof in proofs.values():
            float(proof["proven_at"]), dict(proof["rests_on"]), [Finding(**one) for one in proof["findings"]]
        return proofs, ""
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"{path}: {error.strerror}"
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}, f"{path} holds no proofs"


def text(proofs: t.Mapping[str, Proof]) -> str:
    """The file's content."""
    return json.dumps({"format": FORMAT, "proofs": proofs}, indent=1) + "\n"


def save(path: Path, proofs: t.Mapping[str, Proof]) -> None:
    """Write it, whole or not at all. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, text(proofs), mode=0o600)


def make(result: t.Mapping[str, t.Any], rests_on: t.Mapping[str, t.Any], now: float) -> dict[str, t.Any]:
    """A proof of ``result`` (which has ``findings``), made at ``now`` in seconds since 1970."""
    return {"proven_at": now, "rests_on": plain(rests_on), "findings": result["findings"], "result": result}


def plain(value: t.Any) -> t.Any:
    """The value as it comes back from a file, so that two can be compared."""
    return json.loads(json.dumps(value))


def differences(proof: Proof, rests_on: t.Mapping[str, t.Any]) -> list[str]:
    """What is not as it was, each in words."""
    then, now = proof["rests_on"], plain(rests_on)
    return [
        f"{name}: was {_shown(then.get(name))}, is {_shown(now.get(name))}"
        for name in [*now, *(name for name in then if name not in now)]
        if then.get(name) != now.get(name)
    ]


def state(proof: Proof | None, rests_on: t.Mapping[str, t.Any]) -> str:
    """``holds``, ``failed`` (what was found then was no good), ``stale`` or ``absent``."""
    if proof is None:
        return ABSENT
    if differences(proof, rests_on):
        return STALE
    return FAILED if any(one["severity"] in BAD for one in proof["findings"]) else HOLDS


def judge(name: str, proof: Proof | None, rests_on: t.Mapping[str, t.Any], now: float, unusable: str) -> list[Finding]:
    """Findings of the proof as it stands. Those of a failed one, which are its cause, are the caller's to tell beside them."""
    if unusable:
        return [finding("PROOF_ABSENT", name, unusable)]
    if proof is None:
        return [finding("PROOF_ABSENT", name)]
    when = f"measured {age(now - proof['proven_at'])} ago"
    changed = differences(proof, rests_on)
    if changed:
        return [finding("PROOF_STALE", name, f"{when}; {'; '.join(changed)}")]
    resting = f"{when}, resting on {', '.join(f'{key} {_shown(value)}' for key, value in plain(rests_on).items())}"
    if state(proof, rests_on) == FAILED:
        return [finding("PROOF_FAILED", name, when)]
    verdict = proof["result"].get("verdict") or GOOD
    if verdict != GOOD:  # it need not be good, and so is not measured anew; but it was not
        return [
            finding(
                "PROOF_FAILED",
                name,
                f"verdict {verdict}, which is let pass and not measured anew; {resting}",
                severity="warn",
            )
        ]
    return [finding("PROOF_HOLDS", name, resting, severity="ok")]


def age(seconds: float) -> str:
    """Seconds as a person says them."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} seconds"


def _shown(value: t.Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        said = ", ".join(str(one) for one in value)
    elif isinstance(value, dict):
        said = ", ".join(f"{key} {one}" for key, one in value.items())
    else:
        said = str(value)
    return said if len(said) <= _SHOWN else f"{said[: _SHOWN - 4]} ..."
