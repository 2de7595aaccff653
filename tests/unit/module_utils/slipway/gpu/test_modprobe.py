# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.module_utils.slipway.gpu import modprobe


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (["options nvidia_uvm uvm_disable_hmm=1\n"], {"uvm_disable_hmm": "1"}),
        (["options nvidia-uvm uvm_disable_hmm=1\n"], {"uvm_disable_hmm": "1"}),
        (["# options nvidia_uvm uvm_disable_hmm=1\n"], {}),
        (["options nvidia uvm_disable_hmm=1\n"], {}),
        (["options nvidia_uvm \\\n  uvm_disable_hmm=1\n"], {"uvm_disable_hmm": "1"}),
        (["# the end \\\noptions nvidia_uvm uvm_disable_hmm=1\n"], {}),
        (["options\tnvidia_uvm\tuvm_disable_hmm\n"], {"uvm_disable_hmm": None}),
        (['options nvidia_uvm uvm_disable_hmm="1"\n'], {"uvm_disable_hmm": "1"}),
        (
            ["options nvidia_uvm uvm_disable_hmm=1 a=1\n", "options nvidia_uvm a=2\n"],
            {"uvm_disable_hmm": "1", "a": "2"},
        ),
        (
            ["options nvidia_uvm uvm_disable_hmm=1\n", "options nvidia_uvm uvm_disable_hmm=0\n"],
            {"uvm_disable_hmm": "0"},
        ),
        ([" #options nvidia_uvm uvm_disable_hmm=1\n"], {}),
        (["blacklist nvidia_uvm\ninstall nvidia_uvm /bin/true\noptions nvidia_uvm\n"], {}),
    ],
)
def test_options_add_up_and_the_last_value_stands(texts: list[str], options: dict[str, str | None]) -> None:
    assert modprobe.module_options(texts, "nvidia_uvm") == options


def test_the_kernel_command_line_comes_last() -> None:
    cmdline = "ro nvidia-uvm.uvm_disable_hmm=0 nvidia.uvm_disable_hmm=7"
    assert modprobe.module_options(["options nvidia_uvm uvm_disable_hmm=1\n"], "nvidia-uvm", cmdline) == {
        "uvm_disable_hmm": "0"
    }


def test_files_are_read_by_name_and_etc_hides_what_packages_bring() -> None:
    folders = {
        "/lib/modprobe.d": ["a.conf", "z.conf"],
        "/etc/modprobe.d": ["m.conf", "z.conf", "README", ".hidden.conf", "old.conf.bak"],
    }
    assert modprobe.reading_order(folders) == [
        "/lib/modprobe.d/a.conf",
        "/etc/modprobe.d/m.conf",
        "/etc/modprobe.d/z.conf",
    ]
