#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run vLLM's server with an API key from a file: ``vllm_server.py --api-key-file FILE -- ARGUMENTS``.

On the command line everyone on the machine could read the key, and vLLM would log it; in the unit's ``Environment=`` everyone could, too. Here it is set in the
process's own environment, which only its user can read. Runs in the environment's own interpreter.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys


def read_key(path: str) -> str:
    """The key of the file. Raises ``ValueError`` where it holds none, which would open the API to everyone, or several."""
    with open(path, encoding="utf-8") as file:
        keys = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    if len(keys) != 1:
        raise ValueError(f"{path} holds {len(keys) or 'no'} keys, and vLLM takes one from its environment")
    return keys[0]


def main() -> int:
    """Serve until it is told to stop; return 1 with one sentence where there is no key."""
    parser = argparse.ArgumentParser(prog="vllm-server", allow_abbrev=False)
    parser.add_argument("--api-key-file", required=True)
    parser.add_argument("arguments", nargs="*", help="vLLM's own, behind --")
    options = parser.parse_args()
    try:
        os.environ["VLLM_API_KEY"] = read_key(options.api_key_file)
    except (OSError, ValueError) as error:
        print(f"vllm-server: Cannot start: {error}.", file=sys.stderr, flush=True)
        return 1
    module = "vllm.entrypoints.openai.api_server"
    sys.argv = [module, *options.arguments]
    # As `python -m` does: the processes that it spawns find the module by its name.
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
