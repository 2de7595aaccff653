# SPDX-License-Identifier: GPL-3.0-or-later
"""Make an environment: find the interpreter, drive uv, try imports, switch a link. Everything here acts on the target.

An environment is built where it will stay, since its scripts name their interpreter by path. So that a killed run is
completed by the next one, a note lies beside the folder while it is not whole; and what it was made from is written
into it last.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import typing as t
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from .. import files
from ..errors import SlipwayError
from ..findings import Finding, finding
from . import complaints, markers
from .source import Source

PROBE_TIMEOUT_SECONDS = 60
RECORD_NAME = "slipway.lock"


@dataclass(frozen=True)
class Interpreter:
    """A Python that was run: its path, its version as ``3.12`` and what it says about itself to markers."""

    path: str
    version: str
    environment: dict[str, str]


def ask_interpreter(path: str) -> Interpreter | None:
    """Run a Python and let it tell its version; ``None`` where it does not run (a shim, a broken link)."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", markers.PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_TIMEOUT_SECONDS,
            check=True,
        )
        told = json.loads(done.stdout)
        return Interpreter(path, told["python_version"], told)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None


def find_interpreters(candidates: t.Iterable[str]) -> t.Iterator[Interpreter]:
    """Those of the names and paths that run, in order, each asked only when it is wanted."""
    for candidate in candidates:
        path = shutil.which(candidate)
        found = ask_interpreter(path) if path else None
        if found:
            yield found


def first_interpreter(candidates: list[str]) -> Interpreter:
    """The first of the names and paths that runs. Raises ``SlipwayError`` whose message is the cause."""
    found = next(find_interpreters(candidates), None)
    if not found:
        names = ", ".join(candidates)
        cause = f"none of {names} runs here"
        raise SlipwayError(cause, [finding("PYTHON_MISSING", names, cause)])
    return found


def note_path(venv: Path) -> Path:
    """Where it is noted that the environment is not whole. Outside, since the folder itself may be made anew."""
    return venv.parent / f".{venv.name}.incomplete"


def read_note(venv: Path) -> str:
    """``creating``, ``changing``, or empty where the environment is whole or absent."""
    try:
        return note_path(venv).read_text(encoding="utf-8").strip() or "creating"
    except OSError:
        return ""


def read_record(venv: Path) -> str:
    """The text of the lock that the environment was made from; empty where Slipway did not finish it."""
    try:
        return (venv / RECORD_NAME).read_text(encoding="utf-8")
    except OSError:
        return ""


def build(
    uv: str, venv: Path, lock_text: str, interpreter: Interpreter | None, timeout_seconds: int, source: Source
) -> None:
    """Make the environment from nothing (``interpreter`` given) or bring its packages to the lock (``None``).

    Raises ``SlipwayError`` whose message is the cause; the note stays, so that the next run goes on.
    """
    resumed = bool(read_note(venv))
    venv.parent.mkdir(parents=True, exist_ok=True)
    files.replace(note_path(venv), "creating\n" if interpreter else "changing\n")
    if interpreter:
        if venv.exists():
            shutil.rmtree(venv)
        run_uv(uv, ["venv", "--no-project", "--python", interpreter.path, str(venv)], timeout_seconds, source)
    # A run that was killed may have left packages that are half there and look installed.
    _install(
        ["sync"] + (["--reinstall"] if resumed and not interpreter else []),
        uv,
        venv,
        lock_text,
        timeout_seconds,
        source,
    )


def put_again(uv: str, venv: Path, lock_text: str, timeout_seconds: int, source: Source) -> None:
    """Put the files of the lock's packages there again, whatever versions say; other packages stay.

    Raises ``SlipwayError`` whose message is the cause.
    """
    files.replace(note_path(venv), "changing\n")
    _install(["install", "--no-deps", "--reinstall"], uv, venv, lock_text, timeout_seconds, source)


def _install(verb: list[str], uv: str, venv: Path, lock_text: str, timeout_seconds: int, source: Source) -> None:
    with tempfile.TemporaryDirectory(prefix="slipway-") as folder:
        # What was read and planned is what is installed, whatever happens to the caller's file meanwhile.
        lock = Path(folder) / "requirements.lock"
        lock.write_text(lock_text, encoding="utf-8")
        options = ["--require-hashes", "--only-binary", ":all:", "--link-mode", "copy"]
        options += ["--python", str(venv / "bin" / "python"), *source.uv_options()]
        # Unlike sync, install obeys the constraints of uv.toml, which are those of the environment in use and may be another's.
        options += ["--no-config", "--requirements"] if verb[0] == "install" else []
        run_uv(uv, ["pip", *verb, *options, str(lock)], timeout_seconds, source)


def check_dependencies(uv: str, venv: Path, timeout_seconds: int) -> list[str]:
    """What uv says of requirements that are not fulfilled in the environment, a sentence each. Raises ``SlipwayError``."""
    done = call_uv(uv, ["pip", "check", "--python", str(venv / "bin" / "python")], timeout_seconds, Source())
    said = complaints.read_uv(done.stdout)
    if done.returncode and not said:
        raise explain_uv(done.returncode, done.stdout)
    return said


def finish(venv: Path, lock_text: str) -> None:
    """Write into the environment what it was made from, and take the note away: it is whole."""
    files.replace(venv / RECORD_NAME, lock_text)
    note_path(venv).unlink()


def run_uv(
    uv: str,
    arguments: list[str],
    timeout_seconds: int,
    source: Source,
    more_environment: t.Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Run uv, which must end well, and let it fetch from ``source``. Raises ``SlipwayError`` whose message is the cause."""
    done = call_uv(uv, arguments, timeout_seconds, source, more_environment)
    if done.returncode:
        raise explain_uv(done.returncode, done.stdout)


def call_uv(
    uv: str,
    arguments: list[str],
    timeout_seconds: int,
    source: Source,
    more_environment: t.Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run uv; what it printed is in ``stdout``. Raises ``SlipwayError`` where it does not run or does not end."""
    # Never a Python of its own choice, no colours, and no settings of whatever project lies around.
    environment = {
        **os.environ,
        **source.uv_environment(),
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_COLOR": "1",
        # Else it breaks its sentences where the caller's terminal ends.
        "COLUMNS": "10000",
        "UV_NO_PROGRESS": "1",
        **more_environment,
    }
    try:
        return subprocess.run(
            [uv, *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=environment,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_seconds,
            umask=0o022,
        )
    except subprocess.TimeoutExpired:
        raise SlipwayError(f"uv did not end within {timeout_seconds} seconds") from None
    except OSError as error:
        cause = f"uv does not run: {error}"
        raise SlipwayError(cause, [finding("UV_MISSING", uv, cause)]) from None


# What uv's chain of causes says, the finding that it comes to, and the cause in words; the first that matches is it. Seen with uv 0.13.
UV_CAUSES = (
    (r"proxy authorization required|407 Proxy Authentication", "PROXY_REFUSED", "the proxy asks for a login"),
    (r"tunnel error: unsuccessful", "PROXY_REFUSED", "the proxy does not let the connection through"),
    (r"tunnel error: failed to create underlying", "PROXY_REFUSED", "the proxy does not answer ({last})"),
    (
        r"CaUsedAsEndEntity",
        "CA_UNTRUSTED",
        "the index's certificate is a CA's own, which uv takes for no server's: let that CA sign one for the index",
    ),
    (r"invalid peer certificate: (.*)", "CA_UNTRUSTED", "the index's certificate is not trusted ({0})"),
    (r"Temporary failure in name resolution|Try again", "NETWORK_UNREACHABLE", "no name server answers"),
    (r"Network is unreachable|No route to host", "NETWORK_UNREACHABLE", "there is no route to the index"),
    (r"HTTP status \w+ error \((\d+[^)]*)\)", "INDEX_UNREACHABLE", "the package index answers {0}"),
    (r"returned an? (\d+ [\w ]+) error", "INDEX_UNREACHABLE", "the package index answers {0}"),
    (r"Name or service not known", "INDEX_UNREACHABLE", "the package index has a name that nobody knows"),
    (r"Failed to fetch|error sending request", "INDEX_UNREACHABLE", "the package index does not answer ({last})"),
    (
        r"No solution found[^\n]*\n\s*cause: ([^\n]*?),? we can conclude",
        "PACKAGE_UNAVAILABLE",
        "the index or folder does not have what the lock names ({0})",
    ),
    (r"No solution found", "PACKAGE_UNAVAILABLE", "the index or folder does not have what the lock names ({last})"),
    (r"Failed to extract archive: (\S+)", "HASH_MISMATCH", "the file {0} is torn: it cannot be unpacked"),
)


def explain_uv(returncode: int, output: str) -> SlipwayError:
    """What uv's complaint comes to, in a sentence; its message is the cause alone."""
    output = re.sub(r"://[^/@\s]+@", "://***@", output)  # an index address may carry a password
    mismatch = re.search(r"Hash mismatch for `([^`]+)`.*?sha256:(\w+).*?Computed:\s*sha256:(\w+)", output, re.DOTALL)
    if mismatch:
        package, expected, computed = mismatch.groups()
        cause = (
            f"the file of {package} is not the one that the lock means (sha256 {computed}, the lock says {expected})"
        )
        return SlipwayError(cause, [finding("HASH_MISMATCH", package, cause)])
    address = re.search(r"(?:https?|file)://[^\s`)>]+", output)
    for pattern, fault, words in UV_CAUSES:
        match = re.search(pattern, output)
        if match:
            cause = words.format(*match.groups(), last=last_lines(output, 2))
            subject = address[0] if address else "package index"
            return SlipwayError(f"{cause}, at {subject}" if address else cause, [finding(fault, subject, cause)])
    if returncode < 0:
        return SlipwayError(f"uv was killed by {signal_name(-returncode)}")
    return SlipwayError(f"uv failed ({returncode}): {last_lines(output, 6)}")


def last_lines(text: str, count: int) -> str:
    """The last lines that say something, as one line of at most 600 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-count:])[-600:] or "no output"


def signal_name(number: int) -> str:
    """``SIGILL`` for 4."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def try_imports(python: str, names: t.Iterable[str], timeout_seconds: int, write_bytecode: bool) -> list[Finding]:
    """Import each module in an interpreter of its own; a finding for each that fails."""
    findings = []
    for name in names:
        fault = _import_fault(python, name, timeout_seconds, write_bytecode)
        if fault:
            findings.append(finding("IMPORT_FAILED", name, fault))
    return findings


def _import_fault(python: str, name: str, timeout_seconds: int, write_bytecode: bool) -> str:
    command = [python, "-I"] + ([] if write_bytecode else ["-B"])
    try:
        done = subprocess.run(
            [*command, "-c", "import importlib, sys; importlib.import_module(sys.argv[1])", name],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            encoding="utf-8",
            errors="replace",
            timeout=timeout_seconds,
            umask=0o022,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {timeout_seconds} seconds"
    except OSError as error:
        return str(error)
    if done.returncode < 0:
        return f"killed by {signal_name(-done.returncode)}"
    return last_lines(done.stderr, 1) if done.returncode else ""


def read_link(link: Path) -> str:
    """Where a link points; empty where nothing is. Raises ``SlipwayError`` where something else lies there."""
    if link.is_symlink():
        return os.readlink(link)
    if os.path.lexists(link):
        raise SlipwayError(f"{link} is not a symbolic link")
    return ""


def switch_link(link: Path, target: Path) -> None:
    """Let the link point to the environment, in one step: whoever looks finds the old or the new one."""
    link.parent.mkdir(parents=True, exist_ok=True)
    temporary = link.parent / f".{link.name}.{os.getpid()}"
    os.symlink(target, temporary)
    try:
        os.replace(temporary, link)
    except OSError:
        temporary.unlink()
        raise
