# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin: slices of the module until the folder is whole, and what is said in between."""

from __future__ import annotations

import importlib.util
import types
import typing as t
from pathlib import Path

import pytest


class Action:
    """The plugin with a module that answers from a list; what it was called with, and what was shown."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = importlib.util.spec_from_file_location("model_files_action", root / "action_plugins" / "model_files.py")
        assert spec is not None and spec.loader is not None
        self.plugin = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.plugin)
        self.answers: list[dict[str, t.Any]] = []
        self.called: list[dict[str, t.Any]] = []
        self.shown: list[str] = []
        self.check_mode = False
        clock = iter(range(0, 100_000, 10))
        monkeypatch.setattr("time.monotonic", lambda: next(clock))
        monkeypatch.setattr(self.plugin.display, "display", self.shown.append)

    def __call__(self, **arguments: t.Any) -> dict[str, t.Any]:
        action = self.plugin.ActionModule.__new__(self.plugin.ActionModule)
        action._task = types.SimpleNamespace(args=arguments, check_mode=self.check_mode, async_val=0)
        action._execute_module = self._execute
        base = self.plugin.ActionBase
        original, base.run = base.run, lambda *_arguments: {}
        try:
            return action.run(task_vars={"inventory_hostname": "infer1"})
        finally:
            base.run = original

    def _execute(self, module_name: str, module_args: dict[str, t.Any], task_vars: t.Any) -> dict[str, t.Any]:
        assert module_name == "model_files"
        self.called.append(dict(module_args))
        return self.answers.pop(0)


@pytest.fixture
def action(root: Path, monkeypatch: pytest.MonkeyPatch) -> Action:
    return Action(root, monkeypatch)


def answer(left: int, fetched: int, changed: bool = True) -> dict[str, t.Any]:
    """What the module says of a model of 100 GB."""
    files = [{"path": str(left)}]
    numbers = {"total_bytes": 100 * 10**9, "left_bytes": left * 10**9, "fetched_bytes": fetched * 10**9}
    return {"changed": changed, "finished": left == 0, "files": files, **numbers}


def test_slices_until_it_is_whole(action: Action) -> None:
    action.answers = [answer(96, 4), answer(94, 2), answer(60, 34), answer(0, 60)]
    result = action(repository="someone/Model", verify="full")
    assert [one["slice_seconds"] for one in action.called] == [10, 20, 40, 60]
    assert [one["verify"] for one in action.called] == ["full", "quick", "quick", "quick"]
    assert action.shown == [
        "[infer1] fetching someone/Model: 4.00 of 100.00 GB, 400.0 MB/s, 4 min left",
        "[infer1] fetching someone/Model: 6.00 of 100.00 GB, 200.0 MB/s, 8 min left",
        "[infer1] fetching someone/Model: 40.00 of 100.00 GB, 3400.0 MB/s, less than a minute left",
    ]
    assert (result["finished"], result["changed"], result["files"]) == (True, True, [{"path": "96"}])


def test_what_another_run_brought_to_its_end_is_a_change_of_this_one(action: Action) -> None:
    action.answers = [answer(50, 50), answer(0, 0, changed=False)]
    assert action(repository="someone/Model")["changed"] is True


def test_one_that_is_whole_takes_one_call(action: Action) -> None:
    action.answers = [answer(0, 0, changed=False)]
    assert action(repository="someone/Model")["changed"] is False
    assert (len(action.called), action.shown) == (1, [])


def test_where_nothing_comes_the_download_has_time_to_say_why(action: Action) -> None:
    action.answers = [answer(96, 4), answer(96, 0), {"failed": True, "msg": "Cannot fetch"}]
    assert action(repository="someone/Model") == {"failed": True, "msg": "Cannot fetch"}
    assert [one["slice_seconds"] for one in action.called] == [10, 20, 600]
    assert action.shown[-1] == "[infer1] fetching someone/Model: 4.00 of 100.00 GB, nothing came since"


def test_check_mode_is_the_modules(action: Action) -> None:
    action.check_mode = True
    action.answers = [answer(100, 0)]
    assert action(repository="someone/Model")["finished"] is False
    assert action.called == [{"repository": "someone/Model"}]
