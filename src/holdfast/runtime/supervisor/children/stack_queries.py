"""Stacks on demand: asking a child where its code is, and waiting for the answer."""

from __future__ import annotations

import threading

from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.wire.messages import Stack, Stacked


class StackQueries:
    """Questions that are under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 1
        self._waiting: dict[int, tuple[threading.Event, list[str]]] = {}

    def ask(self, assignment: Assignment, patience: float = 2.0) -> str | None:
        """The stack of a running task; None if its child cannot answer now."""
        with self._lock:
            ticket, self._next = self._next, self._next + 1
            event, answer = self._waiting[ticket] = threading.Event(), []
        try:
            assignment.child.say(Stack(ticket, assignment.slot))
            event.wait(patience)
        finally:
            with self._lock:
                del self._waiting[ticket]
        return answer[0] if answer else None

    def answered(self, message: Stacked) -> None:
        """An answer came in."""
        with self._lock:
            waiting = self._waiting.get(message.ticket)
        if waiting is not None:
            event, answer = waiting
            answer.append(message.text)
            event.set()
