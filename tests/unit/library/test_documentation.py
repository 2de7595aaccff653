# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module documents is what it takes."""

from __future__ import annotations

import importlib
import runpy
import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
MODULES = sorted(path.stem for path in (ROOT / "library").glob("*.py"))
FACTS = ("type", "elements", "default", "required", "choices")


def told(options: dict[str, t.Any], inner: str) -> dict[str, t.Any]:
    """Types, defaults and choices of options; those that an option has inside come under ``inside``."""
    found: dict[str, t.Any] = {}
    for name, option in options.items():
        found[name] = {fact: option[fact] for fact in FACTS if option.get(fact) not in (None, False)}
        if option.get("type") == "bool" and option.get("default") is False:
            found[name]["default"] = False
        if inner in option:
            found[name]["inside"] = told(option[inner], inner)
    return found


def documentation(module: t.Any) -> dict[str, t.Any]:
    """A module's documentation with that of the fragments that it extends."""
    found = yaml.safe_load(module.DOCUMENTATION)
    for name in found.get("extends_documentation_fragment", []):
        file, _dot, section = name.partition(".")
        fragment = runpy.run_path(str(ROOT / "doc_fragments" / f"{file}.py"))["ModuleDocFragment"]
        inherited = yaml.safe_load(getattr(fragment, section.upper() or "DOCUMENTATION"))["options"]
        found["options"] = {**inherited, **found["options"]}
    return found


@pytest.mark.parametrize("name", MODULES)
def test_the_documented_options_are_those_of_the_module(name: str) -> None:
    module = importlib.import_module(f"ansible.modules.{name}")
    documented = documentation(module)
    assert documented["module"] == name
    assert told(documented["options"], "suboptions") == told(module.ARGUMENT_SPEC, "options")


@pytest.mark.parametrize("name", MODULES)
def test_what_is_returned_says_when(name: str) -> None:
    returned = yaml.safe_load(importlib.import_module(f"ansible.modules.{name}").RETURN)
    # fail_json gives the findings too, and nothing else.
    assert returned["findings"]["returned"] == "always"
    assert {value["returned"] for key, value in returned.items() if key not in ("findings", "log")} == {"success"}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_use_options_that_there_are(name: str) -> None:
    module = importlib.import_module(f"ansible.modules.{name}")
    for task in yaml.safe_load(module.EXAMPLES):
        assert set(task[name] or {}) <= set(module.ARGUMENT_SPEC)
