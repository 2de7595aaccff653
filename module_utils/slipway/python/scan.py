# SPDX-License-Identifier: GPL-3.0-or-later
"""What debugging leaves behind in Python code, found in its syntax tree and not in its text. Pure: source in, traces out.

Comments, strings and docstrings are therefore no traces, and an import under another name is no disguise. What only looks like ordinary
code (``print``, a file that is written, a return among other statements) is told where the wheel's own file is there to compare with.
"""

from __future__ import annotations

import ast
import difflib
import typing as t
import warnings
from collections import Counter
from dataclasses import dataclass

from . import names, traces

LONGEST = 120
# What a return is where another statement follows somewhere; functions have several, so that it is no trace by itself.
RETURNS = "leaves the function before its end"


@dataclass(frozen=True)
class Trace:
    """One thing that was left behind. ``line`` counts from 1, ``kind`` is one of ``traces``, ``what`` is the code and what it does."""

    line: int
    kind: str
    what: str


@dataclass(frozen=True)
class _Hit:
    first: int
    last: int
    kind: str
    code: str
    scope: str
    says: str
    ordinary: bool

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is, wherever in its function it stands."""
        return self.scope, self.kind, self.code


def scan(source: str, original: str | None = None) -> list[Trace]:
    """The traces in a file, by line; with the ``original`` only those that it does not have. Raises ``SyntaxError`` and ``ValueError``."""
    hits = _find(source).hits
    hits = [hit for hit in hits if not hit.ordinary] if original is None else _added(hits, source, original)
    unique = {(hit.first, hit.kind): hit for hit in reversed(hits)}
    told = [
        Trace(hit.first, hit.kind, f"{_short(hit.code)} {hit.says or traces.SAYS[hit.kind]}") for hit in unique.values()
    ]
    return sorted(told, key=lambda trace: (trace.line, trace.kind))


def _added(hits: list[_Hit], source: str, original: str) -> list[_Hit]:
    """Those on lines that the original does not have, and more often than in the same function there: what was moved is not blamed."""
    before, after = original.splitlines(), source.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    new = {
        number
        for tag, _one, _two, start, end in matcher.get_opcodes()
        if tag in ("insert", "replace")
        for number in range(start + 1, end + 1)
    }
    wheel = _find(original)
    known = Counter(hit.key for hit in wheel.hits)
    known.subtract(hit.key for hit in hits if new.isdisjoint(range(hit.first, hit.last + 1)))
    found = []
    for hit in hits:
        if new.isdisjoint(range(hit.first, hit.last + 1)) or (hit.says == RETURNS and hit.scope not in wheel.scopes):
            continue
        if known[hit.key] > 0:
            known[hit.key] -= 1
        else:
            found.append(hit)
    return found


def _find(source: str) -> _Finder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a compiler says of somebody's escapes and literals is not for here
        try:
            tree = ast.parse(source)
            finder = _Finder(names.aliases(tree))
            finder.visit(tree)
        except (RecursionError, MemoryError):  # MemoryError is what CPython's parser says of its own stack
            raise ValueError("it is nested too deeply") from None
    return finder


class _Finder(ast.NodeVisitor):
    """Walks the tree and keeps where it is."""

    def __init__(self, aliases: dict[str, str]) -> None:
        self.aliases = aliases
        self.scope: list[str] = []
        self.scopes: set[str] = set()
        self.hits: list[_Hit] = []

    def _hit(self, node: ast.stmt | ast.expr, kind: str, says: str = "", code: str = "") -> None:
        last = node.end_lineno or node.lineno
        # Of what has a body, its head alone.
        body = getattr(node, "body", None)
        if isinstance(body, list) and body:
            last = max(node.lineno, body[0].lineno - 1)
        ordinary = kind in traces.ORDINARY or says == RETURNS
        scope = ".".join(self.scope)
        self.hits.append(_Hit(node.lineno, last, kind, code or ast.unparse(node), scope, says, ordinary))

    def _name(self, node: ast.expr) -> str:
        return names.dotted(node, self.aliases)

    # Where it is

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call):
                self._called(decorator, decorator)
        self.scope.append(node.name)
        self.scopes.add(".".join(self.scope))
        for statement in names.returns(node):
            if statement is not node.body[-1]:
                self._hit(statement, traces.EARLY_END, RETURNS)
        self.generic_visit(node)
        self.scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()

    def generic_visit(self, node: ast.AST) -> None:
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                self._block(statements)
        super().generic_visit(node)

    # What is there

    def _block(self, statements: list[ast.stmt]) -> None:
        """A statement behind which nothing runs, with something behind it."""
        for statement, following in zip(statements, statements[1:]):
            if names.ends(statement) and not names.only_marks_a_generator(following):
                says = f"ends here, so that line {following.lineno} and what follows never run"
                code = "" if not isinstance(statement, ast.If) else f"if {ast.unparse(statement.test)}: ..."
                self._hit(statement, traces.EARLY_END, says, code)
                return

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imported(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and not node.level:
            self._imported(node, node.module)

    def _imported(self, node: ast.stmt, module: str) -> None:
        name = module.partition(".")[0]
        if name in traces.DEBUGGERS:
            self._hit(node, traces.DEBUGGER, "brings in a debugger")
        elif name in traces.PROFILERS:
            self._hit(node, traces.PROFILER, "brings in a profiler")

    def visit_Call(self, node: ast.Call) -> None:
        self._called(node, node.func)
        for given in node.args:  # functools.partial(torch.save, x), map(torch.save, ...), register_hook(pdb.set_trace)
            name = self._name(given) if isinstance(given, (ast.Attribute, ast.Name)) else ""
            if "." in name and (kind := traces.CALLS.get(name)):
                self._hit(node, kind)
        self.generic_visit(node)

    def _called(self, node: ast.expr, func: ast.expr) -> None:
        name = self._name(func)
        kind = _kind_of(name)
        place = names.temporary_place(node, traces.TEMPORARY_FOLDERS) if isinstance(node, ast.Call) else ""
        says = f"{traces.SAYS[kind]}, in {place}" if kind and place and kind in (traces.DUMP, traces.WRITE) else ""
        if kind:
            self._hit(node, kind, says)
        elif isinstance(node, ast.Call) and names.sets_variable(node, name) in traces.VARIABLES:
            self._hit(node, traces.VARIABLES[names.sets_variable(node, name)])
        elif isinstance(node, ast.Call) and _opens(name) and names.opens_to_write(node):
            self._hit(node, traces.TEMPORARY if place else traces.WRITE, f"writes a file in {place}" if place else "")
        elif place:
            self._hit(node, traces.TEMPORARY, f"uses {place}")

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            variable = names.subscript(target)
            if variable in traces.VARIABLES and self._name(t.cast("ast.Subscript", target).value).endswith("environ"):
                self._hit(node, traces.VARIABLES[variable])
        self.generic_visit(node)


def _kind_of(name: str) -> str:
    """What a call of this name is, by the longest part of it that is known; empty for an ordinary call."""
    parts = name.removeprefix("builtins.").split(".")
    for count in range(len(parts), 0, -1):
        kind = traces.CALLS.get(".".join(parts[:count]))
        if kind and parts[0]:
            return kind
    return traces.CALLS.get(f".{parts[-1]}", "") if len(parts) > 1 else ""


def _opens(name: str) -> bool:
    return name in traces.OPENS or ("." in name and f".{name.rpartition('.')[2]}" in traces.OPENS)


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
