# SPDX-License-Identifier: GPL-3.0-or-later
"""Safetensors files as bytes, whole or with any header."""

from __future__ import annotations

import json
import struct
import typing as t


def container(header: t.Any, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with this header (a table, or its very bytes) and these bytes after it; ``length`` for one that lies of its header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensors(**sizes: int) -> bytes:
    """A sound file of tensors of bytes, by name and size; each byte is the tensor's number."""
    header, data = {}, b""
    for number, (name, size) in enumerate(sizes.items()):
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [len(data), len(data) + size]}
        data += bytes([number]) * size
    return container(header, data)
