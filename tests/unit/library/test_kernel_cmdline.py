# SPDX-License-Identifier: GPL-3.0-or-later
"""A host below a folder, with the boot loaders' tools as scripts on PATH that write down that they ran."""

from __future__ import annotations

import functools
import stat
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.slipway import errors, files
from ansible.modules import kernel_cmdline

RunModule = t.Callable[..., dict[str, t.Any]]
GRUB_FILE = """\
# Mine: GRUB_CMDLINE_LINUX
GRUB_DEFAULT=0
GRUB_CMDLINE_LINUX_DEFAULT="quiet console=tty0 console=ttyS0,115200 dyndbg=\\"file a.c +p\\" intel_iommu=on"
GRUB_CMDLINE_LINUX="root=ZFS=rpool/ROOT/pve-1 boot=zfs"
"""
BY_GRUB = "BOOT_IMAGE=/vmlinuz-6.8 root=ZFS=rpool/ROOT/pve-1 ro boot=zfs quiet console=tty0"
BY_SYSTEMD = "initrd=\\EFI\\proxmox\\6.8\\initrd.img-6.8 root=ZFS=rpool/ROOT/pve-1 boot=zfs"
IOMMU = {"parameters": ["iommu=pt"]}


class Host:
    def __init__(self, root: Path, tools: Path) -> None:
        self.root, self.tools = root, tools
        self.file("proc/cmdline", BY_GRUB + "\n")
        self.file("proc/sys/kernel/random/boot_id", "boot-1\n")
        self.file("etc/default/grub", GRUB_FILE)
        self.tool("update-grub")
        self.tool("proxmox-boot-tool")

    def file(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def tool(self, name: str, does: str = "") -> None:
        self.tools.mkdir(exist_ok=True)
        script = self.tools / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.tools}/ran\n{does}\n')
        script.chmod(0o755)

    @property
    def ran(self) -> list[str]:
        """What ran since this was asked last."""
        log = self.tools / "ran"
        lines = [line.strip() for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def reboot(self, line: str) -> None:
        self.file("proc/cmdline", line + "\n")
        self.file("proc/sys/kernel/random/boot_id", "boot-2\n")

    @property
    def grub(self) -> str:
        return (self.root / "etc/default/grub").read_text()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path / "host", tmp_path / "tools")
    monkeypatch.setenv("PATH", f"{made.tools}:/usr/bin:/bin")
    monkeypatch.setattr("ansible.module_utils.slipway.cmdline.boot._SBIN", str(made.tools))
    monkeypatch.setattr(kernel_cmdline, "run", functools.partial(kernel_cmdline.run, root=made.root))
    monkeypatch.setattr(errors.platform, "node", lambda: "node1")
    return made


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_parameter_is_added_once(host: Host, run_module: RunModule) -> None:
    (host.root / "etc/default/grub").chmod(0o640)
    result = run_module(kernel_cmdline, IOMMU)
    assert (result["rc"], result["changed"], result["loader"], result["file"]) == (0, True, "grub", "/etc/default/grub")
    assert host.grub == GRUB_FILE.replace('intel_iommu=on"', 'intel_iommu=on iommu=pt"')
    assert result["configured"] == (
        'root=ZFS=rpool/ROOT/pve-1 boot=zfs quiet console=tty0 console=ttyS0,115200 dyndbg="file a.c +p" '
        "intel_iommu=on iommu=pt"
    )
    assert (result["live"], result["restart_required"], result["refreshed"]) == (BY_GRUB, True, True)
    assert [found["id"] for found in result["findings"]] == ["KERNEL_CMDLINE_PENDING"]
    assert stat.S_IMODE((host.root / "etc/default/grub").stat().st_mode) == 0o640
    assert host.ran == ["update-grub"]

    again = run_module(kernel_cmdline, IOMMU)
    assert (again["changed"], again["restart_required"], again["refreshed"], host.ran) == (False, True, False, [])
    assert again["diff"] == []

    host.reboot(BY_GRUB + " iommu=pt")
    rebooted = run_module(kernel_cmdline, IOMMU)
    assert (rebooted["changed"], rebooted["restart_required"], rebooted["findings"]) == (False, False, [])


def test_the_documented_keys_are_the_returned_ones(host: Host, run_module: RunModule) -> None:
    documented = yaml.safe_load(kernel_cmdline.RETURN)
    result = run_module(kernel_cmdline, IOMMU)
    assert set(documented) == set(result) - {"changed", "rc", "diff", "invocation", "warnings", "deprecations"}


def test_changed_and_removed_and_nothing_else(host: Host, run_module: RunModule) -> None:
    options = {"parameters": ["intel_iommu=off", "boot=zfs"], "absent": ["dyndbg", "console=ttyS0,115200", "nomodeset"]}
    result = run_module(kernel_cmdline, options)
    expected = GRUB_FILE.replace(' dyndbg=\\"file a.c +p\\"', "").replace("iommu=on", "iommu=off")
    assert host.grub == expected.replace(" console=ttyS0,115200", "")
    assert [(one["before"], one["after"]) for one in result["diff"]] == [(GRUB_FILE, host.grub)]


@pytest.mark.parametrize("diff", [True, False])
def test_check_mode_tells_and_writes_nothing(diff: bool, host: Host, run_module: RunModule) -> None:
    before = snapshot(host.root)
    result = run_module(kernel_cmdline, IOMMU, check=True, diff=diff)
    assert (result["changed"], result["refreshed"], result["restart_required"]) == (True, True, True)
    assert result["configured"].endswith(" iommu=pt")
    assert result["diff"][0]["after"] == GRUB_FILE.replace('intel_iommu=on"', 'intel_iommu=on iommu=pt"')
    assert (snapshot(host.root), host.ran) == (before, [])


def test_nothing_declared_is_a_look(host: Host, run_module: RunModule) -> None:
    before = snapshot(host.root)
    result = run_module(kernel_cmdline, {})
    assert (result["changed"], result["restart_required"], result["findings"]) == (False, False, [])
    assert (snapshot(host.root), host.ran) == (before, [])


def test_grub_under_proxmox_boot_tool(host: Host, run_module: RunModule) -> None:
    host.file("etc/kernel/proxmox-boot-uuids", "ABCD-1234\n")
    host.file("etc/kernel/cmdline", "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n")
    assert run_module(kernel_cmdline, IOMMU)["loader"] == "grub-proxmox-boot-tool"
    assert host.ran == ["proxmox-boot-tool refresh"]
    assert "iommu=pt" in host.grub
    assert (host.root / "etc/kernel/cmdline").read_text() == "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("root=ZFS=rpool/ROOT/pve-1  boot=zfs\n", "root=ZFS=rpool/ROOT/pve-1  boot=zfs iommu=pt\n"),
        ("root=ZFS=x iommu=on", "root=ZFS=x iommu=pt"),
        ("\nroot=ZFS=x\n\n", "\nroot=ZFS=x iommu=pt\n\n"),
        # Without the file proxmox-boot-tool would take the running kernel's line.
        (None, "root=ZFS=rpool/ROOT/pve-1 boot=zfs iommu=pt\n"),
    ],
)
def test_systemd_boot(text: str | None, expected: str, host: Host, run_module: RunModule) -> None:
    host.file("proc/cmdline", BY_SYSTEMD + "\n")
    host.file("etc/kernel/proxmox-boot-uuids", "ABCD-1234\n")
    if text is not None:
        host.file("etc/kernel/cmdline", text)
    result = run_module(kernel_cmdline, IOMMU)
    assert (result["loader"], result["file"], host.ran) == (
        "systemd-boot",
        "/etc/kernel/cmdline",
        ["proxmox-boot-tool refresh"],
    )
    assert (host.root / "etc/kernel/cmdline").read_text() == expected
    assert host.grub == GRUB_FILE
    assert run_module(kernel_cmdline, IOMMU)["changed"] is False


def test_without_its_file_systemd_boot_needs_none(host: Host, run_module: RunModule) -> None:
    host.file("proc/cmdline", BY_SYSTEMD + " iommu=pt\n")
    host.file("etc/kernel/proxmox-boot-uuids", "ABCD-1234\n")
    result = run_module(kernel_cmdline, IOMMU)
    assert (result["changed"], result["restart_required"], host.ran) == (False, False, [])
    assert not (host.root / "etc/kernel/cmdline").exists()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("where", ["before the file", "before the tool", "in the tool"])
def test_a_killed_run_is_completed(
    where: str, host: Host, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel has it already (typed in at the boot menu), so only the record tells that the loader does not.
    host.file("proc/cmdline", BY_GRUB + " iommu=pt\n")

    def killed(*args: t.Any, **options: t.Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        if where == "before the file":
            written = files.replace
            patched.setattr(
                files, "replace", lambda path, *rest: killed() if path.name == "grub" else written(path, *rest)
            )
        else:
            patched.setattr("subprocess.run", killed)
        with pytest.raises(Killed):
            run_module(kernel_cmdline, IOMMU)
    if where == "in the tool":
        host.tool("update-grub", "exit 0")
    told = run_module(kernel_cmdline, IOMMU, check=True)
    assert (told["changed"], told["refreshed"], host.ran) == (True, True, [])
    if where != "before the file":
        assert told["diff"][0]["prepared"] == "update-grub: the boot loader was not told of /etc/default/grub yet\n"
    assert run_module(kernel_cmdline, IOMMU)["changed"] is True
    assert (host.ran, "iommu=pt" in host.grub) == (["update-grub"], True)
    assert run_module(kernel_cmdline, IOMMU)["changed"] is False


def test_a_tool_that_fails_is_tried_again(host: Host, run_module: RunModule) -> None:
    host.tool("update-grub", "echo 'no space left' >&2; exit 3")
    result = run_module(kernel_cmdline, IOMMU)
    assert (result["rc"], result["msg"]) == (
        1,
        "Cannot refresh the boot loader on node1: 'update-grub' ended with 3: no space left. "
        "See what 'update-grub' says on the host; the next run tries again.",
    )
    host.tool("update-grub")
    assert run_module(kernel_cmdline, IOMMU)["changed"] is True
    assert host.ran == ["update-grub", "update-grub"]


def test_a_tool_that_does_not_end(host: Host, run_module: RunModule) -> None:
    host.tool("update-grub", "exec sleep 60")
    assert (
        "'update-grub' did not end within 1 seconds"
        in run_module(kernel_cmdline, {**IOMMU, "timeout_seconds": 1})["msg"]
    )


def test_what_was_written_by_hand_and_never_refreshed(host: Host, run_module: RunModule) -> None:
    host.file("etc/default/grub", GRUB_FILE.replace("intel_iommu=on", "iommu=pt"))
    first = run_module(kernel_cmdline, IOMMU)
    assert (first["changed"], first["refreshed"], host.ran) == (True, True, ["update-grub"])
    assert (run_module(kernel_cmdline, IOMMU)["changed"], host.ran) == (False, [])


def test_a_reboot_that_did_not_help(host: Host, run_module: RunModule) -> None:
    run_module(kernel_cmdline, IOMMU)
    host.reboot(BY_GRUB)
    result = run_module(kernel_cmdline, IOMMU)
    assert (result["changed"], result["restart_required"]) == (False, True)
    (found,) = result["findings"]
    assert (found["id"], found["severity"]) == ("KERNEL_CMDLINE_NOT_TAKEN", "fail")
    assert BY_GRUB in found["detail"]


def test_a_record_that_is_none_or_another_loaders_says_nothing(host: Host, run_module: RunModule) -> None:
    for record in ("half", "[]", '{"loader": "systemd-boot", "refreshed": false}'):
        host.file("var/lib/slipway/kernel-cmdline.json", record)
        assert run_module(kernel_cmdline, {})["changed"] is False


def test_drop_ins_are_part_of_the_line(host: Host, run_module: RunModule) -> None:
    # As Proxmox's installer leaves them.
    host.file("etc/default/grub", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n')
    zfs = host.file(
        "etc/default/grub.d/zfs.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX root=ZFS=rpool/ROOT/pve-1 boot=zfs"'
    )
    installer = host.file(
        "etc/default/grub.d/installer.cfg", '# x\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX nomodeset a"\n'
    )
    before = zfs.read_text()
    options = {**IOMMU, "absent": ["nomodeset"]}
    told = run_module(kernel_cmdline, options, check=True)
    assert [one["after_header"] for one in told["diff"]] == ["/etc/default/grub", "/etc/default/grub.d/installer.cfg"]
    result = run_module(kernel_cmdline, options)
    assert result["configured"] == "a root=ZFS=rpool/ROOT/pve-1 boot=zfs quiet iommu=pt"
    assert host.grub == 'GRUB_CMDLINE_LINUX_DEFAULT="quiet iommu=pt"\nGRUB_CMDLINE_LINUX=""\n'
    assert (installer.read_text(), zfs.read_text()) == ('# x\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX a"\n', before)
    assert host.ran == ["update-grub"]
    assert run_module(kernel_cmdline, options)["changed"] is False


@pytest.mark.parametrize(
    ("files_", "options", "said"),
    [
        ({"proc/cmdline": "root=/dev/sda1 ro"}, IOMMU, "neither /proc/cmdline nor EFI shows by what it was booted"),
        (
            {"proc/self/uid_map": "0 100000 65536\n"},
            IOMMU,
            "a container runs on its node's kernel and has none of its own",
        ),
        ({"etc/default/grub": 'GRUB_CMDLINE_LINUX="$X"\n'}, IOMMU, "line 1 does more with the kernel parameters"),
        (
            {"etc/default/grub.d/x.cfg": 'GRUB_CMDLINE_LINUX="$(x)"\n'},
            IOMMU,
            "Cannot change file '/etc/default/grub.d/x.cfg' on node1: line 1 does more with the kernel parameters",
        ),
        ({"proc/cmdline": BY_SYSTEMD}, IOMMU, "/etc/kernel/proxmox-boot-uuids names no partition to refresh"),
        (
            {"proc/cmdline": BY_SYSTEMD, "etc/kernel/proxmox-boot-uuids": "A\n", "etc/kernel/cmdline": "a\nb\n"},
            IOMMU,
            "it has 2 lines with text, and must have one",
        ),
        (
            {"proc/cmdline": BY_SYSTEMD, "etc/kernel/proxmox-boot-uuids": "A\n", "etc/kernel/cmdline": "quiet\n"},
            IOMMU,
            "it has no root=, and the host would not boot by it",
        ),
        ({}, {"parameters": ["a b"]}, "'a b' is not one parameter"),
        ({}, {**IOMMU, "timeout_seconds": 0}, "option 'timeout_seconds'"),
    ],
)
def test_what_it_does_not_know_it_refuses_before_it_writes(
    files_: dict[str, str], options: dict[str, t.Any], said: str, host: Host, run_module: RunModule
) -> None:
    for path, text in files_.items():
        host.file(path, text)
    before = snapshot(host.root)
    result = run_module(kernel_cmdline, options)
    assert (result["rc"], result["msg"].startswith("Cannot "), said in result["msg"]) == (1, True, True), result["msg"]
    assert (snapshot(host.root), host.ran) == (before, [])


@pytest.mark.parametrize("check", [True, False])
def test_without_the_tool_nothing_is_written(check: bool, host: Host, run_module: RunModule) -> None:
    (host.tools / "update-grub").unlink()
    before = snapshot(host.root)
    result = run_module(kernel_cmdline, IOMMU, check=check)
    assert result["msg"] == (
        "Cannot change the kernel command line on node1: the host boots by grub, and there is no program update-grub. "
        "Install the package that brings it."
    )
    assert snapshot(host.root) == before


def test_a_link_stays_one(host: Host, run_module: RunModule) -> None:
    kept = host.file("srv/grub", GRUB_FILE)
    (host.root / "etc/default/grub").unlink()
    (host.root / "etc/default/grub").symlink_to("../../srv/grub")
    assert run_module(kernel_cmdline, IOMMU)["changed"] is True
    assert "iommu=pt" in kept.read_text()
    assert (host.root / "etc/default/grub").is_symlink()


def test_grub_without_its_file(host: Host, run_module: RunModule) -> None:
    (host.root / "etc/default/grub").unlink()
    assert "GRUB booted this host, and the file does not exist" in run_module(kernel_cmdline, IOMMU)["msg"]
