"""Stacks on demand: asking a child where its code is, and waiting for the answer."""

from __future__ import annotations

import threading

from holdfast.core.text import clean
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.supervisor.state.child_handle import ChildHandle
from holdfast.runtime.wire.messages import Stack, Stacked

_LONGEST = 256 * 1024


class StackQueries:
    """Questions that are under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 1
        self._waiting: dict[int, tuple[ChildHandle, threading.Event, list[str]]] = {}

    def ask(self, assignment: Assignment, patience: float = 2.0) -> str | None:
        """The stack of a running task; None if its child cannot answer now."""
        with self._lock:
            ticket, self._next = self._next, self._next + 1
            event, answer = threading.Event(), list[str]()
            self._waiting[ticket] = assignment.child, event, answer
        try:
            assignment.child.say(Stack(ticket, assignment.slot))
            event.wait(patience)
        finally:
            with self._lock:
                del self._waiting[ticket]
        return answer[0] if answer else None

    def answered(self, child: ChildHandle, message: Stacked) -> None:
        """An answer came in."""
        with self._lock:
            waiting = self._waiting.get(message.ticket)
        if waiting is not None and waiting[0] is child:
            _, event, answer = waiting
            answer.append(clean(message.text, _LONGEST))
            event.set()
