"""Why a request was refused: one value, for pages and for the API.

Owns the way from an error of Holdfast to a status of HTTP and a sentence. What is not ours is not
described to the visitor: it is logged under a number that the answer names.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from holdfast.core.errors import (
    ConfigError,
    HoldfastError,
    IllegalTransition,
    PayloadError,
    PayloadMismatch,
    StoreError,
    StoreUnavailable,
    TaskNotFound,
    UniqueConflict,
    UnknownTask,
    UnreadableRow,
    UpstreamEnded,
    WaitTimeout,
)
from holdfast.core.redaction import redact
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.web.allowed import operator_verbs, workflow_verbs

__all__ = ["AGAIN_SOON", "Problem", "Refusal", "problem_of"]

_log = logging.getLogger("holdfast.web")
AGAIN_SOON: Final = {"Retry-After": "5"}
"""Of what may well work some seconds later."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal, in the fields of RFC 9457 and those of its kind."""

    status: int
    kind: str
    """For programs: `task_not_found`, `illegal_transition`, …"""
    detail: str
    more: dict[str, Any] = field(default_factory=dict)
    """What else is known: the verb, the status, the path of the error in the body."""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The status in words."""
        return HTTPStatus(self.status).phrase


class Refusal(Exception):
    """Raised by a handler: answer this."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(status, kind, detail, more, headers or {})


def problem_of(error: Exception) -> Problem:
    """What to answer for an error that a handler raised."""
    match error:
        case Refusal():
            return error.problem
        case HoldfastError():
            return _of_ours(error)
        case _:
            return _unexpected(error)


def _of_ours(error: HoldfastError) -> Problem:
    said = redact(str(error))
    match error:
        case TaskNotFound():
            return Problem(404, "task_not_found", said)
        case UnknownTask():
            return Problem(404, "unknown_task", said)
        case IllegalTransition(status=WorkflowStatus() as whole):
            facts: dict[str, Any] = {
                "workflow_id": str(error.task_id),
                "verb": error.verb,
                "workflow_status": whole.value,
                "allowed": list(workflow_verbs(whole)),
            }
            return Problem(409, "illegal_transition", said, facts)
        case IllegalTransition(status=TaskStatus() as stands):
            more: dict[str, Any] = {
                "task_id": str(error.task_id),
                "verb": error.verb,
                "task_status": stands.value,
                "allowed": list(operator_verbs(stands)),
            }
            kind = "upstream_ended" if isinstance(error, UpstreamEnded) else "illegal_transition"
            return Problem(409, kind, said, more)
        case PayloadMismatch():
            return Problem(409, "payload_mismatch", said, {"task_id": str(error.task_id)})
        case UniqueConflict():
            return Problem(409, "unique_conflict", said, {"task_id": str(error.task_id)})
        case PayloadError():
            status = 413 if error.problem == "too_large" else 422
            return Problem(
                status, "payload", said, {"path": _in_calls(error), "place": error.place}
            )
        case ConfigError():
            return Problem(422, "invalid", said, {"path": error.option})
        case WaitTimeout():
            return Problem(504, "timeout", said, headers=dict(AGAIN_SOON))
        case UnreadableRow():
            return Problem(409, "unreadable_row", said, {"table": error.table, "key": error.key})
        case StoreUnavailable():
            _log.warning("%s", said)
            return Problem(503, "store_unavailable", said, headers=dict(AGAIN_SOON))
        case StoreError():
            _log.warning("%s", said)
            return Problem(503, "store", said, headers=dict(AGAIN_SOON))
        case _:
            return Problem(409, "refused", said)


def _in_calls(error: PayloadError) -> str | None:
    """Where it stands in the body of a send: of many, in which call."""
    if error.place is None:
        return error.path
    return f"calls[{error.place}]" + (f".{error.path}" if error.path else "")


def _unexpected(error: Exception) -> Problem:
    number = secrets.token_hex(4)
    _log.error("request failed (%s)", number, exc_info=error)
    detail = f"something is wrong here; the log of this process has it under {number}"
    return Problem(500, "defect", detail, {"log": number})
