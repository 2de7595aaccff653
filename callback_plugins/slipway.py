# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run says in a terminal: Ansible's own output, less what nobody reads, more where somebody waits or something failed."""

from __future__ import annotations

DOCUMENTATION = r"""
name: slipway
type: stdout
short_description: Ansible's default output, with failures as sentences and signs of life
description:
  - Everything is as in the default output, except for what follows.
  - A failed task shows its message as text, and what else helps (command, end of its error output, place of the task) where
    the message is none of Slipway's own sentences. The run ends with all of them again, below the recap.
  - Skipped tasks, includes and their titles are left out, and the items of a loop that are as they were. A task's title is shown with its first result, or when it has run for a second.
  - A task that takes long is named again and again, with the time that it has taken.
  - With C(-v) and above tasks and results are shown as the default output does. The signs of life and the end stay.
  - Text is wrapped on a terminal only, so that a sentence in a log is one line.
  - Writes the report of each host for which the role C(report) handed something over, and says where it is. This output sees what no role can, namely what the
    whole run changed and how it ended; it writes also where a run fails, and never in check mode.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
options:
  display_skipped_hosts:
    name: Show skipped hosts
    description: Whether skipped tasks and hosts are shown. The default of this output is not to, unless C(-v) is given.
    type: bool
    default: false
    env: [{name: ANSIBLE_DISPLAY_SKIPPED_HOSTS}]
    ini: [{key: display_skipped_hosts, section: defaults}]
  heartbeat_seconds:
    name: First sign of life
    description:
      - After how many seconds a task that is still running is named for the first time.
      - The pause before the next time is doubled each time, up to eight times this. With 0 it is never named.
    type: float
    default: 15
    env: [{name: ANSIBLE_SLIPWAY_HEARTBEAT_SECONDS}]
    ini: [{key: heartbeat_seconds, section: callback_slipway}]
requirements:
  - set as stdout_callback in the configuration
"""

import atexit
import sys
import textwrap
import threading
import time
import typing as t
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import ansible.module_utils
from ansible import constants as C
from ansible import context
from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback.default import CallbackModule as DefaultCallback

# Ansible puts module_utils on the path of modules alone, and relative imports resolve in a collection only.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))
from ansible.module_utils.slipway.report import content, render, write

# How long a title waits for a first result: long enough that a condition has been looked at, short enough to be no pause.
TITLE_SECONDS = 1.0
LONGEST_PAUSE = 8
TAIL_LINES = 5
LABEL_LETTERS = 100
TEXT_COLUMNS = 120
INDENT = " " * 4
# Actions that change nothing, whatever they come to.
LOOKS = ("assert", "debug", "fail", "validate_argument_spec")
# The role that holds steps which other roles share: what it does is theirs.
SHARED_ROLE = "slipway"
# Under this name the role `report` hands over what is known of a host.
HANDED_OVER = "slipway_report"
CHECK_MODE = "Check mode: nothing is changed, and what is called changed here is what a run would change."


@dataclass
class Running:
    """A task under way: on which hosts, since when, and when it is to be named next."""

    task: t.Any
    since: float
    pause: float
    due: float
    titled: bool = False
    hosts: list[str] = field(default_factory=list)


class CallbackModule(DefaultCallback):
    """Only what differs from the default output.

    Three threads come here: the main one, the one that collects results, and the one that gives signs of life. Workers are forked
    and never do. What is running and whether its title was shown is guarded by a lock, which is always taken before the display's.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "slipway"

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.RLock()
        self._running: dict[str, Running] = {}
        self._ended = threading.Event()
        self._failures: dict[str, list[str]] = {}
        self._unreachable: dict[str, str] = {}
        self._failed_items: dict[tuple[str, str], list[str]] = {}
        self._not_yet: dict[tuple[str, str], str] = {}
        self._may_have_changed = False
        self._began = datetime.now(timezone.utc)
        self._playbook = ""
        self._extra_variables: list[str] = []
        self._changed: dict[str, list[dict[str, t.Any]]] = {}

    def set_options(self, *arguments: t.Any, **options: t.Any) -> None:
        super().set_options(*arguments, **options)
        if self._everything and self.get_option_and_origin("display_skipped_hosts")[1] == "default":
            self.set_option("display_skipped_hosts", True)

    @property
    def _everything(self) -> bool:
        """Whether results are shown as the default output shows them."""
        return bool(self._display.verbosity)

    # The run

    def v2_playbook_on_start(self, playbook: t.Any) -> None:
        super().v2_playbook_on_start(playbook)
        self._began, self._playbook = datetime.now(timezone.utc), Path(playbook._file_name).name
        if context.CLIARGS["check"]:
            self._display.display(CHECK_MODE)
        self._ended = threading.Event()
        atexit.register(self._ended.set)  # a run that is broken off has no end that is told
        threading.Thread(target=self._keep_alive, args=(self._ended,), daemon=True).start()

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        super().v2_playbook_on_play_start(play)
        self._extra_variables = list(play.get_variable_manager().extra_vars)

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        self._ended.set()
        with self._guard:
            self._running.clear()
        super().v2_playbook_on_stats(stats)
        if context.CLIARGS["check"]:
            self._display.display(CHECK_MODE)
        failures = self._failures_left(stats)
        try:
            self._report(stats, failures)
        finally:
            self._tell_failures(failures)

    def _failures_left(self, stats: t.Any) -> dict[str, list[str]]:
        """Why each host failed that did.

        Whether a failure was rescued is not told with it. But rescued ones come before the one that a host ends with, and the
        statistics say how many of a host were not.
        """
        left: dict[str, list[str]] = {}
        for host in sorted(stats.processed):
            count = stats.failures.get(host, 0)
            texts = self._failures.get(host, [])[-count:] if count else []
            if host in self._unreachable:
                texts = [*texts, self._unreachable[host]]
            if texts:
                left[host] = texts
        return left

    def _tell_failures(self, failures: dict[str, list[str]]) -> None:
        """Name each host that failed, with the reason; hosts with the same reason together."""
        hosts_by_text: dict[str, list[str]] = {}
        for host, texts in failures.items():
            for text in texts:
                hosts_by_text.setdefault(text, []).append(host)
        if not hosts_by_text:
            return
        self._display.banner("WHAT FAILED" + ("" if self._may_have_changed else ", BEFORE ANYTHING WAS CHANGED"))
        for text, hosts in hosts_by_text.items():
            self._display.display(self._wrapped(f"{', '.join(hosts)}: {text}", first=""), color=C.COLOR_ERROR)

    # The report

    def _report(self, stats: t.Any, failures: dict[str, list[str]]) -> None:
        """Write a report of each host that has one, and say what it says. A report that cannot be written fails no run."""
        gathered = {host: known[HANDED_OVER] for host, known in sorted(stats.custom.items()) if HANDED_OVER in known}
        if not gathered or context.CLIARGS["check"]:
            return
        ended = datetime.now(timezone.utc)
        run = {
            "playbook": self._playbook,
            "began": f"{self._began:%Y-%m-%dT%H-%M-%SZ}",
            "ended": f"{ended:%Y-%m-%dT%H-%M-%SZ}",
            "seconds": (ended - self._began).total_seconds(),
            "extra_variables": self._extra_variables,
            "changed": self._changed,
            "failures": failures,
        }
        self._display.banner("REPORT")
        try:
            written = write.reports(gathered, run)
        except OSError as error:
            self._display.warning(
                f"Cannot write the report in {error.filename}: {error.strerror}. Make the folder writable, or set report_directory."
            )
            return
        for report in written:
            color = {content.FIT: C.COLOR_OK, content.NOT_FIT: C.COLOR_ERROR}.get(report["verdict"], C.COLOR_WARN)
            headline, *lines = [render.clean(line) for line in content.told(report)]
            self._display.display(headline, color=color)
            for line in [*lines, f"The report is {report['path']}"]:
                self._display.display(self._wrapped(line))
        if len(written) > 1:
            pages = sorted({str(Path(known["directory"]) / write.INDEX) for known in gathered.values()})
            self._display.display(f"All hosts: {', '.join(pages)}")

    def _note_change(self, result: t.Any) -> None:
        """Keep which task changed something, for the report."""
        items = [one for one in result.result.get("results") or [] if isinstance(one, dict) and one.get("changed")]
        host = result.host.get_name()
        name = result.task.get_name().strip()
        row = {
            "role": _role(result.task),
            "task": name.partition(" : ")[2] if result.task._role else name,
            "count": len(items) or 1,
            "on": result.task.delegate_to or host,
        }
        self._changed.setdefault(host, []).append(row)

    # Signs of life

    def v2_runner_on_start(self, host: t.Any, task: t.Any) -> None:
        super().v2_runner_on_start(host, task)
        now = time.monotonic()
        pause = self.get_option("heartbeat_seconds")
        with self._guard:
            running = self._running.setdefault(task._uuid, Running(task, now, pause, now + pause))
            running.hosts.append(host.get_name())

    def _finished(self, result: t.Any) -> None:
        """A host's result is there: nothing more is said of its wait."""
        host, task = result.host.get_name(), result.task
        with self._guard:
            running = self._running.get(task._uuid)
            if running and host in running.hosts:
                running.hosts.remove(host)
                if not running.hosts:
                    del self._running[task._uuid]

    def _keep_alive(self, ended: threading.Event) -> None:
        while not ended.wait(min(TITLE_SECONDS, self.get_option("heartbeat_seconds") or TITLE_SECONDS) / 2):
            try:
                with self._guard:
                    for running in [] if ended.is_set() else list(self._running.values()):
                        self._sign_of_life(running, time.monotonic())
                sys.stdout.flush()  # Ansible does not before its end, so that a log would stand still
            except (OSError, ValueError):  # nobody reads any more
                return

    def _sign_of_life(self, running: Running, now: float) -> None:
        """Show the title of a task that takes its time, and say that it is still running where it is due."""
        named = running.pause > 0 and now >= running.due
        if not running.titled and (now - running.since >= TITLE_SECONDS or named):
            running.titled = True
            self._print_task_banner(running.task)
        if named:
            waited = _duration(now - running.since)
            title = running.task.get_name().strip()
            self._display.display(f"[{', '.join(running.hosts)}] still: {title} ({waited})", color=C.COLOR_DEBUG)
            running.pause = min(running.pause * 2, self.get_option("heartbeat_seconds") * LONGEST_PAUSE)
            running.due = now + running.pause

    # Titles

    def _task_start(self, task: t.Any, prefix: str | None = None) -> None:
        # The same task comes again in the next batch of hosts.
        self._last_task_banner = None
        super()._task_start(task, prefix)

    def _print_task_banner(self, task: t.Any) -> None:
        with self._guard:
            if self._last_task_banner != task._uuid:
                super()._print_task_banner(task)

    def v2_playbook_on_include(self, included_file: t.Any) -> None:
        if self._everything:
            super().v2_playbook_on_include(included_file)

    # Results

    def v2_on_file_diff(self, result: t.Any) -> None:
        """A plan names the file that changes, not the temporary one that a template was written to on the controller."""
        target = result.task.args.get("dest")
        differences = result.result.get("diff") or []
        for difference in [differences] if isinstance(differences, dict) else differences:
            if target and "before" in difference and "after" in difference:
                difference.update(before_header=target, after_header=target)
        super().v2_on_file_diff(result)

    def v2_runner_on_ok(self, result: t.Any) -> None:
        self._finished(result)
        if result.result.get("changed"):
            self._may_have_changed = True
            self._note_change(result)
        if self._everything:
            super().v2_runner_on_ok(result)
        elif isinstance(result.task, TaskInclude):
            return
        elif result.task.loop and "results" in result.result and not result.result.get("changed"):
            if self.get_option("display_ok_hosts"):
                self._print_task_banner(result.task)
                self._handle_warnings_and_exception(result)
                count = len(result.result["results"])
                self._display.display(f"ok: [{self.host_label(result)}] ({count} items)", color=C.COLOR_OK)
        else:
            super().v2_runner_on_ok(result)

    def v2_runner_item_on_ok(self, result: t.Any) -> None:
        """Of a loop those items are named that changed or have something to say; the others are counted at its end."""
        if self._everything or result.result.get("changed") or result.result.get("_ansible_verbose_always"):
            super().v2_runner_item_on_ok(result)

    def v2_runner_on_skipped(self, result: t.Any) -> None:
        self._finished(result)
        super().v2_runner_on_skipped(result)

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        self._finished(result)
        # What a task did before it failed is known of those alone that do nothing.
        self._may_have_changed |= bool(result.result.get("changed")) or result.task.action.split(".")[-1] not in LOOKS
        if result.result.get("changed"):
            self._note_change(result)
        items = self._failed_items.pop(_key(result), [])
        text = "\n".join(items) or _words(result)
        if not ignore_errors:
            self._failures.setdefault(result.host.get_name(), []).append(text)
        if self._everything:
            super().v2_runner_on_failed(result, ignore_errors)
            return
        if not items:
            self._show_failure(f"failed: [{self.host_label(result)}]", text, result)
        if ignore_errors:
            self._display.display("...ignoring", color=C.COLOR_SKIP)

    def v2_runner_item_on_failed(self, result: t.Any) -> None:
        text, item = _words(result), f"(item={self._get_item_label(result.result)})"
        self._failed_items.setdefault(_key(result), []).append(f"{item} {text}")
        if self._everything:
            super().v2_runner_item_on_failed(result)
        else:
            self._show_failure(f"failed: [{self.host_label(result)}] {item}", text, result)

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        self._finished(result)
        host = result.host.get_name()
        cause = " ".join(_lines(result.result.get("msg")) or ["no answer"]).rstrip(".")
        text = (
            f"Cannot reach {host}: {cause}. See that it is up, that its address and user in the inventory are right, "
            "and that its host key is known."
        )
        if not result.task.ignore_unreachable:
            self._unreachable[host] = text
        if self._everything:
            super().v2_runner_on_unreachable(result)
            return
        self._show_failure(f"unreachable: [{self.host_label(result)}]", text, result, color=C.COLOR_UNREACHABLE)
        if result.task.ignore_unreachable:
            self._display.display("...ignoring", color=C.COLOR_SKIP)

    def v2_runner_retry(self, result: t.Any) -> None:
        """Say what a wait is waiting for, when it is a new word; the signs of life say that it goes on."""
        if self._everything:
            super().v2_runner_retry(result)
            return
        said = ([*_lines(result.result.get("msg")), *_tail(result.result)] or ["no word"])[-1]
        if "censored" in result.result or self._not_yet.get(_key(result)) == said:
            return
        self._not_yet[_key(result)] = said
        left = result.result["retries"] - result.result["attempts"]
        self._print_task_banner(result.task)
        message = f"[{self.host_label(result)}] not yet, {left} more tries: {said}"
        self._display.display(self._wrapped(message, first=""), color=C.COLOR_DEBUG)

    def _show_failure(self, headline: str, text: str, result: t.Any, color: str | None = None) -> None:
        self._print_task_banner(result.task)
        self._handle_warnings_and_exception(result)
        on_stderr = self.get_option("display_failed_stderr")
        for line in (headline, self._wrapped(text)):
            self._display.display(line, color=color or C.COLOR_ERROR, stderr=on_stderr)

    def _handle_exception(self, result: t.Any, use_stderr: bool = False) -> None:
        """The default output shows the message a second time here, with lines of the playbook."""
        if self._everything:
            super()._handle_exception(result, use_stderr)
        else:
            result.pop("exception", None)

    def _dump_results(self, result: t.Any, *arguments: t.Any, **options: t.Any) -> t.Any:
        """What a task says to people is text; everything else as the default output shows it."""
        if result.get("_ansible_verbose_always") and "msg" in result and not self._everything:
            return "\n" + self._wrapped("\n".join(_lines(result["msg"])))
        return super()._dump_results(result, *arguments, **options)

    def _get_item_label(self, result: t.Any) -> t.Any:
        label = super()._get_item_label(result)
        if self._everything or isinstance(label, str) or len(str(label)) <= LABEL_LETTERS:
            return label
        return str(label)[:LABEL_LETTERS] + "..."

    def _wrapped(self, text: str, first: str = INDENT) -> str:
        """Text below a headline, in lines of a terminal; in a log each of its lines stays one, to be searched for."""
        width = min(self._display.columns, TEXT_COLUMNS) if sys.stdout.isatty() else sys.maxsize
        lines: list[str] = []
        for line in text.splitlines():
            lines += textwrap.wrap(
                line,
                width,
                initial_indent=INDENT if lines else first,
                subsequent_indent=INDENT,
                break_long_words=False,
                break_on_hyphens=False,
                replace_whitespace=False,
            )
        return "\n".join(lines)


def _key(result: t.Any) -> tuple[str, str]:
    return result.host.get_name(), result.task._uuid


def _lines(message: t.Any) -> list[str]:
    if isinstance(message, list):
        return [str(one) for one in message]
    return str(message or "").strip().removeprefix("Task failed: ").splitlines()


def _words(result: t.Any) -> str:
    """Why a task failed: the message alone where it is one of Slipway's sentences, else with what helps to find the cause."""
    values = result.result
    if "censored" in values:
        return f"{values['censored']} ({_place(result.task)})"
    role = values.get("validate_args_context", {}).get("name")
    if role and values.get("argument_errors"):
        causes = "; ".join(str(one).rstrip(".") for one in values["argument_errors"])
        return (
            f"Cannot use what is set for role '{role}' on {result.host.get_name()}: {causes}. Correct it in the inventory; "
            f"`ansible-doc -t role -r roles {role}` says what each variable takes."
        )
    lines = _lines(values.get("msg") or values.get("reason"))  # 2.19 gives a reason where a file cannot be included
    if lines and lines[0].startswith("Cannot "):
        return "\n".join(lines)
    for key, name in (("assertion", "it does not hold that"), ("cmd", "command"), ("rc", "exit status")):
        if values.get(key) not in (None, ""):
            value = values[key]
            lines.append(f"{name}: {' '.join(map(str, value)) if isinstance(value, list) else value}")
    said = _tail(values)
    if said:
        lines += ["the last it said:", *said]
    if values.get("failed_when_result"):
        lines.append(f"failed_when: {' and '.join(map(str, result.task.failed_when))}")
    return "\n".join([*lines, f"({_place(result.task)}; -v shows the whole result)"])


def _tail(values: t.Mapping[str, t.Any]) -> list[str]:
    """The last lines of a command's error output, or of its output where it printed no error."""
    for key in ("stderr", "module_stderr", "stdout", "module_stdout"):
        said = [line.rstrip() for line in str(values.get(key) or "").splitlines() if line.strip()]
        if said:
            return said[-TAIL_LINES:]
    return []


def _role(task: t.Any) -> str:
    """The role whose work a task is; empty for a task of a play itself."""
    above = task
    while above is not None:
        role = getattr(above, "_role", None)
        if role is not None and role.get_name() != SHARED_ROLE:
            return role.get_name()
        above = getattr(above, "_parent", None)
    return ""


def _place(task: t.Any) -> str:
    return f"task '{task.get_name().strip()}', {task.get_path()}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
