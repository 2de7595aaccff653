#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run SGLang's server with an API key from a file: ``sglang_server.py --api-key-file FILE -- ARGUMENTS``.

SGLang takes its key on the command line alone, where everyone on the machine can read it, and writes its arguments to the log. Here the key is set after
the command line was parsed, and does not show itself where arguments are printed. Runs in the environment's own interpreter.
"""

from __future__ import annotations

import argparse
import os
import sys


class Key(str):
    """A key that is itself everywhere but in a ``repr``, which is how SGLang logs its arguments."""

    def __repr__(self) -> str:
        return "'(hidden)'"


def read_key(path: str) -> Key:
    """The key of the file. Raises ``ValueError`` where it holds none, which would open the API to everyone, or several."""
    with open(path, encoding="utf-8") as file:
        keys = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    if len(keys) != 1:
        raise ValueError(f"{path} holds {len(keys) or 'no'} keys, and SGLang takes one")
    return Key(keys[0])


def main() -> int:
    """Serve until it is told to stop; return 1 with one sentence where there is no key."""
    parser = argparse.ArgumentParser(prog="sglang-server", allow_abbrev=False)
    parser.add_argument("--api-key-file", required=True)
    parser.add_argument("arguments", nargs="*", help="SGLang's own, behind --")
    options = parser.parse_args()
    try:
        key = read_key(options.api_key_file)
    except (OSError, ValueError) as error:
        print(f"sglang-server: Cannot start: {error}.", file=sys.stderr, flush=True)
        return 1

    # As sglang/launch_server.py does when it is run.
    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args
    from sglang.srt.utils import kill_process_tree

    server_args = prepare_server_args(options.arguments)
    server_args.api_key = key
    try:
        run_server(server_args)
    finally:
        kill_process_tree(os.getpid(), include_parent=False)
    return 0


# Its processes are spawned: each imports this file, and must not serve.
if __name__ == "__main__":
    sys.exit(main())
