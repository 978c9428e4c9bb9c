"""What running code says about itself: progress, stage, heartbeats, lines of output.

Owns the pace. A task may call `set_progress` in its innermost loop, so at most one note in
`PERIOD` leaves for each task; what came since is merged and follows, the last one always.
A task's notes leave in order, and all of them before its outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final

from holdfast.runtime.wire.messages import Note

PERIOD: Final = 0.05
_MOST_OUTPUT: Final = 64 * 1024


class _Held:
    """Notes of one task that have not left yet, merged."""

    __slots__ = ("heartbeat", "meta", "output", "progress", "size", "stage")

    def __init__(self) -> None:
        self.heartbeat = False
        self.progress: str | None = None
        self.stage: str | None = None
        self.meta: str | None = None
        self.output: list[str] = []
        self.size = 0

    def merge(self, note: Note) -> None:
        self.heartbeat = self.heartbeat or note.heartbeat
        self.progress = note.progress if note.progress is not None else self.progress
        if note.stage is not None:
            # A stage comes with its own meta, or with none.
            self.stage, self.meta = note.stage, note.meta
        elif note.meta is not None:
            self.meta = note.meta
        if note.output is not None:
            self.output.append(note.output)
            self.size += len(note.output)

    def note(self, slot: int) -> Note:
        output = "".join(self.output) if self.output else None
        return Note(slot, self.heartbeat, self.progress, self.stage, self.meta, output)


class Notes:
    """The notes of every task of one child. Any thread may add."""

    def __init__(self, send: Callable[[Note], object]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._held: dict[int, _Held] = {}
        self.slots: dict[int, float] = {}
        """The tasks that have said something, and when their last note left."""
        self._some = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, note: Note) -> None:
        """Send a note now, or soon if one has just left."""
        with self._lock:
            held = self._held.get(note.slot)
            now = monotonic()
            due = now - self.slots.get(note.slot, 0.0) >= PERIOD
            if due and held is None:
                self.slots[note.slot] = now
                self._send(note)
                return
            if held is None:
                held = self._held[note.slot] = _Held()
            held.merge(note)
            if due or held.size > _MOST_OUTPUT:
                self._release(note.slot, now)
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="holdfast-notes", daemon=True
                )
                self._thread.start()
        self._some.set()

    def settle(self, slot: int) -> None:
        """The task has ended: send what is held, and forget it."""
        if slot not in self.slots:
            return
        with self._lock:
            if slot in self._held:
                self._release(slot, 0.0)
            del self.slots[slot]

    def _release(self, slot: int, now: float) -> None:
        self.slots[slot] = now
        self._send(self._held.pop(slot).note(slot))

    def _run(self) -> None:
        while True:
            self._some.wait()
            self._some.clear()
            while self._held:
                sleep(PERIOD)
                now = monotonic()
                with self._lock:
                    for slot in list(self._held):
                        self._release(slot, now)
