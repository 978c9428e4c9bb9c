"""One loop contract for every duty of the supervisor.

A duty has `tick()`, which does what is due and returns the seconds until it wants to be
called again; tests call it directly. A `Loop` is the thread that does so. A tick that
raises is a bug in Holdfast: the loop reports it, and the supervisor ends the worker, whose
leases then do their work. Nothing is worse than a worker that lives with a dead thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Duty(Protocol):
    """Something the supervisor does over and over."""

    @property
    def name(self) -> str: ...

    def tick(self) -> float:
        """Do what is due; seconds until the next call is wanted."""
        ...


class Loop:
    """The thread of one duty."""

    def __init__(self, duty: Duty, failed: Callable[[str, BaseException], None]) -> None:
        self._duty = duty
        self._failed = failed
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"holdfast-{duty.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Call the duty's tick soon, whatever it had asked for."""
        self._wake.set()

    def stop(self) -> None:
        """Let the tick that is running finish, and no other begin."""
        self._stopping = True
        self._wake.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the thread; whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping:
                wait = self._duty.tick()
                if wait > 0 and not self._stopping:
                    self._wake.wait(wait)
                self._wake.clear()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the worker must end
            self._failed(self._duty.name, error)
