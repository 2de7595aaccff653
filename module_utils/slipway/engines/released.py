# SPDX-License-Identifier: GPL-3.0-or-later
"""What engines with a parser of their own share: a release's options, what the plan sets of them, and what is judged of the rest. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..errors import SlipwayError
from ..findings import Finding, finding
from . import options, rules
from .arguments import render, render_one
from .server import Argument, Derived, Request, lint, option, variables

# Binaries that FlashInfer and Triton compile with: ninja of the environment, nvcc of NVIDIA's packages.
_PATH = "{venv}/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Engine:
    """What is an engine's own. ``fields`` are option names by what of the request sets them; ``environment`` its defaults."""

    module: str
    launcher: str
    fields: t.Mapping[str, str]
    environment: t.Mapping[str, str]
    rules: tuple[rules.Rule, ...]


def names(request: Request, engine: Engine) -> dict[str, Argument]:
    """The release's options by each of their names; without a table, those that are given, by the kind of their values."""
    table = options.known(request.engine, request.engine_version)
    set_by = {name: by for by, name in engine.fields.items()}
    if table is None:
        return {**_guessed(request), **{name: Argument("text", set_by=by) for name, by in set_by.items()}}
    arguments: dict[tuple[str, ...], Argument] = {}
    for one in table.values():
        by = next((set_by[name] for name in one.names if name in set_by), "")
        arguments.setdefault(one.names, Argument(one.kind, by, one.choices, one.many))
    return {name: arguments[one.names] for name, one in table.items()}


def _guessed(request: Request) -> dict[str, Argument]:
    kinds = {}
    for name, value in request.arguments.items():
        kind = "flag" if isinstance(value, bool) else "json" if isinstance(value, dict) else "text"
        kinds[option(name)[2:]] = Argument(kind, many=isinstance(value, list))
    return kinds


def judge(request: Request, engine: Engine, known: t.Mapping[str, Argument]) -> list[Finding]:
    """Findings about names, by the rules, and about a release whose options are not known."""
    table = options.known(request.engine, request.engine_version)
    by_rule = rules.apply(request, engine.rules, {name: one.names[0] for name, one in (table or {}).items()})
    renamed = {found.subject for found in by_rule if found.id in ("FLAG_RENAMED", "FLAG_UNKNOWN")}
    # A rule knows the right name, where the nearest one is a guess.
    found = [one for one in lint(request, known) if one.id != "FLAG_UNKNOWN" or one.subject not in renamed]
    for name in request.arguments:
        argument = known.get(option(name)[2:])
        if argument and argument.kind == "deprecated" and option(name) not in renamed:
            told = f"{request.engine} {request.engine_version} still takes it, warns, and does nothing with it"
            found.append(finding("FLAG_WITHOUT_EFFECT", option(name), told))
    if table is None:
        have = ", ".join(version for name, version in options.RELEASES if name == request.engine)
        told = f"Slipway has the options of {have}, not of {request.engine_version or 'a release that is not named'}"
        found.append(finding("FLAGS_UNCHECKED", f"{request.engine} {request.engine_version}".strip(), told))
    return found + by_rule


def command(request: Request, engine: Engine, known: t.Mapping[str, Argument]) -> tuple[list[str], str | None]:
    """The whole command line, and the launcher that it needs, if any. Raises ``SlipwayError``."""
    argv, launcher = [f"{request.venv}/bin/python"], None
    if request.api_key_file:
        # Neither the command line nor the unit may hold the key: the launcher reads it in the server's own process.
        if not request.launcher:
            raise SlipwayError(f"launcher is not given: the path on the guest of {engine.launcher}")
        launcher = engine.launcher
        argv += [request.launcher, "--api-key-file", request.api_key_file, "--"]
    else:
        argv += ["-m", engine.module]
    for by, name in engine.fields.items():
        value = getattr(request, by.rpartition(".")[2])
        if value is None:
            continue
        plain = Argument(known[name].kind, "", known[name].choices)
        argv += render_one(name, str(value), plain)
    return argv + render(request, known), launcher


def environment(request: Request, engine: Engine, derived: t.Iterable[Derived]) -> dict[str, str]:
    """The request's variables over the derived ones over the engine's defaults. Raises ``SlipwayError``."""
    defaults = {"PYTHONUNBUFFERED": "1", "PATH": _PATH.format(venv=request.venv), **engine.environment}
    defaults |= {one.setting: one.value for one in derived if one.setting.isupper()}
    return variables(request, defaults)


def given(request: Request, *options_of: str) -> bool:
    """Whether the profile or the inventory sets one of these arguments or variables itself."""
    keys = {option(name)[2:] for name in request.arguments} | set(request.environment)
    return any(name in keys for name in options_of)
