# SPDX-License-Identifier: GPL-3.0-or-later
"""Known faults of inference servers, by what their logs say: data, and how it is read. Pure.

An entry's texts are those of the engines' sources or of the reports that the finding refers to. What only follows from another fault (a rank
that lost its peer, a parent that lost its child) counts where nothing else was said.
"""

from __future__ import annotations

import re
import typing as t

from ..findings import Finding, finding
from . import startup

_OUT_OF_MEMORY = {
    startup.STARTING: "GPU_MEMORY_WEIGHTS",
    startup.CONNECTING: "GPU_MEMORY_WEIGHTS",
    startup.LOADING: "GPU_MEMORY_WEIGHTS",
    startup.ALLOCATING: "GPU_MEMORY_KV",
    startup.COMPILING: "GPU_MEMORY_GRAPHS",
    startup.CAPTURING: "GPU_MEMORY_GRAPHS",
    startup.WARMING: "GPU_MEMORY_GRAPHS",
    startup.READY: "GPU_MEMORY_GRAPHS",
}
# Who asks for so much shared memory on SM120, which has 101376 bytes.
_KERNELS = {
    "106496": "attention over a prompt with the blocks of Hopper: SGLang before 0.5.9 without its patch (sglang#14311)",
    "131072": "prefill attention with blocks of 128, as of images (sglang#27962)",
    "147456": "fused MoE with its default configuration (sglang#28019)",
}


class LogFault(t.NamedTuple):
    """``detail`` is a template over the match's groups; without one it is the line. ``before``: what one of the lines before it must say.

    ``id`` may be a table by the phase in which it was said. ``follows``: it is a consequence.
    """

    id: str | t.Mapping[str, str]
    pattern: str
    detail: str = ""
    before: str = ""
    follows: bool = False


# The more telling before the more general: of one line, the first that fits counts.
FAULTS = (
    LogFault("KERNEL_SHARED_MEMORY", r"OutOfResources: out of resources?: shared memory, Required: (?P<need>\d+), Hardware limit: (?P<limit>\d+)",
             "{need} bytes are asked for, the GPU has {limit}; {kernel}"),
    LogFault("MODEL_TYPE_UNKNOWN", r"model type `(?P<type>[^`]+)` but Transformers does not recognize", "model_type {type}"),
    LogFault("MODEL_TYPE_UNKNOWN", r"^KeyError: '(?P<type>\w+)'", "model_type {type}", before=r"configuration_auto\.py|CONFIG_MAPPING"),
    LogFault("MODEL_TYPE_UNKNOWN", r"Model architectures \[(?P<type>[^]]+)\] (?:are|is) not supported", "the engine has no architecture {type}"),
    LogFault("MODEL_TYPE_UNKNOWN", r"Unknown gguf model_type: (?P<type>\S+)|unknown model architecture: '(?P<arch>[^']+)'", "GGUF of {type}{arch}"),
    LogFault("TOKENIZER_IMPORT", r"ImportError: cannot import name '(?P<name>bytes_to_unicode)'", "{name}"),
    LogFault("CUDNN_TOO_OLD", r"Current Environment: PyTorch (?P<torch>\S+) \| CuDNN (?P<cudnn>[\d.]+)", "cuDNN {cudnn} beside torch {torch}"),
    LogFault("CUDNN_TOO_OLD", r"CuDNN Compatibility Issue Detected"),
    LogFault("ATTENTION_BACKEND_NONE", r"No valid attention backend found.*"),
    LogFault("KERNEL_GPU_UNSUPPORTED", r"attention\.hpp:\d+.*|Unsupported architecture.*|No compiled cutlass_scaled_mm.*"),
    LogFault("SM_NOT_COVERED", r"no kernel image is available.*"),
    LogFault("SAMPLING_NAN", r"probability tensor contains either|NaN in the logits|probability .* `?inf`?"),
    LogFault("FP8_KV_UNSUPPORTED", r"NotImplementedError: .*(?:FP8|fp8).*"),
    LogFault("GPU_IN_USE", r"memory capacity is unbalanced.*|Free memory on device.* less than desired GPU memory utilization.*"),
    LogFault("GPU_MEMORY_KV", r"Not enough memory\. Please try to increase --mem-fraction-static.*|No available memory for the cache blocks.*"
             r"|larger than the (?:maximum number of tokens that can be stored in|available) KV cache.*|failed to allocate (?:buffer for )?kv cache.*"),
    LogFault("GPU_MEMORY_GRAPHS", r"Capture (?:cuda|CUDA) graph failed: (?P<why>.*memory.*)", "{why}"),
    LogFault("NCCL_FAILED", r"Failed to CUDA calloc.*"),
    LogFault(_OUT_OF_MEMORY, r"OutOfMemoryError: (?P<a>.*)|CUDA out of memory\.? ?(?P<b>.*)|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
             r"|unable to allocate \S+ buffer", "{a}{b}"),
    LogFault("SHM_SHORT", r"[Ee]rror while creating shared memory segment.*|posix_fallocate failed.*|attach.* shared memory segment \S+ \(size 0\).*"
             r"|No space left on device: '/dev/shm.*"),
    LogFault("DISK_FULL", r"No space left on device.*"),
    LogFault("NCCL_HUNG", r"[Ww]atchdog caught collective operation timeout.*"),
    LogFault("NCCL_FAILED", r"ncclRemoteError.*|[Cc]onnection (?:closed|reset) by peer.*", follows=True),
    LogFault("NCCL_FAILED", r"NCCL WARN (?:Cuda failure .*|.*[Ff]ailed.*)|nccl\w+Error.*|ncclInvalid\w+.*"),
    LogFault("NUMA_BIND_REFUSED", r"set(?:ting membind|_mempolicy): .*"),
    LogFault("FLASHINFER_MISMATCH", r"(?P<other>flashinfer-\S+) version \((?P<has>[^)]+)\) does not match flashinfer version \((?P<wants>[^)]+)\)",
             "{other} {has} beside flashinfer {wants}"),
    LogFault("KERNEL_PACKAGE_OLD", r"(?P<name>\S+) is installed with version (?P<has>\S+), which is less than the minimum required version (?P<wants>\S+)\.",
             "{name} {has}, at least {wants} is wanted"),
    LogFault("OPERATOR_MISSING", r"operator (?P<name>\w+::\w+) does not exist", "{name}"),
    LogFault("ABI_MISMATCH", r"(?:ImportError|OSError|RuntimeError): (?P<what>\S+: undefined symbol: \S+)", "{what}"),
    LogFault("PORT_IN_USE", r".*[Aa]ddress already in use.*|Port is already in use.*|\S+ at \d+ is not available in .*"),
    LogFault("FLAG_UNKNOWN", r"error: unrecognized arguments: (?P<flags>.*)", "{flags}"),
    LogFault("FLAG_REFUSED", r"error: argument (?P<what>.*)|error: the following arguments are required: (?P<missing>.*)", "{what}{missing}"),
    LogFault("SERVER_OOM_KILLED", r"killed by the OOM killer|oom-kill"),
    LogFault("GPU_LOST", r"NVRM: Xid \(PCI:(?P<bus>[^)]+)\): (?P<code>\d+)", "Xid {code} of {bus}"),
    LogFault("GPU_LOST", r"GPU is lost.*|fallen off the bus.*|uncorrectable ECC error.*|unspecified launch failure.*"),
    LogFault("KERNEL_FAULT", r"illegal memory access.*|IllegalInstruction.*|illegal instruction was encountered|device-side assert triggered"),
    LogFault("CUDA_INIT_FAILED", r"CUDA unknown error.*|CUDA driver initialization failed.*|Found no NVIDIA driver.*|no CUDA-capable device.*"),
    LogFault("BUILD_TOOL_MISSING", r"Could not find nvcc.*|nvcc: not found|Ninja is required.*|Failed to find C compiler.*"),
    LogFault("SERVER_PATH_DENIED", r"(?:PermissionError|OSError): \[Errno (?:1|13|30)\] (?P<what>.*)", "{what}"),
    LogFault("IMPORT_FAILED", r"^(?:ModuleNotFoundError|ImportError): (?P<what>.*)", "{what}"),
    LogFault("WORKER_DIED", r"Rank \d+ scheduler is dead.*|WorkerProc initialization failed.*|Worker proc \S+ died unexpectedly.*"
             r"|Engine core initialization failed.*|subprocess .* exit code 1\b.*", follows=True),
)  # fmt: skip
_COMPILED = [(re.compile(fault.pattern), fault) for fault in FAULTS]
_BEFORE_LINES = 8
# Engines say so of each model that they could serve and this environment cannot.
_HARMLESS = re.compile(r"Ignore import error when loading|trying port \d+")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)")
_ERROR = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Interrupt|Resources)\b.*|llamacpp-server: Cannot start: .*)")


def find(unit: str, engine: str | None, texts: t.Sequence[str]) -> list[Finding]:
    """The faults that a log tells of, each once, causes before consequences and in the order of the log. ``texts``: its lines.

    Without an ``engine`` no phase is known, and memory that ran out is that of the weights.
    """
    causes: dict[tuple[str, str], Finding] = {}
    follows: dict[tuple[str, str], Finding] = {}
    phase = startup.STARTING
    said: list[str] = []
    for text in texts:
        rank, rest = startup.split(text)
        told = startup.sign(engine, rest) if engine else None
        phase = told[0] if told and startup.first(rank) else phase
        said = [*said[-_BEFORE_LINES:], rest]
        match = _match(rest, said)
        if match:
            found, fault = match
            made = finding(fault.id if isinstance(fault.id, str) else fault.id[phase], unit, _detail(found, fault))
            (follows if fault.follows else causes).setdefault((made.id, fault.pattern), made)
    if not causes and any(_TRACEBACK.search(text) for text in texts):
        # It said why, in words that are not known here: so it did not die without a word.
        follows = {key: made for key, made in follows.items() if key[0] != "WORKER_DIED"}
    return [*causes.values(), *follows.values()]


def last_error(texts: t.Sequence[str]) -> str:
    """The last line that looks like an error's own, or the last line at all; empty for an empty log."""
    rests = [startup.split(text)[1].strip() for text in texts]
    errors = [rest for rest in rests if _ERROR.match(rest)]
    return next(iter(errors[-1:] or [rest for rest in rests if rest][-1:]), "")[:300]


def _match(rest: str, said: t.Sequence[str]) -> tuple[re.Match[str], LogFault] | None:
    if _HARMLESS.search(rest):
        return None
    for pattern, fault in _COMPILED:
        found = pattern.search(rest)
        if found and (not fault.before or any(re.search(fault.before, line) for line in said[:-1])):
            return found, fault
    return None


def _detail(found: re.Match[str], fault: LogFault) -> str:
    if not fault.detail:
        return found[0].strip()[:300]
    groups = {name: value or "" for name, value in found.groupdict().items()}
    kernel = _KERNELS.get(groups.get("need", ""), "which kernel is in the traceback")
    return fault.detail.format(**groups, kernel=kernel).strip()[:300]
