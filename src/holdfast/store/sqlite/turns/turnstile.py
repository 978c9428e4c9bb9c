"""Whose turn it is to write: a fair line across threads and processes.

SQLite has one writer at a time and decides by chance who is next. A busy handler
that sleeps and tries again loses to whoever asks without sleeping: of two workers
at full speed one did nothing at all for seconds. So writers take turns.

Invariant: at most one thread of all processes is between `enter` and `leave`, and
somebody who waits is overtaken by each other waiter about once.

How: two files beside the database. Take the lock on `-turn`, then the lock on
`-lock`, then let go of `-turn`; write; let go of `-lock`. Whoever has just written
finds `-turn` taken by the one who is next, and queues up behind. The threads of one
process wait for a `FairLock` first, so a process asks for one lock at a time.

Failure: the kernel frees both locks when their holder dies. A holder that is stopped
or hangs makes the others' wait end in `StoreUnavailable`, which names it. Writers
that do not use the turnstile (the sqlite3 shell, a caller's own transaction) are
met by the store's retries of BEGIN IMMEDIATE; SQLite's locks, not these, protect the
data.

flock(2) knows no timeout, so a contended wait is made by a thread (`_FileLocks`) that
the waiting thread can give up on; it keeps its place in the kernel's queue for the
next, or gives the turn back when it comes too late.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from threading import get_ident
from time import monotonic

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store import fork
from holdfast.store.sqlite import faults, side_file
from holdfast.store.sqlite.turns import lock_holder

if sys.platform == "win32":  # pragma: no cover - the worker is POSIX only; clients take chances
    _EXCLUSIVE = _AT_ONCE = _FREE = 0

    def flock(fd: int, operation: int) -> None:
        """Nothing: writers on Windows rely on retries."""
else:
    from fcntl import LOCK_EX as _EXCLUSIVE
    from fcntl import LOCK_NB, flock
    from fcntl import LOCK_UN as _FREE

    _AT_ONCE = _EXCLUSIVE | LOCK_NB

_IDLE_SECONDS = 5.0


class FairLock:
    """A lock that is granted strictly in the order of asking, to one thread at a time.

    `threading.Lock` has no order: a thread that releases it and asks again usually wins. Never
    waits without a limit, and refuses a thread that already holds it instead of waiting for itself.
    """

    __slots__ = ("_mutex", "_owner", "_waiting")

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._waiting: deque[tuple[int, threading.Lock]] = deque()

    def acquire(self, timeout: float) -> bool:
        me = get_ident()
        if self._owner == me:
            raise StoreError(
                "this thread is in the middle of another operation on the same database; "
                "a signal handler or a destructor that interrupted it must not use the store"
            )
        try:
            with self._mutex:
                if self._owner is None:
                    self._owner = me
                    return True
                ticket = threading.Lock()
                ticket.acquire()
                self._waiting.append((me, ticket))
            if ticket.acquire(timeout=max(0.0, timeout)):
                return True
            with self._mutex:
                if self._owner == me:
                    # Granted and out of time at once.
                    return True
                self._waiting.remove((me, ticket))
                return False
        except BaseException:
            # Interrupted, perhaps when it was already granted.
            self._withdraw(me)
            raise

    def release(self) -> None:
        with self._mutex:
            if self._waiting:
                self._grant_next()
            else:
                self._owner = None

    def reset(self) -> None:
        """In a forked child: whoever held it or waited for it is not here."""
        self._mutex = threading.Lock()
        self._owner = None
        self._waiting.clear()

    def _withdraw(self, me: int) -> None:
        with self._mutex:
            self._waiting = deque(place for place in self._waiting if place[0] != me)
            if self._owner == me:
                self._grant_next()

    def _grant_next(self) -> None:
        if self._waiting:
            self._owner, ticket = self._waiting.popleft()
            ticket.release()
        else:
            self._owner = None


class Turnstile:
    """The turns of one database. One object for a file in each process; get it from `of`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fair_lock = FairLock()
        self._has_files = path != faults.MEMORY
        self._locks: _FileLocks | None = None
        fork.inherit(self)

    def enter(self, timeout: float) -> None:
        """Wait for the turn; `StoreUnavailable` when it does not come in time."""
        deadline = monotonic() + timeout
        if not self._fair_lock.acquire(timeout):
            raise self._late_among_threads(timeout)
        try:
            if self._locks is None:
                if not self._has_files:
                    return
                self._locks = _FileLocks(self.path)
            if not self._locks.take(deadline):
                raise self._late(timeout, _who(self.path))
        except OSError as error:
            self._fair_lock.release()
            raise StoreUnavailable(
                f"the turn to write to {self.path} cannot be taken: {error.strerror}"
            ) from error
        except BaseException:
            self._fair_lock.release()
            raise

    def leave(self) -> None:
        try:
            if self._locks is not None:
                self._locks.give_back()
        finally:
            self._fair_lock.release()

    def after_fork(self) -> None:
        """In the child: the turn is the parent's, and so are the locks."""
        self._fair_lock.reset()
        if self._locks is not None:
            self._locks.close()
            self._locks = None

    def _late_among_threads(self, timeout: float) -> StoreUnavailable:
        if not self._has_files:
            return StoreUnavailable(
                f"other threads used the database in memory for more than {timeout:g} s"
            )
        # The thread that has the turn may itself be waiting, for a writer that takes no turns.
        who = lock_holder.of_others_write_lock(self.path)
        return self._late(timeout, who or "other threads of this process")

    def _late(self, timeout: float, who: str | None) -> StoreUnavailable:
        by = f"; it is held by {who}" if who else ""
        return StoreUnavailable(
            f"no turn to write to {self.path} within {timeout:g} s{by}: repeat the call, or "
            "look at what keeps that process from finishing its transaction"
        )


_turnstiles: weakref.WeakValueDictionary[str, Turnstile] = weakref.WeakValueDictionary()
_mutex = threading.Lock()


def of(path: str) -> Turnstile:
    """The turnstile of the database at this (resolved) path; one in memory has its own."""
    if path == faults.MEMORY:
        return Turnstile(path)
    with _mutex:
        found = _turnstiles.get(path)
        if found is None:
            found = _turnstiles[path] = Turnstile(path)
        return found


def lock_paths(database: str) -> tuple[str, str]:
    """The two files: of whose turn it is next, and of who is writing."""
    return f"{database}-turn", f"{database}-lock"


def _who(path: str) -> str | None:
    turn, lock = lock_paths(path)
    return (
        lock_holder.of_others_write_lock(path)
        or lock_holder.of_flock(lock)
        or lock_holder.of_flock(turn)
    )


class _FileLocks:
    """Holds the two locks for this process, and waits for them with a time limit.

    Only the thread at the head of the line calls it.
    """

    def __init__(self, database: str) -> None:
        self._descriptors: list[int] = []
        for path in lock_paths(database):
            self._descriptors.append(_open(path, database))
        self._turn, self._lock = self._descriptors
        self._mutex = threading.Lock()
        self._asked = threading.Semaphore(0)
        self._granted = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._waiting = False
        self._wanted = False
        self._has_turn = False
        self._error: OSError | None = None

    def take(self, deadline: float) -> bool:
        """Take both locks, at once if nobody is before us; False if not in time."""
        try:
            if not self._waiting:
                try:
                    flock(self._turn, _AT_ONCE)
                    self._has_turn = True
                    flock(self._lock, _AT_ONCE)
                    self._has_turn = False
                    flock(self._turn, _FREE)
                    return True
                except BlockingIOError:
                    # If it was the second, we are next already; the wait goes on from there.
                    pass
            return self._wait(deadline - monotonic())
        except BaseException:
            # Interrupted: whatever was taken by then must not be kept. (A wait that is still
            # under way gives its locks back itself.)
            if not self._waiting:
                self._has_turn = False
                flock(self._turn, _FREE)
                flock(self._lock, _FREE)
            raise

    def _wait(self, timeout: float) -> bool:
        """Wait for both locks; False when it took too long."""
        with self._mutex:
            self._wanted = True
            alone = False
            if not self._waiting:
                self._waiting = True
                alone = not self._ask()
        if alone:
            self._queue_up()
        try:
            granted = self._granted.acquire(timeout=max(0.0, timeout))
        except BaseException:
            self._give_up()
            raise
        # Granted and out of time at once: it is ours all the same.
        if not granted and self._give_up():
            return False
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True

    def give_back(self) -> None:
        flock(self._lock, _FREE)

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def __del__(self) -> None:
        # A thread that still waits holds a reference, so nobody uses the descriptors here.
        self.close()

    def _give_up(self) -> bool:
        """Stop wanting; False if the turn has come in this very moment."""
        with self._mutex:
            if self._granted.acquire(blocking=False):
                return False
            self._wanted = False
            return True

    def _ask(self) -> bool:
        """Have a thread wait for us; False if there is none to be had."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="holdfast-turnstile", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # At the end of the interpreter, or of its memory. Then without a time limit.
                return False
            self._thread = thread
        self._asked.release()
        return True

    def _serve(self) -> None:
        while True:
            while not self._asked.acquire(timeout=_IDLE_SECONDS):
                with self._mutex:
                    if not self._waiting:
                        self._thread = None
                        return
            self._queue_up()

    def _queue_up(self) -> None:
        error: OSError | None = None
        try:
            if not self._has_turn:
                flock(self._turn, _EXCLUSIVE)
            try:
                flock(self._lock, _EXCLUSIVE)
            finally:
                flock(self._turn, _FREE)
        except OSError as raised:
            error = raised
        with self._mutex:
            self._has_turn = False
            self._waiting = False
            if self._wanted:
                self._wanted = False
                self._error = error
                self._granted.release()
            elif error is None:
                self.give_back()


def _open(path: str, database: str) -> int:
    try:
        return side_file.open_file(path, database)
    except OSError as error:
        raise StoreUnavailable(
            f"{path}, which keeps writers of the database in turn, cannot be opened "
            f"({error.strerror}): {faults.cannot_open(path)}"
        ) from error
