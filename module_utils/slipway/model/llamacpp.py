# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether llama.cpp will load a GGUF file on this machine: the file, its architecture, its context, the memory. Reads, never writes."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..errors import SlipwayError
from ..findings import Finding, finding
from . import divide, fit, gguf
from .kv import Cache
from .machine import memory_mib as machine_memory_mib
from .server import Server

KV_BYTES = 2  # F16, its default; no other is declared here
PIECE = 1 << 24


def check(path: Path, site: Path, server: Server, memory_mib: int | None, root: Path = Path("/")) -> dict[str, t.Any]:
    """``model``, ``fit`` and ``findings`` of the module's result. Raises ``OSError``. ``memory_mib`` is what the machine may use, read from ``root`` where not given."""
    try:
        header = gguf.read_header(path)
    except SlipwayError as error:
        damaged = finding("MODEL_FILE_DAMAGED", path.name, str(error))
        return {"model": {}, "fit": {}, "findings": [damaged]}
    libraries = sorted(site.glob("xllamacpp/**/*.so"))
    found = _architecture(header, libraries, server)
    found += divide.context(server.context_length, header.number("context_length"), server.arguments, path.name)
    parallel = int(server.arguments.get("parallel") or 1)
    table = fit.on_cpu(
        header.tensor_bytes,
        cache(header),
        memory_mib or machine_memory_mib(root),
        server.context_length,
        header.number("context_length"),
        parallel,
    )
    found += fit.findings(table, path.name)
    words = str(header.values.get("tokenizer.ggml.model") or "")
    told = {
        "path": str(path),
        "engine": f"{server.engine} {server.version}",
        "type": header.architecture,
        "architecture": header.architecture,
        "name": str(header.values.get("general.name") or ""),
        "format": f"GGUF {header.version}",
        "layers": header.number("block_count"),
        "context_length": header.number("context_length") or None,
        "tensors": header.tensors,
        "weights_bytes": header.tensor_bytes,
        "tokenizer": {"class": words},
        "asked": {"architectures": ", ".join(one.name for one in libraries)},
    }
    if not words:
        found.append(finding("TOKENIZER_MISSING", path.name, "its header has no tokenizer.ggml.model"))
    return {"model": told, "fit": table.as_dict(), "findings": found}


def _architecture(header: gguf.Header, libraries: t.Sequence[Path], server: Server) -> list[Finding]:
    """llama.cpp keeps the names of its architectures as texts in its library (llama-arch.cpp), where each ends with a zero byte."""
    name = header.architecture
    if not name:
        return [finding("MODEL_ARCHITECTURE_UNKNOWN", "gguf", "the file's header has no general.architecture")]
    if not libraries:
        return [finding("MODEL_ARCHITECTURE_UNKNOWN", name, "no library of xllamacpp was found", "unknown")]
    if any(_holds(library, name.encode() + b"\0") for library in libraries):
        return []
    detail = f"{server.engine} {server.version}: the name is in none of {', '.join(one.name for one in libraries)}"
    return [finding("MODEL_ARCHITECTURE_UNKNOWN", name, detail)]


def _holds(path: Path, text: bytes) -> bool:
    with path.open("rb") as file:
        tail = b""
        while piece := file.read(PIECE):
            if text in tail + piece:
                return True
            tail = piece[-len(text) :]
    return False


def cache(header: gguf.Header) -> Cache | None:
    """What a token takes, all layers; ``None`` where the header has the numbers of each layer apart, or does not tell them."""
    layers, heads = header.number("block_count"), header.number("attention.head_count")
    kv_heads = header.number("attention.head_count_kv") or heads
    if not layers or not heads or "attention.head_count_kv" in {key.partition(".")[2] for key in header.arrays}:
        return None
    width = header.number("embedding_length") // heads
    key, value = header.number("attention.key_length") or width, header.number("attention.value_length") or width
    how = f"{layers} layers x {kv_heads} heads x ({key} + {value}) x {KV_BYTES} bytes"
    form = "gqa" if kv_heads < heads else "mha"
    return Cache(form, "f16", layers * kv_heads * (key + value) * KV_BYTES, how)
