"""Where somebody may watch sends and runs from outside: traces.

Owns the shape of such a watcher, and the context that travels in a task's row (`trace_context`): a
W3C `traceparent` as it is, or a JSON object where there is more to carry. Nothing here watches;
`contrib/otel.py` does. Without a watcher a send and a run ask one question more, and that is all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from holdfast.core.result import TaskError

__all__ = [
    "RunFacts",
    "RunTrace",
    "SendTrace",
    "Tracing",
    "carried",
    "current_trace_id",
    "learn_current",
    "to_carry",
    "trace_id_of",
]

LONGEST: Final = 8_192
"""Characters of a context; with more than that, only the `traceparent` is kept."""
_PARENT: Final = "traceparent"
_FORM: Final = re.compile(
    r"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?", re.A
)


class RunFacts(NamedTuple):
    """What is told of a run before it begins."""

    id: bytes
    task: str
    version: int
    queue: str
    attempt: int
    workflow_id: bytes | None
    trace_context: str | None


class SendTrace(Protocol):
    """One send, or many in one transaction, while they are made."""

    @property
    def context(self) -> str | None:
        """What their rows carry."""
        ...

    def sent(self, ids: Sequence[bytes]) -> None:
        """These tasks are stored."""
        ...


class RunTrace(Protocol):
    """One run while it is made."""

    def ended(self, outcome: str, error: TaskError | None) -> None:
        """The code has ended so; what it raised is part of `error`."""
        ...


class Tracing(Protocol):
    """A watcher. What it raises must be nothing but what the block raised."""

    def send(self, queue: str, task: str, number: int) -> AbstractContextManager[SendTrace]:
        """Around a send of so many tasks."""
        ...

    def process(self, run: RunFacts) -> AbstractContextManager[RunTrace]:
        """Around the code of a run, in its thread and its context."""
        ...


_probe: Callable[[], str | None] | None = None
"""Says the id of the trace that is current here, if somebody traces."""


def learn_current(probe: Callable[[], str | None]) -> None:
    """From now on this says which trace is current."""
    global _probe
    _probe = probe


def current_trace_id() -> str | None:
    """The id of the trace that is current here; None if nobody traces."""
    return None if _probe is None else _probe()


def to_carry(carrier: Mapping[str, str]) -> str | None:
    """What a row keeps of a context."""
    found = {key: value for key, value in carrier.items() if value}
    if not found:
        return None
    text = json.dumps(found)
    if found.keys() == {_PARENT} or len(text) > LONGEST:
        parent = found.get(_PARENT)
        return parent if parent is not None and len(parent) <= LONGEST else None
    return text


def carried(context: str | None) -> dict[str, str]:
    """The same read back; empty if it is none, as after a hand in the table."""
    if not context or len(context) > LONGEST:
        return {}
    if not context.startswith("{"):
        return {_PARENT: context}
    try:
        found = json.loads(context)
    except ValueError:
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def trace_id_of(context: str | None) -> str | None:
    """The id of the trace, for log lines."""
    found = _FORM.fullmatch(carried(context).get(_PARENT, ""))
    return None if found is None else found["trace"]
