"""Whose question is answered next.

Owns the threads that answer. Children take turns: one that asks a thousand things is answered one
of them, then everybody else is, so that nobody waits behind a neighbour's flood. Of two that wait,
the one for which fewer threads are at work comes first.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable

log = logging.getLogger("holdfast.worker")


class Turns:
    """Runs the work that children ask for on a few threads, the children taking turns."""

    def __init__(self, threads: int, name: str = "holdfast-relay") -> None:
        self._changed = threading.Condition()
        self._waiting: dict[Hashable, deque[Callable[[], object]]] = {}
        """In the order of their turns."""
        self._at_work: Counter[Hashable] = Counter()
        self._closed = False
        self._most = threads
        self._name = name
        self._threads: list[threading.Thread] = []
        self._idle = 0

    def give(self, asker: Hashable, work: Callable[[], object]) -> None:
        """Do this when it is the asker's turn."""
        with self._changed:
            self._waiting.setdefault(asker, deque()).append(work)
            if not self._idle and len(self._threads) < self._most:
                name = f"{self._name}-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
                self._threads[-1].start()
            self._changed.notify()

    def close(self) -> None:
        """Do what was given, and end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._waiting or self._closed)
                self._idle -= 1
                if not self._waiting:
                    return
                asker, work = self._next()
            try:
                work()
            except Exception:
                log.exception("a child's question could not be answered")
            finally:
                with self._changed:
                    self._at_work[asker] -= 1
                    if not self._at_work[asker]:
                        del self._at_work[asker]

    def _next(self) -> tuple[Hashable, Callable[[], object]]:
        asker = min(self._waiting, key=lambda found: self._at_work[found])
        works = self._waiting.pop(asker)
        work = works.popleft()
        if works:
            # Behind all others.
            self._waiting[asker] = works
        self._at_work[asker] += 1
        return asker, work
