# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to the Proxmox API through proxmoxer, with one kind of error. ``connect`` makes it."""

from __future__ import annotations

import typing as t
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import cannot

if t.TYPE_CHECKING:
    from collections.abc import Iterator


class ApiError(Exception):
    """What Proxmox, or the way to it, answered instead of a result.

    ``status`` is the HTTP status, or None where there was no answer. ``cause`` and ``remedy`` are parts of the house's
    sentence; who calls knows the verb and the object.
    """

    def __init__(self, cause: str, remedy: str, status: int | None = None) -> None:
        super().__init__(f"{cause}. {remedy}.")
        self.cause = cause
        self.remedy = remedy
        self.status = status


@dataclass(frozen=True)
class Client:
    """A connection. ``identity`` is who Proxmox takes us for: ``user@realm`` or ``user@realm!token``."""

    resource: t.Any
    identity: str
    host: str
    explain: t.Callable[[Exception], ApiError]
    transport_errors: tuple[type[Exception], ...]

    def call(self, method: str, path: str, **arguments: t.Any) -> t.Any:
        """Make one API call and return its data. ``path`` has no leading slash. Raises ApiError, and nothing else.

        Arguments of None are left out. To unset a key is ``delete=<key>``, never None.
        """
        # Here and not above: who only wants an error needs no proxmoxer.
        from proxmoxer.core import ResourceException

        try:
            return getattr(self.resource(path), method)(**arguments)
        except ResourceException as error:
            raise _from_answer(error, self.identity) from error
        except self.transport_errors as error:
            raise self.explain(error) from error


@contextmanager
def doing(verb: str, subject: str, where: str) -> Iterator[None]:
    """Turn an ApiError that is raised in here into the house's sentence (SlipwayError) about this work."""
    try:
        yield
    except ApiError as error:
        raise cannot(verb, subject, where, error.cause, error.remedy) from error


def _from_answer(error: t.Any, identity: str) -> ApiError:
    """Turn proxmoxer's ResourceException into ApiError: the server's words on one line, the remedy by its status."""
    words = str(error.content or error.status_message or "no reason given")
    if isinstance(error.errors, dict) and set(error.errors) != {"errors"}:
        words += "".join(f"; {name}: {text}" for name, text in sorted(error.errors.items()))
    cause = f"Proxmox answered {error.status_code} {' '.join(words.split()).rstrip('.! ')}"
    remedies = {
        400: "Correct the option that it names",
        401: f"Check user, token and secret of '{identity}'",
        403: f"Give '{identity}' the privilege that it names, or use an identity that has it",
        595: "Check that the node is up: the API host could not reach it",
        596: "Check that the node is up: the API host could not reach it",
    }
    return ApiError(cause, remedies.get(error.status_code, "See the node's journal (pvedaemon)"), error.status_code)
