# SPDX-License-Identifier: GPL-3.0-or-later
"""GGUF files by their headers, whole, torn and made up, and what llama.cpp makes of them."""

from __future__ import annotations

import struct
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.model import gguf, llamacpp, server

VALUES: dict[str, t.Any] = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "llama.block_count": 30,
    "llama.context_length": 8192,
    "llama.embedding_length": 576,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["a", "b"],
}
# Q4_1: blocks of 32 numbers in 20 bytes.
TENSORS = [("token_embd.weight", (64, 10), 3, 0), ("output_norm.weight", (64,), 0, 416)]
BYTES = 416 + 256


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def entry(value: t.Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        kind, items = (
            (8, [text(one) for one in value])
            if isinstance(value[0], str)
            else (4, [struct.pack("<I", one) for one in value])
        )
        return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(items)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    return struct.pack("<II", 4, value)


def made(values: dict[str, t.Any] = VALUES, tensors: t.Any = TENSORS, data: int = BYTES, version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    head += b"".join(text(key) + entry(value) for key, value in values.items())
    for name, shape, kind, offset in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
    return head + bytes(-len(head) % 32) + bytes(data)


def read(tmp_path: Path, content: bytes) -> gguf.Header:
    (tmp_path / "m.gguf").write_bytes(content)
    return gguf.read_header(tmp_path / "m.gguf")


def test_a_whole_file(tmp_path: Path) -> None:
    found = read(tmp_path, made())
    assert (found.version, found.architecture, found.tensors, found.tensor_bytes) == (3, "llama", 2, BYTES)
    assert (found.number("context_length"), found.number("nothing"), found.arrays) == (
        8192,
        0,
        {"tokenizer.ggml.tokens": 2},
    )


def test_every_cut_is_a_torn_file(tmp_path: Path) -> None:
    whole = made()
    for length in range(4, len(whole), 7):
        with pytest.raises(SlipwayError, match="it is torn"):
            read(tmp_path, whole[:length])
    with pytest.raises(SlipwayError, match="its tensors end at byte"):
        read(tmp_path, whole[:-1])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it does not begin with GGUF"),
        (b"PK\x03\x04" + bytes(100), "it does not begin with GGUF"),
        (made(version=1), "it is GGUF of version 1"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0),
            "its header would have 1152921504606846976 tensors: it is damaged",
        ),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**50), "a text of 1125899906842624 bytes"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("key") + struct.pack("<I", 77), "a value of type 77"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("key") + struct.pack("<IIQ", 9, 77, 1), "a list of type 77"),
        (made(tensors=[("odd", (33,), 3, 0)]), "has 33 elements, which are no whole blocks of 32"),
        (made({"general.alignment": 0}), "an alignment of 0"),
    ],
)
def test_what_is_no_gguf(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(SlipwayError, match=words):
        read(tmp_path, content)


def test_types_from_after_this_was_written_pass(tmp_path: Path) -> None:
    assert read(tmp_path, made(tensors=[("new", (64,), 99, 0)])).tensors == 1


class Machine:
    """A model, a library that knows two architectures, and so much memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = folder / "m.gguf"
        self.model.write_bytes(made())
        (folder / "site/xllamacpp").mkdir(parents=True)
        (folder / "site/xllamacpp/x.abi3.so").write_bytes(b"\0llama\0glm-dsa\0")
        (folder / "proc").mkdir()
        (folder / "proc/meminfo").write_text("MemTotal:        8388608 kB\n")

    def __call__(self, memory_mib: int | None = None, **declared: t.Any) -> dict[str, t.Any]:
        asked = server.of("llamacpp", "1", {"context_length": 2048, "arguments": {"parallel": 2}, **declared})
        return llamacpp.check(self.model, self.folder / "site", asked, memory_mib, self.folder)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def found(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    return [(one.id, one.severity) for one in result["findings"]]


def test_llama_cpp(machine: Machine) -> None:
    done = machine()
    assert found(done) == []
    assert (done["model"]["type"], done["model"]["format"], done["model"]["layers"]) == ("llama", "GGUF 3", 30)
    # 30 layers x 3 heads x (64 + 64) x 2 bytes
    assert (done["fit"]["kv"]["bytes_per_token"], done["fit"]["memory_mib"], done["fit"]["device"]) == (
        23040,
        8192,
        "cpu",
    )


def test_llama_cpp_of_another_architecture(machine: Machine) -> None:
    machine.model.write_bytes(made({"general.architecture": "llama9", "tokenizer.ggml.model": "gpt2"}))
    assert ("MODEL_ARCHITECTURE_UNKNOWN", "fail") in found(machine())
    machine.model.write_bytes(made({"general.name": "x"}))
    assert ("TOKENIZER_MISSING", "fail") in found(machine())
    (machine.folder / "site/xllamacpp/x.abi3.so").unlink()
    machine.model.write_bytes(made())
    assert found(machine()) == [("MODEL_ARCHITECTURE_UNKNOWN", "unknown")]


def test_llama_cpp_context_and_memory(machine: Machine) -> None:
    assert found(machine(context_length=8193)) == [("CONTEXT_TOO_LONG", "fail")]
    # Two requests of 2048 tokens take 90 MiB.
    assert found(machine(memory_mib=95)) == []
    assert found(machine(memory_mib=80)) == [("MEMORY_TOO_SMALL", "fail")]
    (machine.folder / "sys/fs/cgroup").mkdir(parents=True)
    (machine.folder / "sys/fs/cgroup/memory.max").write_text(f"{80 * 1024 * 1024}\n")
    assert found(machine()) == [("MEMORY_TOO_SMALL", "fail")], "a container has what its control group lets it"
    (machine.folder / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert machine()["fit"]["memory_mib"] == 8192


def test_llama_cpp_with_other_numbers_in_each_layer(machine: Machine) -> None:
    values = {key: value for key, value in VALUES.items() if not key.endswith("head_count_kv")}
    machine.model.write_bytes(made({**values, "llama.attention.head_count_kv": [3, 4]}))
    assert found(machine()) == [("MEMORY_TOO_SMALL", "unknown")]


def test_llama_cpp_of_a_torn_file(machine: Machine) -> None:
    machine.model.write_bytes(made()[:-1])
    done = machine()
    assert (found(done), done["fit"]) == ([("MODEL_FILE_DAMAGED", "fail")], {})
