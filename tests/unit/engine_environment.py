# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment whose engine is a stand-in of a few lines: the packages and functions of the real one that Slipway calls, and no more."""

from __future__ import annotations

import sys
from pathlib import Path

SGLANG_ARGUMENTS = """
import dataclasses, json, os, sys
@dataclasses.dataclass
class ServerArgs:
    model_path: str = ""
    api_key: str = None
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", required=True)
        parser.add_argument("--attention-backend", choices=["triton", "flashinfer"])
        parser.add_argument("--numa-node", type=int, nargs="+")
        parser.add_argument("--fraction", type=float)
        parser.add_argument("--extra", type=json.loads)
        parser.add_argument("--fast", action="store_true")
def prepare_server_args(argv):
    return ServerArgs(model_path=argv[argv.index("--model-path") + 1])
"""
SGLANG_SERVER = """
import os
def run_server(server_args):
    print(f"{server_args=}")
    print("Bearer " + server_args.api_key, f"{server_args.api_key}" == "geheim")
    print("geheim" in open("/proc/self/cmdline").read(), "geheim" in open("/proc/self/environ").read())
"""
VLLM_SERVER = """
import os, sys
if __name__ == "__main__":
    print(sys.argv[1:], os.environ["VLLM_API_KEY"])
    print("geheim" in open("/proc/self/cmdline").read(), "geheim" in open("/proc/self/environ").read())
"""


def make(venv: Path, files: dict[str, str]) -> Path:
    """An environment with these files in its site-packages, by their paths; ``__init__.py`` is made where there is none."""
    site = venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for name, content in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        for folder in path.relative_to(site).parents:
            if folder != Path("."):
                (site / folder / "__init__.py").touch()
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (venv / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    return venv


def sglang(venv: Path, arguments: str = SGLANG_ARGUMENTS) -> Path:
    """SGLang's parser, and a server that prints what it was given and ends."""
    utils = "def kill_process_tree(pid, include_parent=True):\n    print('ended')\n"
    files = {"sglang/srt/server_args.py": arguments, "sglang/launch_server.py": SGLANG_SERVER}
    return make(venv, {**files, "sglang/srt/utils/__init__.py": utils})


def vllm(venv: Path) -> Path:
    """A server of vLLM that prints what it was given and ends."""
    return make(venv, {"vllm/entrypoints/openai/api_server.py": VLLM_SERVER})
