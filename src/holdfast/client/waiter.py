"""Waiting for tasks to end: one thread for each app, however many wait.

Invariant: every watched id is looked up once soon after it is watched, and again at every
hint and at least every second or so; a look asks for all ids at once. A hint may be lost,
the poll is the truth. Whoever waits sleeps on a lock or a future of its own.

Failure: while the database is away the thread keeps trying and the watchers keep waiting
(their own timeouts end that). An error that no repetition cures goes to every watcher.
The thread ends when nobody has waited for a while, and is started again on demand.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias

from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.core.records import Ending
from holdfast.store.inspect import endings
from holdfast.store.op import Channel
from holdfast.store.protocol import Listener, Store

__all__ = ["Waiter", "Watch"]

POLL: Final = 1.0
LINGER: Final = 10.0
CHUNK: Final = 1_000
REST: Final = 0.005
"""Least time between two looks at everything, so that a burst of hints is one look."""

Heard: TypeAlias = Callable[[bytes, "Ending | Exception"], None]
_log = logging.getLogger("holdfast.client")


class Watch:
    """The wish to hear how some tasks end. Each is reported once; close it when done."""

    __slots__ = ("heard", "open_ids", "_waiter")

    def __init__(self, waiter: Waiter, ids: Iterable[bytes], heard: Heard) -> None:
        self.heard = heard
        self.open_ids = set(ids)
        self._waiter = waiter

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiter.forget(self)


class Waiter:
    """Watches the ends of tasks for everybody in this process."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._watches: dict[bytes, list[Watch]] = {}
        self._fresh: set[bytes] = set()
        self._thread: threading.Thread | None = None
        self._listener: Listener | None = None
        self._nudge = threading.Event()
        self._closed = False

    def watch(self, ids: Collection[bytes], heard: Heard) -> Watch:
        """Begin to watch. `heard` is called on the waiter's thread and must return at once."""
        watch = Watch(self, ids, heard)
        with self._lock:
            for task_id in watch.open_ids:
                self._watches.setdefault(task_id, []).append(watch)
            self._fresh |= watch.open_ids
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="holdfast-waiter", daemon=True
                )
                self._thread.start()
        self._wake()
        return watch

    def forget(self, watch: Watch) -> None:
        """Stop watching."""
        with self._lock:
            for task_id in watch.open_ids:
                left = [other for other in self._watches.get(task_id, ()) if other is not watch]
                if left:
                    self._watches[task_id] = left
                else:
                    self._watches.pop(task_id, None)
            watch.open_ids.clear()

    def close(self) -> None:
        """End the thread; whoever still waits hears no more."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self._wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _wake(self) -> None:
        self._nudge.set()
        listener = self._listener
        if listener is not None:
            listener.wake()

    def _run(self) -> None:
        try:
            while not self._ended():
                try:
                    self._listen()
                except StoreUnavailable as error:
                    _log.warning("waiting for tasks: %s; still trying", error)
                    self._nudge.wait(_jittered(POLL))
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            self._fail(error)
        finally:
            self._listener = None

    def _ended(self) -> bool:
        with self._lock:
            if self._closed or not self._watches:
                self._thread = None
                return True
            return False

    def _listen(self) -> None:
        with self._store().listen(Channel.DONE) as listener:
            self._listener = listener
            poll_at = 0.0
            rested_at = 0.0
            idle_since: float | None = None
            while not self._closed:
                self._nudge.clear()
                with self._lock:
                    fresh, self._fresh = self._fresh, set()
                    watched = len(self._watches)
                now = time.monotonic()
                if not watched:
                    idle_since = now if idle_since is None else idle_since
                    if now - idle_since >= LINGER:
                        return
                    listener.wait(LINGER)
                    continue
                idle_since = None
                if now >= poll_at:
                    self._look(None)
                    poll_at = time.monotonic() + _jittered(POLL)
                    rested_at = 2 * time.monotonic() - now + REST
                elif fresh:
                    self._look(fresh)
                if listener.wait(max(0.0, poll_at - time.monotonic())):
                    pause = rested_at - time.monotonic()
                    if pause > 0:
                        time.sleep(pause)
                    poll_at = 0.0

    def _look(self, ids: set[bytes] | None) -> None:
        """Ask how these (or all) watched tasks stand, and report those that have ended."""
        with self._lock:
            wanted = [task_id for task_id in self._watches if ids is None or task_id in ids]
        for start in range(0, len(wanted), CHUNK):
            part = wanted[start : start + CHUNK]
            for task_id, ending in self._store().run(endings(part)).items():
                self._report(task_id, ending)

    def _report(self, task_id: bytes, news: Ending | Exception) -> None:
        with self._lock:
            watches = self._watches.pop(task_id, [])
            for watch in watches:
                watch.open_ids.discard(task_id)
        for watch in watches:
            watch.heard(task_id, news)

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self._thread = None
            ids = list(self._watches)
        if not isinstance(error, HoldfastError):
            _log.exception("the waiter's thread ended")
        for task_id in ids:
            self._report(task_id, error)


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.75, 1.25)
