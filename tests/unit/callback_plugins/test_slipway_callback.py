# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run says, by runs of ansible-playbook itself on this machine. They are small; none is timed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import typing as t
from pathlib import Path

import pytest

SENTENCE = (
    "Cannot load driver '595.58.03' on one: the kernel has no headers, which building an open kernel module needs to begin with. "
    "Install them with apt, or set pve_host_allow_reboot and boot the kernel that has them."
)
HOSTS = """[all:vars]
ansible_connection=local
ansible_python_interpreter={python}
[all]
one
two
gone ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=1
"""
SLEEP: dict[str, t.Any] = {"name": "Download the weights", "command": "sleep 6", "changed_when": False}


class Playbook:
    """Writes a playbook of one play and runs it; every run is shown as a log, unless it is given a terminal."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        (folder / "hosts").write_text(HOSTS.format(python=sys.executable))
        (folder / "ansible.cfg").touch()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_REMOTE_TMP": str(folder / "remote"),
            "ANSIBLE_CALLBACK_PLUGINS": str(root / "callback_plugins"),
            "ANSIBLE_STDOUT_CALLBACK": "slipway",
        }

    def command(self, tasks: list[dict[str, t.Any]], *options: str, hosts: str = "one", **play: t.Any) -> list[str]:
        plays = [{"name": "Play", "hosts": hosts, "gather_facts": False, "tasks": tasks, **play}]
        (self.folder / "play.yml").write_text(json.dumps(plays))
        program = str(Path(sys.executable).parent / "ansible-playbook")
        return [program, "-i", "hosts", "play.yml", *options]

    def __call__(self, tasks: list[dict[str, t.Any]], *options: str, **play: t.Any) -> tuple[int, str]:
        """Exit code and what was printed. Names in capitals are put into the environment."""
        environment = {name: str(play.pop(name)) for name in [*play] if name.isupper()}
        done = subprocess.run(
            self.command(tasks, *options, **play),
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout

    def on_terminal(self, tasks: list[dict[str, t.Any]], columns: int) -> str:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = self.command(tasks)
        with subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    piece = os.read(ours, 4096)
                except OSError:  # how Linux tells the end of a terminal
                    break
                if not piece:
                    break
                shown += piece
            process.wait(timeout=60)
        os.close(ours)
        return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r", "")


@pytest.fixture
def playbook(tmp_path: Path, root: Path) -> Playbook:
    return Playbook(tmp_path, root)


def end(shown: str) -> str:
    """What comes below the recap."""
    return shown[shown.index("PLAY RECAP") :].partition("\n\n")[2].strip("\n")


def test_a_failure_is_a_sentence_and_the_last_line(playbook: Playbook) -> None:
    findings = [{"id": "KERNEL_HEADERS_MISSING", "severity": "fail"}]
    check = {"name": "Gate", "assert": {"that": "findings == []", "fail_msg": SENTENCE}, "vars": {"findings": findings}}
    code, shown = playbook([check])
    assert code == 2
    assert f"failed: [one]\n    {SENTENCE}\n" in shown
    assert shown.splitlines()[-1] == f"one: {SENTENCE}"
    assert shown.count(SENTENCE) == 2
    assert not [word for word in ("assertion", "evaluated_to", "findings", "{", "Origin") if word in shown]


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ({"name": "Look", "command": "true", "changed_when": False}, True),
        ({"name": "Do", "command": "true"}, False),
        ({"name": "Try", "command": "false", "ignore_errors": True}, False),
    ],
    ids=["looked", "changed", "may have changed"],
)
def test_that_nothing_was_changed_is_said_only_where_it_is_known(
    playbook: Playbook, first: dict[str, t.Any], said: bool
) -> None:
    _code, shown = playbook([first, {"name": "Gate", "assert": {"that": "false", "fail_msg": SENTENCE}}])
    assert ("WHAT FAILED, BEFORE ANYTHING WAS CHANGED" in shown) is said
    assert "WHAT FAILED" in shown


def test_on_a_terminal_it_is_wrapped(playbook: Playbook) -> None:
    shown = playbook.on_terminal([{"name": "Gate", "fail": {"msg": SENTENCE}}], columns=90)
    below = end(shown).partition("\n")[2].splitlines()
    assert 80 < max(map(len, below)) < 90
    assert len(below) == 3
    assert all(line.startswith("    ") for line in below[1:])
    assert " ".join(line.strip() for line in below) == f"one: {SENTENCE}"


def test_nothing_is_added_where_nothing_failed(playbook: Playbook) -> None:
    code, shown = playbook([{"name": "Look", "ping": {}}])
    assert (code, end(shown)) == (0, "")


def test_the_useful_parts_of_a_command_that_failed(playbook: Playbook) -> None:
    script = "for line in 1 2 3 4 5 6; do echo error $line >&2; done; echo fine; exit 3"
    _code, shown = playbook([{"name": "Build", "command": {"argv": ["sh", "-c", script]}}])
    for text in (shown[: shown.index("PLAY RECAP")], end(shown)):
        assert f"    command: sh -c {script}\n    exit status: 3\n    the last it said:\n    error 2\n" in text
        assert "error 6\n    (task 'Build', " in text
        assert "-v shows the whole result)" in text
        assert "error 1" not in text
        assert "fine" not in text.replace(script, "")
    assert "stdout_lines" not in shown


def test_causes_that_ansible_names(playbook: Playbook) -> None:
    spec = {"argument_spec": {"port": {"type": "int"}, "state": {"choices": ["on", "off"]}}}
    tasks = [
        {"name": "Undefined", "debug": {"msg": "{{ nowhere_defined }}"}},
        {"name": "Spec", "validate_argument_spec": {**spec, "provided_arguments": {"port": "x", "state": "up"}}},
        {"name": "Missing", "include_tasks": "absent.yml"},
        {"name": "Unmet", "command": "echo no", "failed_when": ["'yes' not in said.stdout"], "register": "said"},
        {"name": "Assert", "assert": {"that": ["1 == 2"]}},
    ]
    says = [
        "'nowhere_defined' is undefined",
        "value of state must be one of: on, off, got: up",
        "absent.yml",
        "failed_when: 'yes' not in said.stdout",
        "it does not hold that: 1 == 2",
    ]
    hosts = [f"host{number}" for number in range(len(tasks))]
    (playbook.folder / "hosts").write_text(HOSTS.format(python=sys.executable) + "\n".join(hosts))
    tasks = [{**task, "when": f"inventory_hostname == '{host}'"} for task, host in zip(tasks, hosts, strict=True)]
    code, shown = playbook(tasks, hosts="host*")
    assert code == 2
    entries = re.split(r"^(?=host)", end(shown), flags=re.M)[1:]
    for task, words, entry in zip(tasks, says, entries, strict=True):
        assert words in entry
        assert f"(task '{task['name']}', " in entry
    assert not [word for word in ("argument_spec_data", "stdout_lines", "evaluated_to", "Task failed") if word in shown]


def test_items_that_failed_are_named(playbook: Playbook) -> None:
    code, shown = playbook(
        [
            {
                "name": "Each",
                "fail": {"msg": "Cannot use {{ item.name }} on one: it is odd."},
                "failed_when": "item.odd",
                "loop": [{"name": "a", "odd": True}, {"name": "b", "odd": False}, {"name": "c", "odd": True}],
                "loop_control": {"label": "{{ item.name }}"},
            }
        ]
    )
    assert code == 2
    assert "failed: [one] (item=a)\n    Cannot use a on one: it is odd.\n" in shown
    below = ["one: (item=a) Cannot use a on one: it is odd.", "    (item=c) Cannot use c on one: it is odd."]
    assert end(shown).splitlines()[1:] == below


def test_a_long_label_is_cut(playbook: Playbook) -> None:
    _code, shown = playbook([{"name": "Each", "command": "true", "loop": [{"words": "x" * 300}]}])
    assert re.search(r"changed: \[one\] => \(item=\{'words': 'x+\.\.\.\)\n", shown)
    assert "x" * 101 not in shown


def test_items_that_are_as_they_were_are_counted(playbook: Playbook) -> None:
    (playbook.folder / "a").mkdir()
    make = {"path": f"{playbook.folder}/{{{{ item }}}}", "state": "directory"}
    task: dict[str, t.Any] = {"name": "Make", "file": make, "loop": ["a", "b"]}
    _code, shown = playbook([task])
    assert re.findall(r"^(?:ok|changed).*", shown, re.M) == ["changed: [one] => (item=b)"]
    _code, shown = playbook([task])
    assert re.findall(r"^(?:ok|changed).*", shown, re.M) == ["ok: [one] (2 items)"]


def test_a_value_of_the_wrong_type_is_a_sentence(playbook: Playbook) -> None:
    folder = playbook.folder / "roles" / "server" / "meta"
    folder.mkdir(parents=True)
    specs = {"argument_specs": {"main": {"options": {"server_port": {"type": "int"}}}}}
    (folder / "argument_specs.yml").write_text(json.dumps(specs))
    code, shown = playbook([], roles=["server"], vars={"server_port": "many"})
    assert code == 2
    assert re.match(
        r"one: Cannot use what is set for role 'server' on one: .*server_port.*int.* Correct it in the inventory; ",
        shown.splitlines()[-1],
    )
    assert "options" not in shown


def test_rescued_ignored_and_expected_failures_are_not_told_at_the_end(playbook: Playbook) -> None:
    tasks: list[dict[str, t.Any]] = [
        {"name": "Ignored", "fail": {"msg": "Cannot a."}, "ignore_errors": True},
        {"name": "Expected", "fail": {"msg": "Cannot b."}, "failed_when": False},
        {"block": [{"name": "Rescued", "fail": {"msg": "Cannot c."}}], "rescue": [{"debug": {"msg": "Put right"}}]},
    ]
    code, shown = playbook(tasks)
    assert (code, end(shown)) == (0, ""), shown
    assert "    Cannot a.\n...ignoring\n" in shown
    assert "    Cannot c.\n" in shown
    assert "Cannot b." not in shown
    failing = {"block": [{"name": "Fails", "fail": {"msg": "Cannot d."}}], "always": [{"debug": {"msg": "Written"}}]}
    code, shown = playbook([*tasks, failing])
    assert (code, end(shown).splitlines()[1:]) == (2, ["one: Cannot d."])


def test_hosts_with_the_same_cause_are_told_together(playbook: Playbook) -> None:
    tasks: list[dict[str, t.Any]] = [{"name": "Refuse", "fail": {"msg": "Cannot use profile 'x': it is unknown."}}]
    code, shown = playbook(tasks, hosts="one,two")
    assert (code, end(shown).splitlines()[1:]) == (2, ["one, two: Cannot use profile 'x': it is unknown."])


def test_an_unreachable_host_is_told_with_what_to_look_at(playbook: Playbook) -> None:
    code, shown = playbook([{"name": "Look", "ping": {}}], hosts="one,gone")
    assert code == 4
    assert "ok: [one]" in shown
    assert "unreachable: [gone]\n    Cannot reach gone: " in shown
    assert re.match(r"gone: Cannot reach gone: .*Connection refused.*See that it is up", end(shown).splitlines()[1])
    code, shown = playbook([{"name": "Look", "ping": {}, "ignore_unreachable": True}], hosts="gone")
    assert (code, end(shown)) == (0, "")


@pytest.mark.parametrize("options", [(), ("-vvv",)], ids=["plain", "vvv"])
def test_a_secret_stays_hidden(playbook: Playbook, options: tuple[str, ...]) -> None:
    task = {
        "name": "Log in",
        "command": "echo {{ item }}",
        "loop": ["geheim-1"],
        "failed_when": True,
        "no_log": True,
        "retries": 1,
        "delay": 0,
        "until": False,
    }
    code, shown = playbook([task], *options)
    assert code == 2
    assert "geheim" not in shown
    assert "'no_log: true' was specified" in end(shown)


def test_verbose_shows_everything(playbook: Playbook) -> None:
    tasks: list[dict[str, t.Any]] = [
        {"name": "Skipped", "ping": {}, "when": False},
        {"name": "Include", "include_tasks": "more.yml"},
        {"name": "Gate", "assert": {"that": "1 == 2", "fail_msg": SENTENCE}},
    ]
    (playbook.folder / "more.yml").write_text(json.dumps([{"name": "More", "ping": {}}]))
    _code, shown = playbook(tasks, "-vvv")
    for words in (
        "skipping: [one]",
        "TASK [Include]",
        "fatal: [one]: FAILED! =>",
        '"evaluated_to": false',
        "task path: ",
    ):
        assert words in shown
    assert shown.splitlines()[-1] == f"one: {SENTENCE}"


def test_what_is_skipped_and_what_only_includes_is_left_out(playbook: Playbook) -> None:
    tasks: list[dict[str, t.Any]] = [
        {"name": "Nowhere", "ping": {}, "when": False},
        {"name": "Only two", "ping": {}, "when": "inventory_hostname == 'two'"},
        {"name": "Include", "include_tasks": "more.yml"},
    ]
    (playbook.folder / "more.yml").write_text(json.dumps([{"name": "More", "ping": {}}]))
    code, shown = playbook(tasks, hosts="one,two")
    assert code == 0
    assert re.findall(r"TASK \[(.*)\]|(\w+: \[\w+\])", shown)[:2] == [("Only two", ""), ("", "ok: [two]")]
    assert "TASK [More]" in shown
    assert not [word for word in ("skipping", "Nowhere", "Include", "included") if word in shown]
    _code, shown = playbook(tasks, hosts="one,two", ANSIBLE_DISPLAY_SKIPPED_HOSTS=1)
    assert "TASK [Nowhere]" in shown
    assert "skipping: [one]" in shown


def test_what_is_said_to_people_is_text(playbook: Playbook) -> None:
    _code, shown = playbook([{"name": "Say", "debug": {"msg": ['It\'s done: "all"', "See /tmp"]}}])
    assert '    It\'s done: "all"\n    See /tmp\n' in shown


def test_a_long_task_has_its_title_first_and_is_named_while_it_runs(playbook: Playbook) -> None:
    code, shown = playbook([SLEEP], hosts="one,two", ANSIBLE_SLIPWAY_HEARTBEAT_SECONDS=1)
    assert code == 0
    title = shown.index("TASK [Download the weights]")
    signs = [
        match.start() for match in re.finditer(r"^\[one, two\] still: Download the weights \(\d+ s\)$", shown, re.M)
    ]
    assert signs
    assert title < signs[0] < signs[-1] < shown.index("ok: [")
    assert shown.count("TASK [Download the weights]") == 1


def test_signs_of_life_can_be_turned_off(playbook: Playbook) -> None:
    (playbook.folder / "ansible.cfg").write_text("[callback_slipway]\nheartbeat_seconds = 0\n")
    _code, shown = playbook([SLEEP])
    assert "still" not in shown


def test_a_title_is_seen_while_its_task_runs_also_in_a_log(playbook: Playbook) -> None:
    """The task ends only once what was printed so far has been read, so a title that came late would hang here."""
    pipe = playbook.folder / "go"
    os.mkfifo(pipe)
    command = playbook.command([{"name": "Wait", "command": f"cat {pipe}"}])
    with subprocess.Popen(
        command, cwd=playbook.folder, env=playbook.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        seen = ""
        while "TASK [Wait]" not in seen:
            seen += process.stdout.readline()
        pipe.write_text("go\n")
        rest = process.stdout.read()
    assert process.returncode == 0
    assert "changed: [one]" in rest


def test_a_wait_says_what_it_waits_for_once(playbook: Playbook) -> None:
    script = "echo connection refused >&2; test -e {0}3 || {{ test -e {0}2 && touch {0}3 || touch {0}2; false; }}"
    task = {
        "name": "Wait",
        "shell": script.format(playbook.folder / "try"),
        "register": "answer",
        "until": "answer.rc == 0",
        "retries": 5,
        "delay": 0,
    }
    code, shown = playbook([task])
    assert code == 0, shown
    assert re.findall(r"^\[one\] not yet, \d more tries: (.*)$", shown, re.M) == ["connection refused"]
    assert "FAILED" not in shown


def test_batches_of_hosts_have_their_titles(playbook: Playbook) -> None:
    _code, shown = playbook([{"name": "Look", "ping": {}}], hosts="one,two", serial=1)
    assert shown.count("TASK [Look]") == 2


def test_check_mode_says_what_changed_means(playbook: Playbook) -> None:
    file = playbook.folder / "made"
    write = {"name": "Write", "copy": {"content": "new\n", "dest": str(file)}}
    code, shown = playbook([write], "--check", "--diff")
    assert (code, file.exists()) == (0, False)
    assert shown.count("Check mode: nothing is changed") == 2
    assert "+new" in shown
    assert "Check mode" not in playbook([write], "--diff")[1]


def test_another_output_can_be_asked_for(playbook: Playbook) -> None:
    _code, shown = playbook([{"name": "Gate", "fail": {"msg": SENTENCE}}], ANSIBLE_STDOUT_CALLBACK="default")
    assert "fatal: [one]: FAILED! =>" in shown
    assert "WHAT FAILED" not in shown


def test_an_interrupted_run_ends(playbook: Playbook) -> None:
    command = playbook.command([{"name": "Wait", "command": "sleep 600"}])
    environment = {**playbook.environment, "ANSIBLE_SLIPWAY_HEARTBEAT_SECONDS": "1"}
    with subprocess.Popen(
        command, cwd=playbook.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        while "still: Wait" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        process.wait(timeout=60)
    assert process.returncode == 99
    assert "Traceback" not in rest
