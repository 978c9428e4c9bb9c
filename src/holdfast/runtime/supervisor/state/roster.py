"""The children of this worker, and what state each is in.

Owns their states. A child is given tasks while it is READY, and only then; whoever makes it ready,
lets it go, or finds it dead says so here, and the rest of the supervisor sees it at once.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildHandle, ChildState
from holdfast.runtime.wire.messages import Withdraw


class Roster:
    """Shares the ledger's lock; its methods take it."""

    def __init__(self, lock: threading.RLock, changed: threading.Condition) -> None:
        self._lock = lock
        self._changed = changed
        """Notified when a child can be given tasks, or can leave."""
        self.children: dict[int, ChildHandle] = {}
        """For the ledger and its placement only, which hold the lock."""

    def all(self) -> list[ChildHandle]:
        """Every child that is not known to be dead."""
        with self._lock:
            return list(self.children.values())

    def ready(self) -> list[ChildHandle]:
        """Those that are given tasks."""
        with self._lock:
            return [c for c in self.children.values() if c.state is ChildState.READY]

    def get(self, number: int) -> ChildHandle | None:
        """The child of this number, unless it is dead."""
        return self.children.get(number)

    def add(self, child: ChildHandle) -> None:
        """A child is being made."""
        with self._lock:
            self.children[child.number] = child

    def forked(self, child: ChildHandle, pid: int) -> None:
        """It has a process."""
        with self._lock:
            child.pid = pid
            self._welcome(child)

    def greeted(self, child: ChildHandle) -> None:
        """It says that it can take tasks."""
        with self._lock:
            child.greeted = True
            self._welcome(child)

    def _welcome(self, child: ChildHandle) -> None:
        # Without its pid it could not be ended.
        if child.state is ChildState.STARTING and child.greeted and child.pid is not None:
            child.state = ChildState.READY
            self._changed.notify_all()

    def let_go(self, child: ChildHandle) -> bool:
        """Give it nothing more; whether it has nothing in hand."""
        with self._lock:
            if child.state is ChildState.READY:
                child.state = ChildState.LEAVING
            return not child.hand

    def let_go_idle(
        self, children: Iterable[ChildHandle], most: int | None = None
    ) -> list[ChildHandle]:
        """Give nothing more to those of them that have nothing in hand; which these are."""
        with self._lock:
            idle = [c for c in children if c.is_ready and not c.hand][:most]
            for child in idle:
                child.state = ChildState.LEAVING
            return idle

    def mark_breach(self, child: ChildHandle, breach: str) -> list[Assignment] | None:
        """It did what no child may; what it ran, or None if it was marked already, or died."""
        with self._lock:
            if child.breach is not None or child.state is ChildState.DEAD:
                return None
            child.breach = breach
            child.state = ChildState.LEAVING
            begun = {entry.slot for entry in child.page.begun()}
            return [run for run in child.hand.values() if run.slot in begun]

    def died(self, child: ChildHandle) -> list[Assignment]:
        """It is dead: nothing more is given to it; what it had been handed, which has to end."""
        with self._lock:
            child.state = ChildState.DEAD
            self.children.pop(child.number, None)
            return [run for run in child.hand.values() if run.started]

    def found_slow(self, child: ChildHandle, begun: Collection[int]) -> list[int]:
        """What it runs takes longer than was guessed; the slots that wait behind that.

        Nothing more is put behind it until it has ended.
        """
        with self._lock:
            if not any(slot in child.hand for slot in begun):
                return []
            child.slow = True
            return child.waiting(begun)

    def take_back(self, queues: Collection[str]) -> None:
        """Have children give back what they have not begun of these queues."""
        with self._lock:
            for child in self.children.values():
                waiting = child.waiting([entry.slot for entry in child.page.begun()])
                slots = [s for s in waiting if child.hand[s].task.queue_name in queues]
                if slots:
                    child.say(Withdraw(slots))

    def wait_ready(self, seconds: float) -> bool:
        """Whether a child can be given tasks, after a wait of so long at the most."""
        with self._lock:
            if not self.ready():
                self._changed.wait(seconds)
            return bool(self.ready())

    def wait(self, seconds: float) -> None:
        """Wait until something has changed, but not longer than this."""
        with self._lock:
            self._changed.wait(seconds)
