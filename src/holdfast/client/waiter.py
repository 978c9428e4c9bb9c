"""Waiting for tasks, and workflows, to end: one thread for each app, however many wait.

Invariant: an end that comes after its watch was made is heard, or found by the next poll, at
least every second or so; a look asks for all ids at once. Whoever watches looks once by itself,
after that: who has ended before needs no thread. Where nobody listens yet, the thread looks
once more when it does. Whoever waits sleeps on a lock or a future of its own.

Failure: while the database is away the thread keeps trying and the watchers keep waiting
(their own timeouts end that). An error that no repetition cures goes to every watcher.
The thread ends when nobody has waited for a while, and is started again on demand.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, Self, TypeAlias

from holdfast.client.awaited import Awaited
from holdfast.core.errors import HoldfastError, StoreError, StoreUnavailable
from holdfast.store.op import Channel
from holdfast.store.protocol import Listener, Store

__all__ = ["Waiter", "Watch", "parts"]

POLL: Final = 1.0
LINGER: Final = 10.0
CHUNK: Final = 1_000
MISSING_EVERY: Final = 10
"""At each of so many polls it is asked whether the watched tasks exist at all."""
REST: Final = 0.005
"""Least time between two looks at everything, so that a burst of hints is a few looks."""
SAVED: Final = 4 * REST
"""So much of it may be made up for later: a hint after a quiet moment is not kept waiting."""

Heard: TypeAlias = Callable[[bytes, Any], None]
"""Called with how it ended, or with an exception."""
_log = logging.getLogger("holdfast.client")


class Watch:
    """Who wants to hear how some of one kind end. Each is reported once; close it when done.

    Look how they stand after making one, `drop` those that have ended, and then `begin`.
    """

    __slots__ = ("heard", "is_heard", "kind", "open_ids", "_waiter")

    def __init__(
        self, waiter: Waiter, ids: Iterable[bytes], heard: Heard, kind: Awaited[Any]
    ) -> None:
        self.heard = heard
        self.is_heard = False
        """Whether somebody listens since it was made."""
        self.kind = kind
        self.open_ids = set(ids)
        self._waiter = waiter

    def drop(self, ids: Iterable[bytes]) -> None:
        """These are no longer of interest."""
        self._waiter.forget(self, ids)

    def begin(self) -> None:
        """Hear of those that are left from now on."""
        if not self.is_heard:
            self._waiter.look_at(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiter.forget(self, list(self.open_ids))


class _Board:
    """Who watches what, of one kind."""

    def __init__(self) -> None:
        self.watches: dict[bytes, list[Watch]] = {}
        self.fresh: set[bytes] = set()
        """Not looked up yet."""


class Waiter:
    """Watches the ends of tasks and workflows for everybody in this process."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._boards: defaultdict[Awaited[Any], _Board] = defaultdict(_Board)
        self._thread: threading.Thread | None = None
        self._listener: Listener | None = None
        self._woken = threading.Event()
        self._closed = False

    def watch(self, ids: Collection[bytes], heard: Heard, kind: Awaited[Any]) -> Watch:
        """Begin to watch. `heard` is called on the waiter's thread and must return at once."""
        watch = Watch(self, ids, heard, kind)
        with self._lock:
            board = self._boards[kind]
            for id in watch.open_ids:
                board.watches.setdefault(id, []).append(watch)
            watch.is_heard = self._listener is not None
        return watch

    def look_at(self, watch: Watch) -> None:
        """Look these up once somebody listens."""
        with self._lock:
            if not watch.open_ids:
                return
            self._boards[watch.kind].fresh |= watch.open_ids
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="holdfast-waiter", daemon=True
                )
                self._thread.start()
        self._wake()

    def forget(self, watch: Watch, ids: Iterable[bytes]) -> None:
        """Stop watching these."""
        with self._lock:
            watches = self._boards[watch.kind].watches
            for id in ids:
                left = [other for other in watches.get(id, ()) if other is not watch]
                if left:
                    watches[id] = left
                else:
                    watches.pop(id, None)
                watch.open_ids.discard(id)

    def watchers(self, id: bytes | None = None) -> int:
        """How many watch this one; without an id, how many are watched."""
        with self._lock:
            boards = [board.watches for board in self._boards.values()]
        if id is None:
            return sum(map(len, boards))
        return sum(len(watches.get(id, ())) for watches in boards)

    def close(self) -> None:
        """End the thread; whoever still waits hears no more."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self._wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._fail(StoreError("the app was closed while this was waiting"))

    def _wake(self) -> None:
        self._woken.set()
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
                    self._woken.wait(_jittered(POLL))
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            self._fail(error)

    def _ended(self) -> bool:
        with self._lock:
            if self._closed or self._is_idle():
                self._thread = None
                return True
            return False

    def _is_idle(self) -> bool:
        return not any(board.watches for board in self._boards.values())

    def _listen(self) -> None:
        with closing(self._store().listen(Channel.DONE)) as listener:
            self._listener = listener
            try:
                self._hear(listener)
            finally:
                # Those who watch from here on are looked up once more, or by the next listener.
                self._listener = None

    def _hear(self, listener: Listener) -> None:
        """Report ends until nobody has waited for a while."""
        polls = 0
        poll_at = rested_at = 0.0
        leave_at: float | None = None
        while not self._closed:
            self._woken.clear()
            fresh, is_idle = self._take_fresh()
            began = time.monotonic()
            if is_idle:
                leave_at = leave_at or began + LINGER
                if began >= leave_at:
                    return
                # Whoever comes meanwhile may not wake us, and what is heard may be for them.
                if listener.wait(min(POLL, leave_at - began)):
                    poll_at = 0.0
                continue
            leave_at = None
            if began >= poll_at:
                self._look(None)
                if polls % MISSING_EVERY == MISSING_EVERY - 1:
                    self._look_for_missing()
                polls += 1
                ended = time.monotonic()
                poll_at = ended + _jittered(POLL)
                rested_at = max(rested_at, began - SAVED) + (ended - began) + REST
            elif fresh:
                self._look(fresh)
            if listener.wait(max(0.0, poll_at - time.monotonic())):
                time.sleep(max(0.0, rested_at - time.monotonic()))
                poll_at = 0.0

    def _take_fresh(self) -> tuple[dict[Awaited[Any], set[bytes]], bool]:
        """What is to be looked up, and whether nobody watches anything."""
        fresh: dict[Awaited[Any], set[bytes]] = {}
        with self._lock:
            for kind, board in self._boards.items():
                if board.fresh:
                    fresh[kind], board.fresh = board.fresh, set()
            return fresh, self._is_idle()

    def _look(self, ids: Mapping[Awaited[Any], set[bytes]] | None) -> None:
        """Ask how these (or all) that are watched stand, and report those that have ended."""
        for kind, part in self._watched(ids):
            for id, ending in self._store().run(kind.endings(part, None)).items():
                self._report(kind, id, ending)

    def _look_for_missing(self) -> None:
        """What was deleted while somebody waited for it will never end."""
        for kind, part in self._watched(None):
            known: Collection[bytes] = self._store().run(kind.statuses(part))
            for id in part:
                if id not in known:
                    self._report(kind, id, kind.missing(id))

    def _watched(
        self, ids: Mapping[Awaited[Any], set[bytes]] | None
    ) -> Iterator[tuple[Awaited[Any], Sequence[bytes]]]:
        with self._lock:
            watched = [(kind, [*board.watches]) for kind, board in self._boards.items()]
        for kind, all_of_it in watched:
            fresh = None if ids is None else ids.get(kind, ())
            for part in parts([id for id in all_of_it if fresh is None or id in fresh]):
                yield kind, part

    def _report(self, kind: Awaited[Any], id: bytes, news: object) -> None:
        with self._lock:
            watches = self._boards[kind].watches.pop(id, [])
            for watch in watches:
                watch.open_ids.discard(id)
        for watch in watches:
            watch.heard(id, news)

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self._thread = None
            watched = [(kind, id) for kind, board in self._boards.items() for id in board.watches]
        if not isinstance(error, HoldfastError):
            _log.exception("the waiter's thread ended")
        for kind, id in watched:
            self._report(kind, id, error)


def parts(ids: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """As many at a time as one statement asks for."""
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.75, 1.25)
