# SPDX-License-Identifier: GPL-3.0-or-later
"""What is judged of a command line for a release and a GPU: rules as data, and how one is applied. Pure.

A rule's conditions are texts, and all of them must hold:

- ``name``: the option or variable is given (a flag: true; a variable: neither empty nor 0 or false). ``!name``: it is not.
- ``name=a|b`` and ``name!=a|b``: its value is one of these, or none of them; what is not given has the value ``unset``.
- ``name>0.93``: its value is a number above this.
- ``name~pattern``: a regular expression finds something in its value.

Names in capitals are environment variables; ``@model``, ``@path``, ``@key``, ``@tp`` and ``@sm`` are the model's type and path, whether there is an API key, the GPUs that
one copy is spread over, and the first digits of their compute capability (12 for 120). Where that is not known, rules that ask for it do not apply.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, replace

from ..errors import SlipwayError
from ..findings import Finding, finding
from ..patching import versions
from .server import Request, option

_CONDITION = re.compile(r"(?P<no>!)?(?P<name>[@A-Za-z][A-Za-z0-9_-]*)(?:(?P<test>!=|=|>|~)(?P<value>.*))?")


@dataclass(frozen=True)
class Rule:
    """One thing that is known of an engine. ``source`` is where from; ``since`` and ``before`` are releases, empty for all."""

    fault: str
    subject: str
    when: tuple[str, ...]
    detail: str
    source: str
    since: str = ""
    before: str = ""
    severity: str | None = None

    def fits(self, version: str) -> bool:
        """Whether the rule is about this release. A release that is not known has all rules: it is told more rather than less."""
        if not version:
            return True
        try:
            late = not self.since or versions.reached(version, self.since)
            return late and not (self.before and versions.reached(version, self.before))
        except ValueError as error:
            raise SlipwayError(f"engine_version {error}") from None


def apply(request: Request, rules: t.Iterable[Rule], aliases: t.Mapping[str, str]) -> list[Finding]:
    """Findings of the rules that hold. ``aliases`` gives an option's first name by each of its others. Raises ``SlipwayError``."""
    values = _values(request, aliases)
    found = []
    for rule in rules:
        if rule.fits(request.engine_version) and all(_holds(condition, values) for condition in rule.when):
            one = finding(rule.fault, rule.subject, rule.detail, rule.severity)
            found.append(replace(one, reference=rule.source))
    return found


def _values(request: Request, aliases: t.Mapping[str, str]) -> dict[str, str]:
    """What is set, by name, as text; what is not, is not there."""
    values = {}
    for name, value in request.arguments.items():
        key = option(name)[2:]
        if value is not False and str(value) != "False":
            values[aliases.get(key, key)] = str(value)
    for name, value in request.environment.items():
        if str(value).lower() not in ("", "0", "false", "none"):
            values[name] = str(value)
    values["kv-cache-dtype"] = request.kv_cache_dtype
    values["@tp"] = str(request.tensor_parallel)
    values["@path"] = request.model_path
    if request.api_key_file:
        values["@key"] = "given"
    if request.model_type:
        values["@model"] = request.model_type
    if request.sm:
        values["@sm"] = str(request.sm // 10)
    return values


def _holds(condition: str, values: t.Mapping[str, str]) -> bool:
    match = _CONDITION.fullmatch(condition)
    if not match:
        raise ValueError(f"{condition!r} is no condition of a rule")
    value = values.get(match["name"])
    if not match["test"]:
        return (value is None) == bool(match["no"])
    if match["test"] in ("=", "!="):
        among = (value or "unset") in match["value"].split("|")
        return among == (match["test"] == "=")
    if value is None:
        return False
    if match["test"] == "~":
        return bool(re.search(match["value"], value))
    try:
        return float(value) > float(match["value"])
    except ValueError:
        return False  # the kind of the value is judged where it is rendered
