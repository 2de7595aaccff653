# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs in an engine's own Python: builds the parser of its server and parses a command line with it. Starts nothing.

It travels as text and gets ``{"engine", "argv"}`` as its argument, JSON. ``argv`` is what follows the server's name; where it is left out, the parser's options
are listed instead. The last line that it prints is JSON behind ``MARK``: ``{"accepted", "said"}``, ``{"options"}`` or ``{"broken"}``, why there is no parser.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import typing as t

MARK = "slipway-parser:"


def sglang() -> tuple[argparse.ArgumentParser, list[t.Callable[[t.Any], None]]]:
    """As ``sglang.srt.server_args.prepare_server_args`` makes it. What follows there looks at GPUs and model, and is not run."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser(prog="sglang.launch_server")
    ServerArgs.add_cli_args(parser)
    return parser, []


def vllm() -> tuple[argparse.ArgumentParser, list[t.Callable[[t.Any], None]]]:
    """As ``vllm.entrypoints.openai.api_server`` makes it when it is run, and what it checks before it makes an engine."""
    import vllm.platforms

    # Without a GPU it knows no device, and its parser has none for a default. CUDA's is what it would be; no choice depends on it.
    if not vllm.platforms.current_platform.device_type:
        vllm.platforms.current_platform.device_type = "cuda"
    from vllm.entrypoints.openai.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    def parsers_exist(args: t.Any) -> None:
        from vllm.entrypoints.openai.api_server import validate_api_server_args

        validate_api_server_args(args)

    def backend_exists(args: t.Any) -> None:
        # The parser takes any text, and the engine refuses it when it makes its configuration.
        from vllm.config.attention import AttentionConfig

        AttentionConfig(backend=args.attention_backend)

    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm.entrypoints.openai.api_server"))
    return parser, [validate_parsed_serve_args, parsers_exist, backend_exists]


def kind(action: argparse.Action) -> str:
    """What an option takes, seen by what its type makes of examples: ``flag switch deprecated whole size number json text``."""
    name = type(action).__name__
    if name.startswith("Deprecated"):
        return "deprecated"
    if name == "BooleanOptionalAction":
        return "switch"
    if action.nargs == 0:
        return "flag"
    convert = action.type
    if not callable(convert):
        return "text"

    def takes(example: str) -> bool:
        try:
            convert(example)
        except Exception:  # whatever a type raises, it does not take the example
            return False
        return True

    if takes("x y"):
        return "text"
    if takes("7") and takes("4k"):
        return "size"
    if takes("7") and not takes("{}"):
        return "number" if takes("0.5") else "whole"
    return "json" if takes("{}") or takes("[]") else "text"


def listed(parser: argparse.ArgumentParser) -> list[dict[str, t.Any]]:
    """The options of a parser: ``names`` (long ones, without dashes), ``kind``, ``many`` and ``choices``."""
    options = []
    for action in parser._actions:
        names = [name[2:] for name in action.option_strings if name.startswith("--")]
        if type(action).__name__ == "BooleanOptionalAction":
            names = [name for name in names if not name.startswith("no-")]
        if not names or names == ["help"]:
            continue
        choices = [str(choice) for choice in action.choices or ()]
        many = action.nargs in ("+", "*") or type(action).__name__ == "_AppendAction"
        options.append({"names": names, "kind": kind(action), "many": many, "choices": choices})
    return options


def parse(
    parser: argparse.ArgumentParser, checks: list[t.Callable[[t.Any], None]], argv: list[str]
) -> dict[str, t.Any]:
    """Whether the parser and the checks take the command line, and what they said if not."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = parser.parse_args(argv)
            for check in checks:
                check(parsed)
    except SystemExit:
        lines = [line for line in said.getvalue().splitlines() if "error: " in line] or [said.getvalue().strip()]
        return {"accepted": False, "said": lines[-1].partition("error: ")[2] or lines[-1]}
    except Exception as error:  # checks of the engine raise whatever they like
        return {"accepted": False, "said": " ".join(f"{type(error).__name__}: {error}".split())}
    return {"accepted": True, "said": ""}


def main() -> None:
    """Print the answer."""
    asked = json.loads(sys.argv[1])
    try:
        parser, checks = {"sglang": sglang, "vllm": vllm}[asked["engine"]]()
    except Exception as error:  # an environment that is broken in any way
        print(MARK + json.dumps({"broken": f"{type(error).__name__}: {error}"}), flush=True)
        return
    if asked.get("argv") is None:
        answer: dict[str, t.Any] = {"options": listed(parser)}
    else:
        answer = parse(parser, checks, asked["argv"])
    print("\n" + MARK + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
