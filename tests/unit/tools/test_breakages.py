# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of breakages: complete over the roles, told in docs/breakages.md, and judged so that nothing passes by itself."""

from __future__ import annotations

import importlib.util
import json
import re
import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
# Tasks that only look, decide or call others.
LOOKS = {
    "assert",
    "debug",
    "fail",
    "find",
    "import_role",
    "import_tasks",
    "model_preflight",
    "include_role",
    "include_tasks",
    "include_vars",
    "meta",
    "set_fact",
    "slurp",
    "stat",
    "wait_for_connection",
    "inference_probe",
    "pve_claims",
    "pve_preflight",
    "server_plan",
}
KEYWORDS = {"name", "when", "register", "vars", "loop", "loop_control", "delegate_to", "environment", "no_log", "args"}
KEYWORDS |= {
    "changed_when",
    "ignore_unreachable",
    "failed_when",
    "check_mode",
    "diff",
    "until",
    "retries",
    "delay",
    "throttle",
    "module_defaults",
    "async",
    "poll",
}


def _tool() -> t.Any:
    spec = importlib.util.spec_from_file_location("breakages", ROOT / "tools" / "breakages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = _tool()


def _tasks(tasks: list[dict[str, t.Any]]) -> t.Iterator[dict[str, t.Any]]:
    for task in tasks:
        inner = [one for part in ("block", "rescue", "always") for one in task.get(part, [])]
        if inner:
            yield from _tasks(inner)
        else:
            yield task


def _changing(role: str) -> set[str]:
    """Titles of the role's tasks that can change something."""
    titles = set()
    for path in sorted((ROOT / "roles" / role / "tasks").glob("*.yml")):
        for task in _tasks(yaml.safe_load(path.read_text())):
            (action,) = set(task) - KEYWORDS
            looks = action.removeprefix("ansible.builtin.") in LOOKS or action.endswith("_info")
            if not looks and task.get("changed_when") is not False and task.get("check_mode") is not True:
                titles.add(task["name"])
    return titles


def _entry(**given: t.Any) -> dict[str, t.Any]:
    entry = {
        "id": "thing",
        "role": "pve_host",
        "what": "a thing",
        "break": {"node": "break"},
        "outcome": "repaired",
        "by": ["Mend"],
        "check": {"node": "check"},
    }
    return {**entry, **given}


class FakeRig:
    """Things that are whole or broken; a script is ``break`` or ``check``."""

    def __init__(self, whole: list[bool]) -> None:
        self.whole = whole  # what the check finds, one look after the other

    def each(self, scripts: dict[str, str]) -> str | None:
        if scripts.get("node") == "check":
            return None if self.whole.pop(0) else "node: status 1"
        return None


@pytest.fixture
def deploys(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., None]:
    """Let each next deploy end with this status and these tasks."""
    queue: list[tuple[int, list[dict[str, t.Any]]]] = []

    class FakeRun(tool.Run):
        def __init__(self, variables: dict[str, t.Any], limit: str | None, playbook: str = "") -> None:
            self.seconds = 0.0
            self.status, self.tasks = queue.pop(0)

    def add(status: int, *tasks: tuple[str, str, dict[str, t.Any]]) -> None:
        queue.append((status, [{"task": task, "status": how, "result": result} for task, how, result in tasks]))

    monkeypatch.setattr(tool, "Run", FakeRun)
    return add


def _run(rig: FakeRig, *entries: dict[str, t.Any], **batch: t.Any) -> list[dict[str, t.Any]]:
    return tool.run_batch(rig, {"id": "batch", "breakages": list(entries), **batch}, lambda text: None)


def test_every_entry_is_complete_and_of_a_role() -> None:
    entries = [entry for batch in tool.load() for entry in batch["breakages"]]
    assert {entry["role"] for entry in entries} <= set(tool.ROLES)
    for entry in entries:
        assert set(entry["break"]) | set(entry["check"]) <= {"node", "guest", "controller"}, entry["id"]


@pytest.mark.parametrize("role", tool.ROLES)
def test_everything_that_a_role_changes_is_broken_once(role: str) -> None:
    data = yaml.safe_load(tool.DATA.read_text())
    broken = {title for batch in data["batches"] for entry in batch["breakages"] for title in entry.get("by", [])}
    # A title may name what is worked on.
    patterns = {title: re.sub(r"\\{\\{.*?\\}\\}", ".+", re.escape(title)) for title in _changing(role)}
    left = {title for title, pattern in patterns.items() if not any(re.fullmatch(pattern, one) for one in broken)}
    assert left == {title for title in data["not_broken"] if title in _changing(role)}


def test_no_excuse_outlives_its_task() -> None:
    excuses = yaml.safe_load(tool.DATA.read_text())["not_broken"]
    assert set(excuses) <= {title for role in tool.ROLES for title in _changing(role)}


def test_the_page_tells_each_of_them_as_it_came_out() -> None:
    rows = re.findall(r"^\| (.+?) \| (repaired|refused|kept) \|", tool.PAGE.read_text(), re.MULTILINE)
    entries = [entry for batch in tool.load() for entry in batch["breakages"]]
    assert sorted(rows) == sorted((entry["what"], entry["outcome"]) for entry in entries)


def test_repaired(deploys: t.Callable[..., None]) -> None:
    deploys(0, ("Look", "ok", {"findings": [{"id": "GONE"}]}), ("Mend", "changed", {"diff": "thing"}))
    (result,) = _run(FakeRig([False, True]), _entry(finding="GONE", tells={"Mend": "thing"}))
    assert (result["id"], result["outcome"], result["by"], result["finding"]) == ("thing", "repaired", ["Mend"], "GONE")


def test_a_check_that_passes_while_it_is_broken_is_none() -> None:
    with pytest.raises(tool.Failure, match="thing: its check passes right after"):
        _run(FakeRig([True]), _entry())


def test_what_is_still_broken_after_the_deploy(deploys: t.Callable[..., None]) -> None:
    deploys(0, ("Mend", "changed", {}))
    with pytest.raises(tool.Failure, match="after the deploy its check fails"):
        _run(FakeRig([False, False]), _entry())


def test_a_task_that_did_not_change_anything(deploys: t.Callable[..., None]) -> None:
    deploys(0, ("Mend", "ok", {}))
    with pytest.raises(tool.Failure, match="thing: 'Mend' changed nothing"):
        _run(FakeRig([False, True]), _entry())


def test_a_change_that_nobody_asked_for(deploys: t.Callable[..., None]) -> None:
    tasks = (("Mend", "changed", {}), ("Follow", "changed", {}), ("Meddle", "changed", {}))
    deploys(0, *tasks)
    with pytest.raises(tool.Failure, match="no breakage explains that 'Meddle' changed") as failure:
        _run(FakeRig([False, True]), _entry(), also=["Follow"])
    assert "Follow" not in str(failure.value)


def test_what_no_task_told_and_nothing_found(deploys: t.Callable[..., None]) -> None:
    deploys(0, ("Mend", "changed", {"diff": "else"}))
    with pytest.raises(tool.Failure, match=r"'Mend' does not tell thing\n.*nothing found GONE"):
        _run(FakeRig([False, True]), _entry(finding="GONE", tells={"Mend": "thing"}))


def test_what_is_the_users_must_stay(deploys: t.Callable[..., None]) -> None:
    mine = _entry(outcome="kept", by=[])
    deploys(0)
    assert _run(FakeRig([True, True]), mine)[0]["outcome"] == "kept"
    deploys(0)
    with pytest.raises(tool.Failure, match="after the deploy its check fails"):
        _run(FakeRig([True, False]), mine)


REFUSED: dict[str, t.Any] = {"outcome": "refused", "consent": "pve_host_allow_x", "says": ["Cannot mend thing"]}
SENTENCE = "Cannot mend thing at 10.0.0.7: used by a-b (4711). Set pve_host_allow_x to true."


def test_refused_then_repaired_with_consent(deploys: t.Callable[..., None]) -> None:
    deploys(2, ("Gate", "failed", {"msg": SENTENCE}))
    deploys(0, ("Mend", "changed", {}))
    (result,) = _run(FakeRig([False, True]), _entry(**REFUSED))
    assert result["said"] == "Cannot mend thing at <address>: used by a-b (<pid>). Set pve_host_allow_x to true."
    assert result["consent"] == "pve_host_allow_x"


@pytest.mark.parametrize(
    ("status", "tasks", "words"),
    [
        (0, [("Mend", "changed", {})], "was not refused"),
        (2, [("Gate", "failed", {"msg": "Cannot mend thing."})], r"does not say \['pve_host_allow_x'\]"),
        (2, [("Mend", "changed", {}), ("Gate", "failed", {"msg": SENTENCE})], "before the refusal these changed"),
    ],
)
def test_a_refusal_that_is_none(
    deploys: t.Callable[..., None], status: int, tasks: list[tuple[str, str, dict[str, t.Any]]], words: str
) -> None:
    deploys(status, *tasks)
    with pytest.raises(tool.Failure, match=words):
        _run(FakeRig([False]), _entry(**REFUSED))


def test_one_run_shows_all_that_one_consent_is_for(deploys: t.Callable[..., None]) -> None:
    deploys(2, ("Gate", "failed", {"msg": SENTENCE}))
    deploys(0, ("Mend", "changed", {}))
    results = _run(FakeRig([False, False, True, True]), _entry(**REFUSED), _entry(**REFUSED, id="other"))
    assert results[0]["said"] == results[1]["said"] != ""


def test_the_page_escapes_what_markdown_would_read() -> None:
    row = {"id": "a", "role": "pve_host", "what": "a | b", "outcome": "refused", "by": ["Mend"], "finding": ""}
    text = tool.render([{**row, "said": "used by <pid>", "mended": "it was stopped", "consent": ""}])
    assert "| a \\| b | refused | used by &lt;pid> | after it was stopped: Mend |  |\n" in text
    assert "1 breakages: 0 repaired, 1 refused, 0 kept." in text


def test_an_entry_without_its_parts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "breakages.yml"
    data.write_text(json.dumps({"batches": [{"id": "b", "breakages": [{**_entry(), "outcome": "refused"}]}]}))
    monkeypatch.setattr(tool, "DATA", data)
    with pytest.raises(tool.Failure, match="thing: it has no says"):
        tool.load()


def test_results_of_batches_add_up_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [{"id": name, "breakages": [_entry(id=name)]} for name in ("one", "two")]
    monkeypatch.setattr(tool, "load", lambda: batches)
    monkeypatch.setattr(tool, "RECORD", tmp_path / "record.json")
    tool.remember(batches, [tool.result(_entry(id="two"), ""), tool.result(_entry(id="of old"), "")])
    with pytest.raises(tool.Failure, match="no result yet of one"):
        tool.page()
    tool.remember(batches, [tool.result(_entry(id="one"), "")])
    assert [one["id"] for one in json.loads((tmp_path / "record.json").read_text())] == ["one", "two"]
    assert "2 breakages: 2 repaired, 0 refused, 0 kept." in tool.page()


BROKEN = {"id": "node-missing", "role": "pve_host", "what": "a node deleted", "outcome": "repaired", "by": ["Make it"]}
BROKEN |= {"break": {}, "check": {"node": "check"}, "verify": "GPU_NODE_MISSING"}
NAMED = {"msg": "Cannot: GPU_NODE_MISSING, x.", "findings": [{"id": "GPU_NODE_MISSING", "remedy": "Make it."}]}


def test_verify_sees_it_before_it_is_repaired(deploys: t.Callable[..., None]) -> None:
    deploys(2, ("Look", "failed", NAMED))
    deploys(0, ("Make it", "changed", {}))
    assert [one["id"] for one in _run(FakeRig([False, True]), BROKEN)] == ["node-missing"]


@pytest.mark.parametrize(
    ("status", "task", "says"),
    [
        (0, ("Look", "ok", {}), "ends well in spite"),
        (2, ("Look", "failed", {"msg": "Cannot: SOMETHING_ELSE."}), "does not name GPU_NODE_MISSING"),
        (2, ("Look", "failed", {**NAMED, "findings": [{"id": "GPU_NODE_MISSING", "remedy": ""}]}), "with a remedy"),
        (2, ("Look", "changed", {}), "verify.yml changed something: Look"),
    ],
)
def test_a_verification_that_does_not_see_it(
    deploys: t.Callable[..., None], status: int, task: tuple[str, str, dict[str, t.Any]], says: str
) -> None:
    deploys(status, task)
    with pytest.raises(tool.Failure, match=says):
        _run(FakeRig([False]), BROKEN)
