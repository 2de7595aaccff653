# SPDX-License-Identifier: GPL-3.0-or-later
"""What expressions of a syntax tree stand for: names behind aliases, places behind strings, ends of blocks. Pure; for ``scan``."""

from __future__ import annotations

import ast

from .traces import CUSTOMARY

WRITING = frozenset("wax+")


def aliases(tree: ast.Module) -> dict[str, str]:
    """What names of a file stand for, wherever in it they are bound: imports, and assignments of what was imported."""
    found = dict(CUSTOMARY)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value:
            target, value = node.target, node.value
        else:
            continue
        name = dotted(value, found)
        if isinstance(target, ast.Name) and "." in name.strip(".") and name[0] != "." and _bound(value, found):
            found.setdefault(target.id, name)
    return found


def _bound(node: ast.expr, known: dict[str, str]) -> bool:
    """Whether an expression is an attribute of something that was imported, and no call."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in known


def dotted(node: ast.expr, known: dict[str, str]) -> str:
    """The name of what an expression refers to, such as ``torch.save``; ``.save`` of what is itself no name; empty for what has none."""
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, known)}.{node.attr}"
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        return _of_call(node, known)
    return ""


def _of_call(node: ast.Call, known: dict[str, str]) -> str:
    """``getattr(torch, "save")``, ``__import__("pdb")`` and ``importlib.import_module("pdb")``, which are names by another way."""
    name = dotted(node.func, known) if not isinstance(node.func, ast.Call) else ""
    texts = [
        argument.value
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    if name == "getattr" and len(node.args) >= 2 and texts:
        return f"{dotted(node.args[0], known)}.{texts[0]}"
    if name in ("__import__", "importlib.import_module") and texts:
        return texts[0]
    return ""


def text(node: ast.expr) -> str:
    """What a string, or a string that is put together, begins with; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and node.values:
        return text(node.values[0])
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod, ast.Div)):
        return text(node.left)
    if isinstance(node, ast.Call):
        parts = [text(argument) for argument in node.args[:1]]
        if isinstance(node.func, ast.Attribute) and not parts:
            return text(node.func.value)
        return "".join(parts)
    return ""


def temporary_place(node: ast.Call, folders: tuple[str, ...]) -> str:
    """The temporary folder or file that a call names, in its arguments or in what it is called on."""
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if isinstance(node.func, ast.Attribute):
        given.append(node.func.value)
    for argument in given:
        place = text(argument)
        if any(place == folder or place.startswith(f"{folder}/") for folder in folders):
            return place
    return ""


def opens_to_write(node: ast.Call) -> bool:
    """Whether a call of ``open`` has a mode that writes."""
    modes = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    # The mode is the second argument of open(), the first of a path's own open.
    modes += node.args[:2] if isinstance(node.func, ast.Attribute) else node.args[1:2]
    for mode in modes:
        if isinstance(mode, ast.Constant) and isinstance(mode.value, str) and len(mode.value) <= 4:
            return bool(WRITING & set(mode.value))
    return False


def subscript(node: ast.expr) -> str:
    """The text in the brackets of ``x["text"]``."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return ""


def sets_variable(node: ast.Call, name: str) -> str:
    """The environment variable that a call sets, empty for any other call."""
    if name in ("os.putenv", "os.environ.setdefault") and node.args:
        return text(node.args[0])
    if name == "os.environ.update":
        keys = [keyword.arg or "" for keyword in node.keywords]
        keys += [text(key) for argument in node.args if isinstance(argument, ast.Dict) for key in argument.keys if key]
        return next((key for key in keys if key), "")
    return ""


def ends(statement: ast.stmt) -> bool:
    """Whether nothing behind this statement runs: a return, a raise, or one of them under a condition that always holds."""
    if isinstance(statement, (ast.Return, ast.Raise)):
        return True
    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Constant) and statement.test.value:
        return any(ends(inner) for inner in statement.body)
    return False


def only_marks_a_generator(statement: ast.stmt) -> bool:
    """``yield`` behind a ``return`` makes a function a generator, and is meant not to run."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Yield, ast.YieldFrom))


def returns(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Return]:
    """The returns of a function, without those of functions inside it."""
    found: list[ast.Return] = []
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return):
            found.append(node)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))
    return found
