# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of engines' options: each profile's environment, built from its lock, is asked for its own parser's options.

``python tools/engine_options.py write [PROFILE...]`` writes ``module_utils/slipway/engines/options/<engine>_<version>.py``. The parsers import torch, and vLLM's options
are made of types while it runs, so that nothing less than the environment tells all of them: some 10 GB on disk for each stack, below the cache of Slipway.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "module_utils"))
from slipway.engines import options, own_parser  # noqa: E402  # the path to the modules comes first

CACHE = Path(os.environ.get("SLIPWAY_ENGINE_CACHE") or Path.home() / ".cache" / "slipway" / "engines")
SECONDS = 900.0


def profiles() -> dict[str, dict[str, t.Any]]:
    """The shipped profiles whose engine has a parser of its own, by name."""
    found = {path.parent.name: yaml.safe_load(path.read_text()) for path in sorted(ROOT.glob("profiles/*/profile.yml"))}
    return {name: profile for name, profile in found.items() if profile["engine"] in own_parser.MODULES}


def interpreter(version: str) -> str:
    """A Python of this version: the machine's, one of pyenv's that is not switched on, else the version, which uv downloads."""
    places = [
        f"python{version}",
        *sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))),
    ]
    for place in places:
        try:
            subprocess.run([place, "-c", ""], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):  # pyenv's own stand-ins end with an error
            continue
        return place
    return version


def environment(name: str, profile: dict[str, t.Any]) -> Path:
    """The interpreter of the profile's environment: the one that SLIPWAY_ENGINE_<PROFILE> names, else built from its lock."""
    given = os.environ.get("SLIPWAY_ENGINE_" + re.sub(r"[^A-Z0-9]", "_", name.upper()))
    if given:
        return Path(given) / "bin" / "python"
    venv, done = CACHE / name, CACHE / f"{name}.lock"
    lock = ROOT / "profiles" / name / profile["stack"]["lock"]
    if not done.exists() or done.read_text() != lock.read_text():
        uv = Path(sys.executable).parent / "uv"
        python = interpreter(profile["stack"]["target"]["python"])
        subprocess.run([uv, "venv", "--quiet", "--clear", "--no-project", "--python", python, venv], check=True)
        sync = [uv, "pip", "sync", "--quiet", "--require-hashes", "--python", venv / "bin" / "python", lock]
        subprocess.run(sync, check=True)
        done.write_text(lock.read_text())
    return venv / "bin" / "python"


def remove(name: str) -> None:
    """Take the environment away that was built for a profile; what uv keeps builds it again in a minute."""
    (CACHE / f"{name}.lock").unlink(missing_ok=True)
    shutil.rmtree(CACHE / name, ignore_errors=True)


def table(python: Path, engine: str) -> str:
    """The table that the engine's own parser gives."""
    answer = own_parser.ask(str(python), engine, None, SECONDS)
    return options.write(
        # Sorted, since engines take some choices from sets, whose order is another in each run.
        options.Option(tuple(one["names"]), one["kind"], one["many"], tuple(sorted(one["choices"])))
        for one in answer["options"]
    )


def module(engine: str, version: str) -> Path:
    """The file of a release."""
    return ROOT / "module_utils/slipway/engines/options" / f"{engine}_{version.replace('.', '_')}.py"


def main(names: list[str]) -> None:
    """Write the tables of these profiles' engines, or of all."""
    for name, profile in profiles().items():
        if names and name not in names:
            continue
        engine, version = profile["engine"], profile["engine_version"]
        text = table(environment(name, profile), engine).replace("\\", "\\\\")
        title = f'"""Options of {engine} {version}, as its own parser has them (tools/engine_options.py)."""'
        head = f"# SPDX-License-Identifier: GPL-3.0-or-later\n{title}\n\nfrom __future__ import annotations\n"
        module(engine, version).write_text(f'{head}\nTABLE = """\n{text}\n"""\n')
        print(f"{module(engine, version).relative_to(ROOT)}: {len(text.splitlines())} options of {name}")


if __name__ == "__main__":
    if sys.argv[1:2] != ["write"]:
        sys.exit(
            "Cannot write tables of options: the first word is not 'write'. Say: tools/engine_options.py write [PROFILE...]"
        )
    main(sys.argv[2:])
