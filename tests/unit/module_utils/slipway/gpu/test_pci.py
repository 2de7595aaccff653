# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.module_utils.slipway.gpu import pci

MEMORY, PORTS, NONE = "0x14220c", "0x40101", "0x0 0x0 0x0"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # Registers with a 64-bit address take two numbers: BAR1 is region 2 (RTX PRO 6000), else region 1.
        ([f"0x7b000000000 0x7b003ffffff {MEMORY}", NONE, f"0x76000000000 0x77fffffffff {MEMORY}", NONE], (2, 131072)),
        ([f"0xa0000000 0xa0ffffff {MEMORY}", f"0x80000000 0x8fffffff {MEMORY}", NONE], (1, 256)),
        ([f"0x3000 0x307f {PORTS}", f"0xa0000000 0xa0ffffff {MEMORY}", NONE, f"0x0 0x1ffffff {MEMORY}"], (3, 32)),
        ([f"0xa0000000 0xa0ffffff {MEMORY}", NONE], None),
        # The seventh line is the option ROM.
        ([f"0x0 0xffffff {MEMORY}", *[NONE] * 5, f"0x0 0x7ffff {MEMORY}"], None),
        (["x"], None),
    ],
)
def test_bar1_is_the_second_memory_region(lines: list[str], expected: tuple[int, int] | None) -> None:
    assert pci.bar1("\n".join(lines)) == expected


def test_no_regions() -> None:
    assert pci.bar1(None) is None


def test_the_sizes_that_a_region_can_have() -> None:
    assert pci.resizable_mib("0000000000000140") == [64, 256]
    assert pci.resizable_mib("0") == []
    assert pci.resizable_mib(None) is None
    assert pci.resizable_mib("x") is None
