# SPDX-License-Identifier: GPL-3.0-or-later
"""What all engines share: the request, the plan, the linting of arguments and the systemd side of it. Pure."""

from __future__ import annotations

import difflib
import re
import typing as t
from dataclasses import dataclass, field

from ..errors import SlipwayError
from ..findings import Finding, finding

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HOST = re.compile(r"[A-Za-z0-9:.-]+")
SECRET = re.compile(r"(^|[_-])(api[_-]?keys?|token|password|passwd|secret)$", re.IGNORECASE)
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Request:
    """A server as profile, inventory and facts ask for it. ``devices`` are paths of GPU device nodes."""

    engine: str
    venv: str
    model_path: str
    model_name: str
    host: str
    port: int
    tensor_parallel: int = 1
    context_length: int | None = None
    kv_cache_dtype: str = "auto"
    arguments: t.Mapping[str, t.Any] = field(default_factory=dict)
    environment: t.Mapping[str, t.Any] = field(default_factory=dict)
    open_devices: bool = False
    devices: tuple[str, ...] = ()
    api_key_file: str | None = None
    launcher: str | None = None
    engine_version: str = ""
    model_type: str = ""
    # Compute capability of the GPUs as one number, such as 120; none if it is not known.
    sm: int | None = None
    # As ``gpu_host_info`` and ``gpu_p2p`` return them.
    gpus: tuple[t.Mapping[str, t.Any], ...] = ()
    links: t.Mapping[str, t.Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Derived:
    """A setting that neither profile nor inventory has, and the facts that it follows from. ``setting`` is an option or a variable."""

    setting: str
    value: str
    why: str
    source: str = ""


@dataclass(frozen=True)
class ServerPlan:
    """How the server is run. ``launcher`` is the file that must lie on the guest beside the environment, if any."""

    argv: list[str]
    environment: dict[str, str]
    findings: list[Finding]
    launcher: str | None = None
    derived: list[Derived] = field(default_factory=list)


@dataclass(frozen=True)
class Argument:
    """One argument that an engine takes.

    ``flag`` (there or not), ``switch`` (``--x`` or ``--no-x``), ``count`` (a whole number of at least one), ``whole``, ``size`` (``4k`` too), ``number``,
    ``json`` or ``text``;
    ``deprecated`` is one that the engine still takes and does nothing with.
    """

    kind: str
    # What else in the request sets it; giving it twice contradicts.
    set_by: str = ""
    choices: tuple[str, ...] = ()
    many: bool = False


def check_request(request: Request) -> None:
    """Refuse what no engine could serve. Raises ``SlipwayError`` whose message is the cause."""
    for name in ("venv", "model_path"):
        if not getattr(request, name).startswith("/"):
            raise SlipwayError(f"{name} '{getattr(request, name)}' is not an absolute path")
    if not request.model_name.strip() or request.model_name != request.model_name.strip():
        raise SlipwayError(f"model_name '{request.model_name}' is empty or has space around it")
    if not 1 <= request.port <= 65535:
        raise SlipwayError(f"port {request.port} is not one of 1 to 65535")
    if not HOST.fullmatch(request.host):
        raise SlipwayError(f"host '{request.host}' is neither a name nor an address")
    if request.tensor_parallel < 1:
        raise SlipwayError(f"tensor_parallel {request.tensor_parallel} is less than 1")
    if request.context_length is not None and request.context_length < 1:
        raise SlipwayError(f"context_length {request.context_length} is less than 1")
    if request.open_devices and not request.devices:
        raise SlipwayError("open_devices is asked for and no GPU has a device node")
    for name in request.environment:
        if not VARIABLE.fullmatch(name):
            raise SlipwayError(f"'{name}' is not the name of an environment variable")


def option(name: str) -> str:
    """The command line's spelling of an argument: ``context_length`` is ``--context-length``."""
    return "--" + name.lstrip("-").replace("_", "-")


def lint(request: Request, known: t.Mapping[str, Argument]) -> list[Finding]:
    """Findings about names: arguments that the engine does not have, secrets, an API that is open to a network."""
    findings = []
    for name in request.arguments:
        key = option(name)[2:]
        # First of all, so that no other text can lead a reader to put the key there under its right name.
        if SECRET.search(key):
            findings.append(finding("SECRET_EXPOSED", key, "an argument is seen by everyone who can list processes"))
        elif key not in known:
            nearest = difflib.get_close_matches(key, known, 1)
            hint = f"the nearest that it has is {option(nearest[0])}" if nearest else "it has nothing like it"
            findings.append(finding("FLAG_UNKNOWN", option(name), f"{request.engine}: {hint}"))
    for name in request.environment:
        if SECRET.search(name):
            findings.append(finding("SECRET_EXPOSED", name, "a unit's environment is seen by everyone on the machine"))
    if request.host not in LOOPBACK and not request.api_key_file:
        findings.append(finding("API_OPEN", f"{request.host}:{request.port}", "no api_key_file is given"))
    return findings


def variables(request: Request, defaults: t.Mapping[str, str]) -> dict[str, str]:
    """The server's environment: the engine's defaults under the request's, without what ``lint`` calls a secret.

    Raises ``SlipwayError`` for a value that is no text of one line.
    """
    merged = dict(defaults)
    for name, value in request.environment.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)) or "\n" in str(value):
            raise SlipwayError(f"environment variable {name} must be a text or number of one line, not '{value}'")
        if not SECRET.search(name):
            merged[name] = str(value)
    return dict(sorted(merged.items()))


def quote(word: str) -> str:
    """One word of a unit file's setting as systemd reads it back (systemd.service(5), "Command lines")."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\t", "\\t")
    return f'"{escaped}"' if not re.fullmatch(r"[A-Za-z0-9_./:=,@+-]+", word) else word


def command_line(argv: t.Iterable[str]) -> str:
    """``ExecStart=`` of the unit: quoted as systemd reads it back, and not as a shell does."""
    # In a command line, unlike in Environment=, a dollar sign starts a variable.
    return " ".join(quote(word).replace("$", "$$") for word in argv)


def environment_lines(environment: t.Mapping[str, str]) -> list[str]:
    """``Environment=`` of the unit, a line each, quoted as systemd reads it back."""
    return [quote(f"{name}={value}") for name, value in environment.items()]


def service_settings(request: Request) -> dict[str, str | list[str]]:
    """The ``[Service]`` section, without command line, environment, user and group. It is hardened as far as GPUs allow (systemd.exec(5)).

    Left out with reason: PrivateDevices, DeviceAllow and ProtectClock (which implies DeviceAllow) take the GPUs away; PrivateUsers takes the group
    that may open them; MemoryDenyWriteExecute forbids what Triton, torch and CUDA compile at run time; SystemCallFilter=@system-service
    lacks pidfd_getfd, by which torch and NCCL hand GPU memory to each other; ProtectProc needs a mount that guests refuse.
    """
    settings: dict[str, str | list[str]] = {
        "Type": "exec",
        "Restart": "on-failure",
        "RestartSec": "5",
        # Engines have processes of their own, which hold GPU memory; none may outlive the unit.
        "KillMode": "control-group",
        "TimeoutStopSec": "60",
        # What the processes of a user that runs nothing else leave in /dev/shm goes with them.
        "RemoveIPC": "yes",
        "LimitMEMLOCK": "infinity",
        "LimitNOFILE": "65536",
        # The core of a process that maps hundreds of gigabytes takes minutes to write, and keeps the GPU meanwhile.
        "LimitCORE": "0",
        "UMask": "0077",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        # Compiled kernels and other caches lie in the state directory, which is the user's home, and in /tmp; /dev/shm stays writable.
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "ProtectKernelModules": "yes",
        "ProtectKernelLogs": "yes",
        "RestrictNamespaces": "yes",
        "RestrictRealtime": "yes",
        "RestrictSUIDSGID": "yes",
        "LockPersonality": "yes",
        "SystemCallArchitectures": "native",
    }
    if request.open_devices:
        # For an engine that does not open the GPUs: the manager opens them, so that they are in use while it runs and
        # a node that cannot be opened stops the start (systemd 253, systemd.service(5)).
        settings["OpenFile"] = list(request.devices)
    return settings


def unit_settings() -> dict[str, str]:
    """The ``[Unit]`` section's limit: a server that cannot start must end up failed, not start for ever."""
    return {"StartLimitIntervalSec": "300", "StartLimitBurst": "5"}
