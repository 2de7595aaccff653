# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches as folders: ``patch.yml`` and ``change.diff`` side by side."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..errors import SlipwayError
from ..findings import finding

try:
    import yaml
except ImportError:
    HAS_YAML = False
else:
    HAS_YAML = True


def declared(patches: t.Iterable[t.Any]) -> list[dict[str, t.Any]]:
    """Each patch as data: a dictionary as it is, a path read from the folder there. Raises ``SlipwayError`` (the cause)."""
    return [one if isinstance(one, dict) else _read(Path(str(one))) for one in patches]


def _read(folder: Path) -> dict[str, t.Any]:
    if not HAS_YAML:
        raise _invalid(folder, "PyYAML is not installed here to read patch.yml; give the patch as data instead")
    try:
        content = yaml.safe_load((folder / "patch.yml").read_text(encoding="utf-8"))
        change = (folder / "change.diff").read_bytes()
    except OSError as error:
        raise _invalid(folder, f"it cannot be read: {error}") from None
    except ValueError as error:
        raise _invalid(folder, f"patch.yml is no UTF-8: {error}") from None
    except yaml.YAMLError as error:
        raise _invalid(folder, f"patch.yml is no YAML: {error}") from None
    if not isinstance(content, dict):
        raise _invalid(folder, "patch.yml is no dictionary")
    return {**content, "diff": change.decode("utf-8", "surrogateescape")}


def _invalid(folder: Path, cause: str) -> SlipwayError:
    return SlipwayError(f"patch '{folder}': {cause}", [finding("PATCH_INVALID", str(folder), cause)])
