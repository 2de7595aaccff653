# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a patch folder from files of an installed package that were edited: their originals come from the package's wheel.

    python tools/patch_new.py my-fix --wheel sglang-0.5.9-py3-none-any.whl .../site-packages/sglang/a.py .../site-packages/sglang/new.py

A file that the wheel does not have becomes a new one; one that is named and not there, a deleted one. What is written is read again and
applied before it is called done. Then say in ``patch.yml`` what it is for.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import zipfile
from pathlib import Path

import ansible.module_utils
import yaml

ROOT = Path(__file__).resolve().parent.parent
ansible.module_utils.__path__.append(str(ROOT / "module_utils"))

from ansible.module_utils.slipway.errors import SlipwayError  # noqa: E402 - found by the path above
from ansible.module_utils.slipway.patching import hunks, manifest  # noqa: E402

SITE = "site-packages"


def inside(path: Path) -> str:
    """A file's path below its site-packages. Raises ``ValueError``."""
    parts = path.absolute().parts
    if SITE not in parts:
        raise ValueError(f"{path} does not lie below a folder {SITE}")
    last = len(parts) - 1 - parts[::-1].index(SITE)
    return "/".join(parts[last + 1 :])


def difference(path: str, before: bytes | None, after: bytes | None) -> bytes:
    """A git diff of one file, to the byte."""
    old, new = (_lines(content or b"") for content in (before, after))
    head = f"diff --git a/{path} b/{path}\n"
    if before is None:
        head += "new file mode 100644\n"
    if after is None:
        head += "deleted file mode 100644\n"
    names = [f"a/{path}" if before is not None else "/dev/null", f"b/{path}" if after is not None else "/dev/null"]
    lines = difflib.diff_bytes(difflib.unified_diff, old, new, names[0].encode(), names[1].encode())
    ended = (line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)
    return head.encode() + b"".join(ended)


def _lines(content: bytes) -> list[bytes]:
    """Lines as diff counts them: only a line feed ends one."""
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def make(name: str, wheel: Path, edited: list[Path], summary: str) -> tuple[dict[str, object], bytes]:
    """What ``patch.yml`` and ``change.diff`` hold. Raises ``ValueError`` and ``OSError``."""
    package, version = wheel.name.split("-")[:2]
    changes = {}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for file in edited:
            path = inside(file)
            sides = (archive.read(path) if path in names else None, file.read_bytes() if file.exists() else None)
            if sides[0] == sides[1]:
                raise ValueError(f"{path} is as the wheel has it")
            changes[path] = sides
    told = [
        {"path": path, "before": manifest.sha256(before), "after": manifest.sha256(after)}
        for path, (before, after) in changes.items()
    ]
    content = b"".join(difference(path, *sides) for path, sides in changes.items())
    described = {
        "id": name,
        "summary": summary,
        "package": package.replace("_", "-"),
        "versions": [version.replace("_", "+")],
        "files": told,
    }
    patch = manifest.read({**described, "diff": content.decode("utf-8", "surrogateescape")})
    for change in patch.changes:
        before, after = changes[change.old or change.new]
        if hunks.apply(change, before) != after:
            raise ValueError(f"the diff of {change.old or change.new} does not lead to the edited file")
    return described, content


def main() -> int:
    """Write the folder, and say where."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("id", help="the patch's id, and the name of its folder")
    parser.add_argument("--wheel", type=Path, required=True, help="the wheel of the installed version")
    parser.add_argument("--summary", default="Say in one line what this changes", help="what it does, in one line")
    parser.add_argument("--into", type=Path, default=ROOT / "patches", help="the folder of patches, yours or Slipway's")
    parser.add_argument("edited", type=Path, nargs="+", help="edited files below a folder site-packages")
    given = parser.parse_args()
    folder = given.into / given.id
    try:
        described, content = make(given.id, given.wheel, given.edited, given.summary)
        folder.mkdir(parents=True)
        (folder / "change.diff").write_bytes(content)
        text = yaml.safe_dump(described, sort_keys=False, width=150, allow_unicode=True)
        (folder / "patch.yml").write_text(f"---\n{text}")
    except (SlipwayError, ValueError, OSError, zipfile.BadZipFile) as error:
        print(f"Cannot make patch '{given.id}': {error}", file=sys.stderr)
        return 1
    print(
        f"{folder}: say in patch.yml why it is needed, where upstream stands, and what was shown (why, upstream, superseded_in, evidence)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
