"""The output of one task among several in the same process.

Owns the pieces between the stream objects and the supervisor: whole lines, or what a task
has left unfinished when it ends.
"""

from __future__ import annotations

import threading
from typing import Final

from holdfast.core.identity import running
from holdfast.runtime.child.context import TaskContext
from holdfast.runtime.child.stdio import OutputSink
from holdfast.runtime.child.supervisor_link import SupervisorLink
from holdfast.runtime.wire.messages import Said

_HOLD: Final = 8192
_PIECE: Final = 256 * 1024


class TaskOutput:
    """What one run says. Any thread that has its context may say something."""

    def __init__(self, link: SupervisorLink, slot: int) -> None:
        self._link = link
        self._slot = slot
        self._held = bytearray()
        self._lock = threading.Lock()

    def say(self, data: bytes) -> None:
        with self._lock:
            self._held += data
            if b"\n" in data or len(self._held) > _HOLD:
                self._send()

    def settle(self) -> None:
        """The run has ended: send what is left."""
        with self._lock:
            if self._held:
                self._send()

    def _send(self) -> None:
        held = bytes(self._held)
        self._held.clear()
        for start in range(0, len(held), _PIECE):
            self._link.send(Said(self._slot, held[start : start + _PIECE]))


def current_sink() -> OutputSink | None:
    """Where the words of the running code go; None: to the process's own output."""
    context = running.get()
    return context.output_sink if isinstance(context, TaskContext) else None
