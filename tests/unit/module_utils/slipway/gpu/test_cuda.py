# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe against a libcuda made here, which fails, hangs or dies where the environment says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import cuda, cuda_codes

SOURCE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int at(const char *call) {
    char *fail = getenv("STUB_FAIL"), *hang = getenv("STUB_HANG"), *crash = getenv("STUB_CRASH");
    size_t n = strlen(call);
    printf("libcuda says %s\n", call); fflush(stdout);
    if (hang && !strcmp(hang, call)) {
        fclose(fopen(getenv("STUB_HANGING"), "w"));
        for (;;) pause();
    }
    if (crash && !strcmp(crash, call)) raise(SIGSEGV);
    return fail && !strncmp(fail, call, n) && fail[n] == ':' ? atoi(fail + n + 1) : 0;
}
static int count(void) { char *n = getenv("STUB_DEVICES"); return n ? atoi(n) : 2; }
/* Another order than that of the bus, unless it is asked for: as CUDA does. */
static int index_of(int device) {
    char *order = getenv("CUDA_DEVICE_ORDER");
    return order && !strcmp(order, "PCI_BUS_ID") ? device : count() - 1 - device;
}
int cuInit(unsigned flags) { return at("cuInit"); }
int cuDriverGetVersion(int *v) { *v = 13020; return at("cuDriverGetVersion"); }
int cuDeviceGetCount(int *n) { *n = count(); return at("cuDeviceGetCount"); }
int cuDeviceGet(int *d, int ordinal) { *d = ordinal; return at("cuDeviceGet"); }
int cuDeviceGetPCIBusId(char *s, int n, int d) {
    snprintf(s, n, "0000:%02X:00.0", 0xC6 + index_of(d));
    return at("cuDeviceGetPCIBusId");
}
int cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "Card %d", index_of(d)); return at("cuDeviceGetName"); }
int cuDeviceTotalMem_v2(size_t *b, int d) { *b = 97887ull << 20; return at("cuDeviceTotalMem_v2"); }
int cuDeviceGetAttribute(int *v, int a, int d) {
    *v = a == 75 ? 12 : a == 76 ? 0 : -1;
    return at("cuDeviceGetAttribute");
}
int cuGetErrorName(int code, const char **name) { *name = "CUDA_ERROR_OF_THE_LIBRARY"; return 0; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("libcuda")
    (folder / "stub.c").write_text(SOURCE)
    target = folder / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", target, folder / "stub.c"], check=True)
    return str(target)


def test_devices_come_in_the_order_of_the_bus(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert cuda.probe(10, library) == {
        "result": 0,
        "name": "CUDA_SUCCESS",
        "call": "cuDeviceGetAttribute",
        "driver_version": "13.2",
        "devices": 2,
        "gpus": [
            {"bus_id": "0000:c6:00.0", "name": "Card 0", "memory_mib": 97887, "sm": 120},
            {"bus_id": "0000:c7:00.0", "name": "Card 1", "memory_mib": 97887, "sm": 120},
        ],
        "visible_devices": None,
        "hung": False,
        "error": "",
    }


def test_the_library_stays_out_of_this_process_and_its_output(library: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cuda.probe(10, library)["result"] == 0
    assert library not in Path("/proc/self/maps").read_text()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("code", [code for code in cuda_codes.CODES if code != 0])
def test_each_code_of_cuinit_is_named(code: int, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_FAIL", f"cuInit:{code}")
    facts = cuda.probe(10, library)
    name = {3: "CUDA_ERROR_NOT_INITIALIZED", 919: "CUDA_ERROR_OF_THE_LIBRARY", 999: "CUDA_ERROR_UNKNOWN"}.get(
        code, cuda_codes.CODES[code].name
    )
    assert (facts["result"], facts["name"], facts["call"], facts["devices"]) == (code, name, "cuInit", None)
    assert facts["error"] == f"cuInit returned {code} ({name})"


def test_a_later_call_that_fails_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_FAIL", "cuDeviceGetName:214")
    facts = cuda.probe(10, library)
    assert facts["error"] == "cuDeviceGetName returned 214 (CUDA_ERROR_ECC_UNCORRECTABLE)"
    assert (facts["devices"], facts["gpus"]) == (2, [])


def test_a_version_that_is_not_told_stops_nothing(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_FAIL", "cuDriverGetVersion:999")
    facts = cuda.probe(10, library)
    assert (facts["result"], facts["driver_version"], facts["error"], facts["devices"]) == (0, None, "", 2)


@pytest.mark.parametrize("call", ["cuInit", "cuDeviceGetCount"])
def test_a_call_that_never_returns_is_named(
    call: str, library: str, monkeypatch: pytest.MonkeyPatch, hanging: Path
) -> None:
    monkeypatch.setenv("STUB_HANG", call)
    monkeypatch.setenv("STUB_HANGING", str(hanging))
    facts = cuda.probe(60, library)
    assert (facts["hung"], facts["result"], facts["name"]) == (True, None, None)
    assert facts["error"] == f"{call} did not return within 60 seconds"


def test_a_call_that_crashes_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_CRASH", "cuInit")
    facts = cuda.probe(10, library)
    assert (facts["hung"], facts["result"], facts["error"]) == (False, None, "the process died in cuInit: SIGSEGV")


def test_a_library_that_is_not_there_or_is_another(tmp_path: Path) -> None:
    facts = cuda.probe(10, str(tmp_path / "libcuda.so.1"))
    assert (facts["result"], facts["call"]) == (None, None)
    assert facts["error"].startswith(f"{tmp_path}/libcuda.so.1 cannot be loaded: ")
    facts = cuda.probe(10, "libc.so.6")
    assert (facts["result"], facts["error"]) == (None, "libc.so.6 has no cuInit")


def test_hidden_devices_are_told(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert cuda.probe(10, library)["visible_devices"] == ""
