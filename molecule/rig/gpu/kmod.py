# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's ``modprobe`` and ``rmmod`` for the NVIDIA modules. Everything else, and all questions, go to the real kmod.

    python3 -m gpu.kmod modprobe|rmmod ARGUMENTS

What a module needs and which options it gets is asked of the real ``modprobe --show-depends``: so files of
``/etc/modprobe.d`` mean here exactly what they mean to kmod (options, install lines, soft dependencies, misspelt names).
"""

from __future__ import annotations

import errno
import getopt
import os
import re
import shlex
import subprocess
import sys
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from gpu.kernel import MODULES, Image, Kernel

REAL = "/usr/lib/rig/kmod"  # where install.py moves the real programs
# Options that take a value, and those that only ask or that stay with the real program.
_WITH_VALUE = {"-C": "config", "-d": "dirname", "-S": "set-version", "-w": "wait"}
_ASKS = {
    "-c",
    "--showconfig",
    "-D",
    "--show-depends",
    "-R",
    "--resolve-alias",
    "-n",
    "--dry-run",
    "--show",
    "-h",
    "--help",
    "-V",
    "--version",
}
_ASKS |= {"--show-modversions", "--show-exports", "--dump-modversions"}
_SHORT = "arDcnqvbfsiIRhVC:d:S:w:"
_LONG = re.split(
    r"\s+",
    "all remove remove-dependencies remove-holders resolve-alias first-time ignore-install ignore-remove use-blacklist force "
    "force-modversion force-vermagic show-depends showconfig show-config show-modversions dump-modversions show-exports dry-run "
    "show syslog quiet verbose version help config= dirname= set-version= wait=",
)


@dataclass
class Request:
    """What one call of ``modprobe`` asks for."""

    modules: list[str]
    parameters: list[str] = field(default_factory=list)
    passed_on: list[str] = field(default_factory=list)  # options for the real modprobe: where to look and what to apply
    remove: bool = False
    quiet: bool = False
    first_time: bool = False
    asks_only: bool = False


def parse(arguments: t.Sequence[str]) -> Request:
    """The command line of modprobe(8). Errors: getopt.GetoptError."""
    options, rest = getopt.gnu_getopt(list(arguments), _SHORT, _LONG)
    names = {name for name, _value in options}
    remove = bool(names & {"-r", "--remove"})
    passed_on: list[str] = []
    for name, value in options:
        if name in _WITH_VALUE or name[2:] in _WITH_VALUE.values():
            passed_on += [name, value]
        elif name in ("-b", "--use-blacklist", "-i", "-I", "--ignore-install", "--ignore-remove", "-q", "--quiet"):
            passed_on.append(name)
    several = remove or bool(names & {"-a", "--all"})
    return Request(
        modules=[name.replace("-", "_") for name in (rest if several else rest[:1])],
        parameters=[] if several else rest[1:],
        passed_on=passed_on,
        remove=remove,
        quiet=bool(names & {"-q", "--quiet"}),
        first_time="--first-time" in names,
        asks_only=bool(names & _ASKS),
    )


def parse_insmod(line: str) -> tuple[str, str, dict[str, str | None]]:
    """A line of ``--show-depends``, ``insmod PATH A=1 B``, as module, path and parameters."""
    _insmod, path, *parameters = shlex.split(line)
    module = re.sub(r"\.ko(\.\w+)?$", "", Path(path).name).replace("-", "_")
    values: dict[str, str | None] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        values[name.replace("-", "_")] = value if equals else None
    return module, path, values


class Kmod:
    """Carries requests out, in the words and with the status of the real programs."""

    def __init__(self, kernel: Kernel, program: str = f"{REAL}/modprobe") -> None:
        self._kernel = kernel
        self._program = program

    def modprobe(self, request: Request) -> int:
        """Insert or remove the modules of the request; the exit status."""
        act = self._remove if request.remove else self._insert
        return max([act(module, request) for module in request.modules])

    def rmmod(self, modules: list[str]) -> int:
        """Remove exactly these modules, as rmmod(8) does."""
        status = 0
        for module in (Path(name).name.removesuffix(".ko").replace("-", "_") for name in modules):
            holders = self._kernel.holders(module)
            if not self._kernel.is_loaded(module):
                status = _say(f"rmmod: ERROR: Module {module} is not currently loaded")
            elif holders:
                status = _say(f"rmmod: ERROR: Module {module} is in use by: {' '.join(holders)}")
            elif not self._unload(module):
                status = _say(f"rmmod: ERROR: Module {module} is in use")
        return status

    def _insert(self, module: str, request: Request) -> int:
        line = [self._program, *request.passed_on, "--show-depends", module, *request.parameters]
        done = subprocess.run(line, capture_output=True, text=True)
        sys.stderr.write(done.stderr)
        if done.returncode:
            return done.returncode
        for step in done.stdout.splitlines():
            # "builtin NAME" needs nothing; an install line of modprobe.d is a command that kmod would run in its place.
            if step.startswith("install "):
                if subprocess.run(["sh", "-c", step.removeprefix("install ")]).returncode:
                    return _say(f"modprobe: ERROR: could not insert '{module}': Invalid argument", request.quiet)
            elif step.startswith("insmod "):
                name, path, parameters = parse_insmod(step)
                if self._kernel.is_loaded(name) and not (name == module and request.first_time):
                    continue
                if name not in MODULES:
                    subprocess.run([self._program, "-q", name])
                    continue
                try:
                    self._kernel.admit(Path(path))
                    self._kernel.load(name, read_image(Path(path)), parameters)
                except OSError as error:
                    return _say(f"modprobe: ERROR: could not insert '{name}': {error.strerror}", request.quiet)
        return 0

    def _remove(self, module: str, request: Request) -> int:
        if not self._kernel.is_loaded(module):
            return (
                _say(f"modprobe: FATAL: Module {module} is not in kernel.", request.quiet) if request.first_time else 0
            )
        if self._kernel.holders(module) or not self._unload(module):
            return _say(f"modprobe: FATAL: Module {module} is in use.", request.quiet)
        # kmod takes what the module used along, as far as nobody else uses it.
        for used in MODULES[module][0]:
            if self._kernel.is_loaded(used) and not self._kernel.holders(used):
                self._unload(used)
        return 0

    def _unload(self, module: str) -> bool:
        try:
            self._kernel.unload(module)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
            return False
        return True


def read_image(path: Path) -> Image:
    """Version and flavour of a module's file, from its ``.modinfo``."""
    fields = dict(re.findall(rb"\0(version|license)=([^\0]*)", path.read_bytes()))
    return Image(fields.get(b"version", b"").decode(), fields.get(b"license", b"") != b"NVIDIA")


def _say(message: str, quiet: bool = False) -> int:
    if not quiet:
        print(message, file=sys.stderr)
    return 1


def main(arguments: list[str]) -> int:
    """The command line, with the program's name first."""
    program, *rest = arguments
    if program == "rmmod":
        modules = [name for name in rest if not name.startswith("-")]
        if not any(name.replace("-", "_") in MODULES for name in modules):
            _become(program, rest)
        return Kmod(Kernel()).rmmod(modules)
    try:
        request = parse(rest)
    except getopt.GetoptError:
        _become(program, rest)  # it says what is wrong with the options
    if request.asks_only or not any(module in MODULES for module in request.modules):
        _become(program, rest)
    return Kmod(Kernel()).modprobe(request)


def _become(program: str, arguments: list[str]) -> t.NoReturn:
    os.execv(f"{REAL}/{program}", [program, *arguments])  # noqa: S606 - no shell is wanted: the arguments go through as they are


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
