#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serve one GGUF model over the OpenAI API with the llama.cpp server of the xllamacpp package.

The package brings the server as a library and no command, so this is the command. It runs in the environment's own
interpreter and logs to standard error, one line an event, for the journal.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import sys
import time
import typing as t

# How long running requests have to end when the server is stopped.
STOP_SECONDS = 10


def say(message: str) -> None:
    """One line to the journal, at once: a start that hangs is read from the last line that it wrote."""
    print(f"llamacpp-server: {message}", file=sys.stderr, flush=True)


def positive(text: str) -> int:
    """An argument that counts something: a whole number of at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return number


def port_number(text: str) -> int:
    """A TCP port that a server can be told in advance."""
    number = int(text)
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port, 1 to 65535")
    return number


def build_parser() -> argparse.ArgumentParser:
    """The command line. Slipway's engine file for llama.cpp knows the same options."""
    parser = argparse.ArgumentParser(prog="llamacpp-server", allow_abbrev=False)
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--alias", required=True, help="name under which the API serves the model")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=port_number, default=8000)
    parser.add_argument("--context-length", type=positive, default=2048, help="tokens for each parallel request")
    parser.add_argument("--parallel", type=positive, default=1, help="requests served at the same time")
    parser.add_argument("--threads", type=positive, help="default: the CPUs this process may use")
    parser.add_argument("--api-key-file", help="file with one key a line; without it the API is open")
    return parser


def read_api_keys(path: str) -> list[str]:
    """The keys of the file. Raises ``ValueError`` where it holds none: an empty list would open the API to everyone."""
    with open(path, encoding="utf-8") as file:
        keys = [line.strip() for line in file]
    keys = [key for key in keys if key and not key.startswith("#")]
    if not keys:
        raise ValueError(f"{path} holds no key")
    return keys


def check_address(host: str, port: int) -> None:
    """Raise ``OSError`` where the address cannot be listened on.

    The library would only say that it could not start, and only after it has loaded the model.
    """
    family, kind, protocol, _name, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def parameters(xllamacpp: t.Any, options: argparse.Namespace, api_keys: list[str]) -> t.Any:
    """The library's parameters for these options."""
    threads = options.threads or len(os.sched_getaffinity(0))
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = [options.host]
    params.port = options.port
    # The library shares its context out over the slots; the option is what one request gets.
    params.n_ctx = options.context_length * options.parallel
    params.n_parallel = options.parallel
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # Also what a stop reads, to let running requests end.
    params.endpoint_metrics = True
    params.api_keys = api_keys
    # Both are for a person at a desk: the one shows the prompts of other clients, the other is a page of its own.
    params.endpoint_slots = False
    params.ui = False
    return params


def running_requests(server: t.Any) -> int:
    """Requests that are being answered, from the server's own figures."""
    figures = str(server.handle_metrics())
    found = re.search(r"llamacpp:requests_processing ([0-9]+)", figures)
    return int(found.group(1)) if found else 0


def let_requests_end(server: t.Any) -> str:
    """Wait for running requests, not longer than ``STOP_SECONDS``; how it went, in words."""
    deadline = time.monotonic() + STOP_SECONDS
    while running_requests(server):
        if time.monotonic() > deadline:
            return "running requests were cut off"
        time.sleep(0.1)
    return "no request is running"


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT, then leave with 0; return 1 with one sentence where it could not start."""
    options = build_parser().parse_args(argv)
    try:
        api_keys = read_api_keys(options.api_key_file) if options.api_key_file else []
        with open(options.model, "rb") as model:
            if model.read(4) != b"GGUF":
                raise ValueError(f"{options.model} is not a GGUF file")
        check_address(options.host, options.port)
    except (OSError, ValueError) as error:
        say(f"Cannot start: {str(error).rstrip('.')}.")
        return 1

    # Blocked before the library starts its threads, which inherit the mask: a signal waits for sigwait below, also one
    # that comes while the model loads, which no Python handler could interrupt.
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    say(f"loading {options.model}")
    started = time.monotonic()
    import xllamacpp  # here, so that a wrong command line is told without the engine

    try:
        server = xllamacpp.Server(parameters(xllamacpp, options, api_keys))
    except RuntimeError as error:
        say(f"Cannot start: {str(error).rstrip('.')}.")
        return 1
    access = "with an API key" if api_keys else "without an API key"
    say(
        f"serving {options.alias} at {server.listening_address} {access}, {options.parallel} at a time,"
        f" ready after {time.monotonic() - started:.1f} s"
    )
    stopped_by = signal.sigwait(signals)
    say(f"stopping on {signal.Signals(stopped_by).name}")
    say(f"stopped, {let_requests_end(server)}")
    # Not through the library's own end: it stops generating at once and then holds the process for up to 30 s while a
    # client listens. There is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
