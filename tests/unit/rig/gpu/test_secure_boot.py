# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot on the rig: the firmware's variables, the key list, and modules that are kept out by a real signature check."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gpu import firmware, mokutil, signature
from gpu.kernel import Kernel

SIGN_FILE = Path(__file__).parents[4] / "molecule/rig/gpu/package/sign-file"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs: ours and another's, as openssl makes them."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "other"):
        line = ["openssl", "req", "-new", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", f"/CN={name}/"]
        files = ["-keyout", folder / f"{name}.key", "-outform", "DER", "-out", folder / f"{name}.der"]
        subprocess.run([*line, *files], check=True, capture_output=True)
    return folder


@pytest.fixture
def module(keys: Path, tmp_path: Path) -> Path:
    """A module's file, signed with our key."""
    path = tmp_path / "nvidia.ko"
    path.write_bytes(b"\x7fELF and so on")
    subprocess.run(["sh", SIGN_FILE, "sha256", keys / "ours.key", keys / "ours.der", path], check=True)
    return path


def enrol(machine: Path, certificate: Path) -> None:
    firmware.request(machine, certificate.read_bytes())
    firmware.enrol(machine)


def test_a_machine_begins_with_secure_boot_off_and_keeps_what_is_set(machine: Path) -> None:
    variable = machine / "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    assert variable.read_bytes() == b"\x06\0\0\0\0"
    firmware.main(["secure-boot", str(machine), "on"])
    assert variable.read_bytes() == b"\x06\0\0\0\1"
    firmware.power_on(machine)
    assert firmware.secure_boot(machine)


def test_the_file_as_it_was_is_in_the_signed_one(module: Path) -> None:
    parts = signature.split(module.read_bytes())
    assert parts is not None and parts[0] == b"\x7fELF and so on"
    assert signature.split(b"\x7fELF and so on") is None


def test_only_a_key_on_the_list_lets_a_module_in(machine: Path, module: Path, keys: Path) -> None:
    kernel = Kernel(machine)
    firmware.set_secure_boot(machine, True)
    enrol(machine, keys / "other.der")
    with pytest.raises(OSError, match="Key was rejected by service"):
        kernel.admit(module)
    enrol(machine, keys / "ours.der")
    kernel.admit(module)
    module.write_bytes(b"x" + module.read_bytes())
    with pytest.raises(OSError, match="Key was rejected by service"):
        kernel.admit(module)
    firmware.set_secure_boot(machine, False)
    kernel.admit(module)


def test_the_kernels_own_modules_are_let_in(machine: Path) -> None:
    firmware.set_secure_boot(machine, True)
    Kernel(machine).admit(Path("/lib/modules/6.17.4-1-pve/kernel/drivers/vfio/vfio-pci.ko"))


def test_a_key_is_asked_for_and_then_confirmed(
    machine: Path, keys: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = str(keys / "ours.der")
    assert mokutil.main(["--test-key", certificate], machine) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("word\nword\n"))
    assert mokutil.main(["--import", certificate], machine) == 0
    assert mokutil.main(["--test-key", certificate], machine) == 1
    firmware.main(["enrol", str(machine)])
    assert mokutil.main(["--test-key", certificate], machine) == 1
    said = capsys.readouterr().out
    assert f"{certificate} is not enrolled\n" in said
    assert f"{certificate} is already in the enrollment request\n" in said
    assert said.endswith(f"1 enrolled\n{certificate} is already enrolled\n")


@pytest.mark.parametrize("arguments", [[], ["--bogus"], ["--test-key"], ["--test-key", "/nowhere"]])
def test_mokutil_refuses(machine: Path, arguments: list[str]) -> None:
    assert mokutil.main(arguments, machine) == 255


def test_state(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    firmware.set_secure_boot(machine, True)
    assert mokutil.main(["--sb-state"], machine) == 0
    assert capsys.readouterr().out == "SecureBoot enabled\n"
