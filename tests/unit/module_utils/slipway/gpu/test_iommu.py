# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import iommu
from ansible.module_utils.slipway.gpu.tree import Tree


@pytest.mark.parametrize(
    ("units", "group", "domain", "mode"),
    [
        ([], None, None, "off"),
        (["ivhd0"], 40, "identity", "passthrough"),
        (["dmar0"], 40, "DMA", "translated"),
        (["dmar0"], 40, "DMA-FQ", "translated"),
        # None of these says that traffic goes through untouched.
        (["dmar0"], 40, "unmanaged", None),
        (["dmar0"], 40, None, None),
        (["dmar0"], None, None, None),
        (None, None, None, None),
    ],
)
def test_the_mode_of_a_gpu(units: list[str] | None, group: int | None, domain: str | None, mode: str | None) -> None:
    assert iommu.mode(units, group, domain) == mode


def test_the_mode_of_all() -> None:
    assert iommu.overall(["off", "off"]) == "off"
    assert iommu.overall(["passthrough", "off"]) == "passthrough"
    assert iommu.overall(["passthrough", None]) is None
    assert iommu.overall(["translated", None]) == "translated"
    assert iommu.overall([]) is None


def test_a_kernel_without_the_class_has_no_iommu(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert iommu.units(tree) is None
    (tmp_path / "sys/class").mkdir(parents=True)
    assert iommu.units(tree) == []
    (tmp_path / "sys/class/iommu").write_text("a file, which cannot be listed")
    assert iommu.units(tree) is None
    (tmp_path / "sys/class/iommu").unlink()
    (tmp_path / "sys/class/iommu/dmar0").mkdir(parents=True)
    assert iommu.units(tree) == ["dmar0"]
