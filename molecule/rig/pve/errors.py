# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of the API, with the status codes and words that Proxmox VE uses for them."""

from __future__ import annotations


class ApiError(Exception):
    """What a client is told: an HTTP status, a text and, for refused parameters, a reason for each of them."""

    def __init__(self, status: int, message: str, errors: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors

    def for_terminal(self) -> str:
        """The error as ``pct`` and ``pvesh`` print it: errors without a status of their own appear bare."""
        head = self.message if self.status == 500 else f"{self.status} {self.message}"
        return "\n".join([head, *(f"{key}: {why.rstrip()}" for key, why in sorted((self.errors or {}).items()))])


def died(message: str) -> ApiError:
    """A plain failure: Proxmox answers 500 for everything that is not a question of form or of rights."""
    return ApiError(500, message)


def refused(errors: dict[str, str]) -> ApiError:
    """Parameters that do not fit the schema or each other."""
    return ApiError(400, "Parameter verification failed.", errors)


def forbidden(what: str) -> ApiError:
    """A right that is missing."""
    return ApiError(403, f"Permission check failed ({what})")


def unauthorized(why: str) -> ApiError:
    """Nobody, or not who they say."""
    return ApiError(401, why)


def not_implemented(method: str, path: str) -> ApiError:
    """A path or method that does not exist."""
    return ApiError(501, f"Method '{method} {path}' not implemented")
