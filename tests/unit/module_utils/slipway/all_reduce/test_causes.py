# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cause counts where several could be named, and how an error is shortened. The texts are met in the module's own tests."""

from __future__ import annotations

from ansible.module_utils.slipway.all_reduce import causes

SHM = "Error while creating shared memory segment /dev/shm/nccl-EoOvZr (size 7340384)"


def test_its_own_words_come_before_those_of_others() -> None:
    found = causes.find("DistBackendError: Duplicate GPU detected", [], [SHM], 1)
    assert "two ranks were given one GPU" in found.clause


def test_its_last_lines_count_as_its_own() -> None:
    assert "/dev/shm is too small" in causes.find("", [SHM, "at the end"], [], -6).clause


def test_warnings_of_others_come_before_the_class_of_the_error() -> None:
    error = "ncclUnhandledCudaError: Call to CUDA function failed."
    assert "/dev/shm is too small" in causes.find(error, [], [SHM], 1).clause
    assert "see Xid lines" in causes.find(error, [], [], 1).clause


def test_who_lost_another_rank_is_no_cause() -> None:
    for error in (
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:30411",
    ):
        assert causes.find(error, [SHM], [], 1) == causes.Cause(causes.FOLLOWS, "")


def test_signals_and_what_has_no_cause() -> None:
    assert "ran full" in causes.find("", [], [], -7).clause
    assert causes.find("", [], [], -2) == causes.Cause(causes.FAILED, "")
    assert causes.find("ValueError: something else", [], [], 1) == causes.Cause(causes.FAILED, "")


def test_a_missing_module_is_not_a_failure() -> None:
    assert causes.find("ModuleNotFoundError: No module named 'torch'", [], [], 1).kind == causes.MISSING
    assert causes.find("ModuleNotFoundError: No module named 'numpy'", [], [], 1).kind == causes.FAILED


def test_an_error_is_shortened_to_what_nccl_said_last() -> None:
    error = (
        "DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:268, unhandled system error (run with "
        f"NCCL_DEBUG=INFO for details), NCCL version 2.21.5\nncclSystemError: System call failed. \nLast error:\n{SHM}"
    )
    assert causes.short(error) == f"ncclSystemError: {SHM}"
    assert causes.short("RuntimeError:  many\n words") == "RuntimeError: many words"
    assert len(causes.short("x" * 5000)) == 400
