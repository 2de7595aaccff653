# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's own cases: YAML files, alone or all of a folder, with longer texts in files beside them."""

from __future__ import annotations

import typing as t
from pathlib import Path

from . import cases

try:
    import yaml
except ImportError:
    HAS_YAML = False
else:
    HAS_YAML = True

_SUFFIXES = (".yml", ".yaml")
_KEYS = {"id", "kind", "prompt", "turns", "expect", "max_tokens", "script", "least_characters", "ends"}
_KEYS |= {"tokens", "text", "needle", "at", "agreement", "file"}
_TURN_KEYS = {"prompt", "expect", "needle"}


def gather(given: t.Sequence[t.Any], paths: t.Sequence[str]) -> tuple[list[dict[str, t.Any]], list[str]]:
    """The given cases and those of the files as ``inference_probe`` takes them, checked; and the files that were read.

    Raises ``ValueError`` whose message names file, case and cause.
    """
    read = [path for place in paths for path in _files(Path(place))]
    found = [_plain(case) for case in given]
    for path in read:
        found += _of_file(path)
    cases.read(found)
    return found, [str(path) for path in read]


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    found = sorted(path for path in place.iterdir() if path.suffix in _SUFFIXES)
    if not found:
        raise ValueError(f"folder '{place}' has no file *.yml")
    return found


def _of_file(path: Path) -> list[dict[str, t.Any]]:
    if not HAS_YAML:
        raise ValueError(f"file '{path}': PyYAML is not installed here to read it")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"file '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"file '{path}' is not UTF-8") from None
    except yaml.YAMLError as error:
        raise ValueError(f"file '{path}' is no YAML: {' '.join(str(error).split())}") from None
    rows = content.get("cases") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"file '{path}' holds no list of cases")
    try:
        return [_plain(row, path.parent) for row in rows]
    except ValueError as error:
        raise ValueError(f"file '{path}': {error}") from None


def _plain(case: t.Any, folder: Path | None = None) -> dict[str, t.Any]:
    """The case with the file that it names read: the text of a long prompt, the question of any other kind."""
    if not isinstance(case, dict):
        raise ValueError(f"a case is no dictionary: {str(case)[:80]}")
    name = f"case '{case.get('id', '')}'"
    turns = case.get("turns") or []
    keys = [(_KEYS, case), *((_TURN_KEYS, turn) for turn in turns if isinstance(turn, dict))]
    for known, row in keys:
        unknown = sorted(str(key) for key in row if key not in known)
        if unknown:
            raise ValueError(f"{name} has '{unknown[0]}', which is none of {', '.join(sorted(known))}")
    plain = {key: value for key, value in case.items() if key != "file"}
    if case.get("file"):
        into = "text" if case.get("kind") in cases.LONG else "prompt"
        if case.get(into):
            raise ValueError(f"{name} has {into} and a file for it")
        plain[into] = _text((folder or Path()) / str(case["file"]), name)
    return plain


def _text(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{name}: its file '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{name}: its file '{path}' is not UTF-8") from None
