# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to the Proxmox API through proxmoxer, with one kind of error. ``connect`` makes it.

What fails in passing is tried again for a while, but only where that is safe. Reading always is. Anything else is sent
again where nothing was done, and where it may have been done only if the caller can look that up first.
"""

from __future__ import annotations

import enum
import re
import time
import typing as t
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import cannot

if t.TYPE_CHECKING:
    from collections.abc import Iterator

# How long one call is tried again. A restart of pveproxy takes seconds; Proxmox itself waits 10 for a lock.
RETRY_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
# 500 is how Proxmox says nearly everything that it refuses, so a plain one is not tried until the end of that time.
PLAIN_500_TRIES = 3

# Statuses other than 500. pveproxy's own, of the way to a node (AnyEvent::HTTP): 595 is no connection, 596 and 597 a
# connection that broke. 502 and 504 come from a proxy before it.
UNDONE_STATUSES = (503, 595)
OPEN_STATUSES = (502, 504, 596, 597)
# The lock of a configuration (PVE/Tools.pm, lock_file) and those of the cluster (PVE/Cluster.pm, cfs_lock).
CONTENTION = re.compile(r"can't (?:lock file|ac?quire lock) .*timeout|got lock (?:request )?timeout", re.DOTALL)

# What a look-up answers where the work was done and no task is left to wait for.
DONE = True
# Asked whether a request whose answer was lost has been done: DONE, the UPID of a task that is at it, or None for no.
Worked = t.Callable[[], t.Optional[t.Union[str, bool]]]


class Fate(enum.Enum):
    """What is known of a request that brought no result."""

    FINAL = "it would bring the same again"
    UNREACHED = "no connection came about"
    UNDONE = "nothing was done, and in a moment it may be"
    OPEN = "it may have been done"


class ApiError(Exception):
    """What Proxmox, or the way to it, answered instead of a result.

    ``status`` is the HTTP status, or None where there was no answer. ``cause`` and ``remedy`` are parts of the house's
    sentence; who calls knows the verb and the object. ``fate`` says whether it makes sense to try again.
    """

    def __init__(self, cause: str, remedy: str, status: int | None = None, fate: Fate = Fate.FINAL) -> None:
        super().__init__(f"{cause}. {remedy}.")
        self.cause = cause
        self.remedy = remedy
        self.status = status
        self.fate = fate


@dataclass
class Patience:
    """How long something is tried again. ``sleep`` and ``clock`` are those of ``time`` unless a test gives its own."""

    seconds: float = RETRY_SECONDS
    clock: t.Callable[[], float] | None = None
    sleep: t.Callable[[float], None] | None = None

    def now(self) -> float:
        return (self.clock or time.monotonic)()

    def pauses(self, first: float = FIRST_PAUSE_SECONDS, longest: float = LONGEST_PAUSE_SECONDS) -> Iterator[float]:
        """From now on: sleep between two tries, longer each time, and yield for how long; ends when the time is up."""
        return self._pauses(self.now(), first, longest)

    def _pauses(self, begun: float, pause: float, longest: float) -> Iterator[float]:
        slept = 0.0
        # What was slept counts too: the time is up also on a clock that stands still.
        while max(self.now() - begun, slept) < self.seconds:
            (self.sleep or time.sleep)(pause)
            slept += pause
            yield pause
            pause = min(pause * 1.5, longest)


@dataclass
class Client:
    """A connection. ``identity`` is who Proxmox takes us for: ``user@realm`` or ``user@realm!token``."""

    resource: t.Any
    identity: str
    host: str
    explain: t.Callable[[Exception], ApiError]
    transport_errors: tuple[type[Exception], ...]
    patience: Patience
    # Whether anything was ever answered.
    answered: bool = False
    # Runs a command as root on the node and gives its output, its standard error and its exit status. Only over SSH.
    shell: t.Callable[[list[str]], tuple[str, str, int]] | None = None

    def call(self, method: str, path: str, worked: Worked | None = None, /, **arguments: t.Any) -> t.Any:
        """Make one API call and return its data. ``path`` has no leading slash. Raises ApiError, and nothing else.

        Arguments of None are left out. To unset a key is ``delete=<key>``, never None.

        ``worked`` is asked when a call that changes something may have been done although no good answer came. What it
        answers is the answer then, and only where it says None the call is made again. Without it such a call is not
        made again.
        """
        doubtful = False

        def judge(error: ApiError) -> t.Any:
            nonlocal doubtful
            if not self.answered:
                give_up_unreached(error)
            if method == "get":
                return None
            doubtful = doubtful or error.fate is Fate.OPEN
            # Once it may have been done, a refusal is no proof that it was not: it may refuse to do it twice.
            return _looked_up(worked, error) if doubtful else None

        return persist(lambda: self._once(method, path, arguments), judge, self.patience)

    def run(self, words: list[str]) -> tuple[str, str, int] | None:
        """Run a command on ``host`` that may be run again; None where the connection is one to the API alone. Raises ApiError."""
        shell = self.shell
        if shell is None:
            return None

        def once() -> tuple[str, str, int]:
            try:
                return shell(words)
            except self.transport_errors as error:
                raise self.explain(error) from error

        answer: tuple[str, str, int] = persist(once, lambda error: None, self.patience)
        return answer

    def _once(self, method: str, path: str, arguments: dict[str, t.Any]) -> t.Any:
        # Here and not above: who only wants an error needs no proxmoxer.
        from proxmoxer.core import ResourceException

        try:
            answer = getattr(self.resource(path), method)(**arguments)
        except ResourceException as error:
            self.answered = True
            raise _from_answer(error, self.identity) from error
        except self.transport_errors as error:
            raise self.explain(error) from error
        self.answered = True
        return answer


def persist(once: t.Callable[[], t.Any], judge: t.Callable[[ApiError], t.Any], patience: Patience) -> t.Any:
    """Do something until it succeeds, and return what it gives. Raises the last ApiError.

    ``judge`` is asked at each failure: it gives an answer after all, or None so that it is tried again where the error's
    ``fate`` leaves a chance, or it raises.
    """
    pauses = patience.pauses()
    plain_500 = tries = 0
    while True:
        try:
            return once()
        except ApiError as error:
            answer = judge(error)
            if answer is not None:
                return answer
            tries += 1
            plain_500 += error.status == 500 and error.fate is Fate.OPEN
            given_up = error.fate is Fate.FINAL or plain_500 == PLAIN_500_TRIES
            if given_up or next(pauses, None) is None:
                if tries == 1:
                    raise
                told = f"tried {tries} times, {error.cause}"
                raise type(error)(told, error.remedy, error.status, error.fate) from error


def give_up_unreached(error: ApiError) -> None:
    """A judge for the first contact: an address that does not answer then is wrong rather than busy."""
    if error.fate is Fate.UNREACHED:
        raise error


def _looked_up(worked: Worked | None, error: ApiError) -> str | bool | None:
    """Whether what brought this error has been done all the same. Raises ApiError where that cannot be told."""
    if worked is None:
        raise error
    try:
        return worked()
    except ApiError as unread:
        raise ApiError(
            f"{error.cause}; whether it was done all the same cannot be read ({unread.cause})",
            error.remedy,
            error.status,
        ) from error


@contextmanager
def doing(verb: str, subject: str, where: str) -> Iterator[None]:
    """Turn an ApiError that is raised in here into the house's sentence (SlipwayError) about this work."""
    try:
        yield
    except ApiError as error:
        raise cannot(verb, subject, where, error.cause, error.remedy) from error


def _from_answer(error: t.Any, identity: str) -> ApiError:
    """Turn proxmoxer's ResourceException into ApiError: the server's words on one line, the remedy by its status."""
    # pvesh says the status too, where it has one, and what is wrong with an option on a line of its own.
    words = str(error.content or error.status_message or "no reason given").removeprefix(f"{error.status_code} ")
    if isinstance(error.errors, dict) and set(error.errors) != {"errors"}:
        words += "".join(f"\n{name}: {text}" for name, text in sorted(error.errors.items()))
    lines = [" ".join(line.split()).rstrip(".! ") for line in words.splitlines() if line.strip()]
    told = "; ".join(lines) if error.status_code == 400 else " ".join(words.split()).rstrip(".! ")
    cause = f"Proxmox answered {error.status_code} {told}"
    remedies = {
        400: "Correct the option that it names",
        401: f"Check user, token and secret of '{identity}'",
        403: f"Give '{identity}' the privilege that it names, or use an identity that has it",
        595: "Check that the node is up: the API host could not reach it",
        596: "Check that the node is up: the API host could not reach it",
    }
    fate = fate_of(error.status_code, words)
    remedy = remedies.get(error.status_code, "See the node's journal (pvedaemon)")
    if fate is Fate.UNDONE and CONTENTION.search(words):
        remedy = "Wait for the task that holds the lock, then run again"
    return ApiError(cause, remedy, error.status_code, fate)


def fate_of(status: int, words: str = "") -> Fate:
    """What an HTTP status, with the server's words, says of the request."""
    if status in UNDONE_STATUSES or CONTENTION.search(words):
        return Fate.UNDONE
    return Fate.OPEN if status == 500 or status in OPEN_STATUSES else Fate.FINAL
