# SPDX-License-Identifier: GPL-3.0-or-later
"""Safetensors headers: what is read, and what is wrong with a file in words."""

from __future__ import annotations

import struct
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.model.safetensors import Header, Tensor, read_header
from weights import container

F32 = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}


def entry(dtype: str, shape: t.Any, offsets: t.Any) -> dict[str, t.Any]:
    """One tensor of a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def write(path: Path, content: bytes) -> Path:
    """The file."""
    path.write_bytes(content)
    return path


def test_reads_tensors_and_metadata(tmp_path: Path) -> None:
    content = container({"__metadata__": {"format": "pt"}, "b": entry("BF16", [4], [16, 24]), "a": F32}, bytes(24))
    header = read_header(write(tmp_path / "model.safetensors", content))
    expected = {"a": Tensor("F32", (2, 2), (0, 16)), "b": Tensor("BF16", (4,), (16, 24))}
    assert header == Header(expected, {"format": "pt"}, len(content) - 8 - 24, 24)
    assert header.tensors["b"].size_bytes == 8


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("F4", [3, 2], 3),
        ("F6_E2M3", [4], 3),
        ("F6_E3M2", [8], 6),
        ("F8_E8M0", [5], 5),
        ("F8_E4M3", [5], 5),
        ("F8_E5M2", [5], 5),
        ("F8_E4M3FNUZ", [1], 1),
        ("F8_E5M2FNUZ", [1], 1),
        ("BOOL", [7], 7),
        ("F16", [], 2),
        ("C64", [2], 16),
        ("U64", [2], 16),
        ("I32", [0, 5], 0),
    ],
)
def test_sizes_of_types(tmp_path: Path, dtype: str, shape: list[int], size: int) -> None:
    content = container({"a": entry(dtype, shape, [0, size])}, bytes(size))
    assert read_header(write(tmp_path / "x", content)).data_bytes == size
    with pytest.raises(SlipwayError, match=f"takes {size} bytes, and its offsets are 0 and {size + 1}"):
        read_header(write(tmp_path / "x", container({"a": entry(dtype, shape, [0, size + 1])}, bytes(size + 1))))


def test_a_file_without_tensors_and_one_with_space_after_its_header(tmp_path: Path) -> None:
    assert read_header(write(tmp_path / "x", container(b"{}"))).tensors == {}
    assert read_header(write(tmp_path / "x", container(b'{"__metadata__":null}   '))).metadata == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is torn: it has 0 bytes, too few to say how long its header is"),
        (b"1234567", "it is torn: it has 7 bytes, too few to say how long its header is"),
        (container(b"{}", length=3), "it is torn: it ends after 2 of the 3 bytes of its header"),
        (b"version https://git-lfs.github.com/spec/v1", "it is no safetensors file: its header would have"),
        (
            struct.pack("<Q", 100_000_001),
            "it is no safetensors file: its header would have 100000001 bytes, and 100000000",
        ),
        (container({"a": F32}, bytes(15)), "it is torn: its tensors take 16 bytes, and 15 follow its header"),
        (container({"a": F32}, bytes(18)), "2 bytes follow the last of its tensors, which belong to none"),
        (container(b"\xff{}"), "its header is no text"),
        (container(b"{} x"), "its header is no JSON (Extra data"),
        (container(b"[" * 100_000), "its header is no JSON"),
        (container(b""), "its header is no JSON"),
        (container([]), "its header is no table of tensors"),
        (container(b'{"a": {"dtype": "U8", "shape": [NaN], "data_offsets": [0, 1]}}', b"1"), "NaN is no number"),
        (container(b'{"a": 1, "a": 2}'), "its header has 'a' twice"),
        (container(b'{"a": {"dtype": "U8", "dtype": "U8"}}'), "its header has 'dtype' twice"),
        (container({"__metadata__": {"format": 1}}), "its header's __metadata__ is no table of texts"),
        (container({"__metadata__": "pt"}), "its header's __metadata__ is no table of texts"),
        (container({"a": 1}), "what its header says of tensor 'a' is no table"),
        (
            container({"a": entry("F12", [1], [0, 1])}, b"1"),
            "tensor 'a' is of type 'F12', which the format does not have",
        ),
        (container({"a": {}}), "tensor 'a' is of type 'None', which the format does not have"),
        (container({"a": entry("U8", [True], [0, 1])}, b"1"), "tensor 'a' no shape and offsets that are whole numbers"),
        (container({"a": entry("U8", [-1], [0, 1])}, b"1"), "tensor 'a' no shape and offsets that are whole numbers"),
        (container({"a": entry("U8", 1, [0, 1])}, b"1"), "tensor 'a' no shape and offsets that are whole numbers"),
        (container({"a": entry("U8", [1], [0])}, b"1"), "tensor 'a' no shape and offsets that are whole numbers"),
        (container({"a": entry("U8", [1], [0, 1.0])}, b"1"), "tensor 'a' no shape and offsets that are whole numbers"),
        (container({"a": entry("F4", [3], [0, 2])}, b"12"), "tensor 'a' of type F4 and shape [3] ends within a byte"),
        (container({"a": entry("U8", [2], [2, 0])}, b"12"), "takes 2 bytes, and its offsets are 2 and 0"),
        (container({"a": entry("U8", [2**32, 2**32], [0, 0])}), "takes 18446744073709551616 bytes"),
        (
            container({"a": entry("U8", [2], [0, 2]), "b": entry("U8", [2], [1, 3])}, b"123"),
            "tensor 'b' begins at byte 1 of the data, where 2 is next: it lies over the one before it",
        ),
        (
            container({"a": entry("U8", [2], [0, 2]), "b": entry("U8", [2], [3, 5])}, b"12345"),
            "tensor 'b' begins at byte 3 of the data, where 2 is next: it leaves a hole before it",
        ),
        (container({"a": entry("U8", [1], [1, 2])}, b"12"), "tensor 'a' begins at byte 1 of the data, where 0 is next"),
    ],
)
def test_what_is_wrong_in_words(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(SlipwayError) as error:
        read_header(write(tmp_path / "model.safetensors", content))
    assert words in str(error.value)


def test_a_file_cut_anywhere_is_torn(tmp_path: Path) -> None:
    content = container({"a": F32, "b": entry("U8", [3], [16, 19])}, bytes(19))
    for size in range(len(content)):
        with pytest.raises(SlipwayError, match=r"^it is torn: "):
            read_header(write(tmp_path / "x", content[:size]))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "x")
