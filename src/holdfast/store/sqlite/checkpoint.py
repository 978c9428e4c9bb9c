"""Copying the WAL into the database, safely for the SQLite that is linked.

Owns how and how often that is done. Without it the WAL grows for as long as there is load.

A sound library copies the bulk while others write. What they added meanwhile is little, and is
copied inside a turn, so that the next writer can begin the WAL anew.

A vulnerable one (`driver.is_vulnerable`) may take a WAL that a writer begins anew during its
checkpoint for one that is copied already, and then those commits are lost. Only a writer begins
a WAL anew. So one connection of ours holds SQLite's write lock, without writing, while another
one copies: whoever writes, also without taking turns, waits for that long. (FULL and TRUNCATE
take that lock themselves, but go on as PASSIVE when they do not get it in time.)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic

from holdfast.core.errors import StoreUnavailable
from holdfast.store.settings import StoreSettings
from holdfast.store.sqlite.connections import Connections
from holdfast.store.sqlite.drivers.driver import Connection
from holdfast.store.sqlite.one_library import open_files
from holdfast.store.sqlite.turns.turnstile import Turnstile

_LONG_WAL = 4 * 1024 * 1024
"""As much as SQLite would let it grow by itself."""
_LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WalCheckpoint:
    """How far a checkpoint came: pages in the WAL, and those of them in the database."""

    wal_pages: int
    copied_pages: int

    @property
    def is_complete(self) -> bool:
        return self.copied_pages >= self.wal_pages


class Checkpointer:
    """Checkpoints one file; `begin` begins a write transaction inside a turn."""

    def __init__(
        self,
        settings: StoreSettings,
        path: str,
        connections: Connections,
        turns: Turnstile,
        begin: Callable[[], Connection],
    ) -> None:
        self._timeout = settings.lock_timeout
        self._wal_path = f"{path}-wal"
        self._connections = connections
        self._turns = turns
        self._begin = begin
        self._look_at = 0.0
        self._done: open_files.Look | None = None
        """The WAL as it was when all of it had been copied."""

    def run(self) -> WalCheckpoint:
        """Copy what can be copied now."""
        reader = self._connections.take_reader(self._timeout)
        try:
            vulnerable = self._connections.opener.must_not_checkpoint
            found = None if vulnerable else _copy(reader)
        finally:
            self._connections.give_reader(reader)
        if found is None:
            return self._run_alone()
        return found if found.is_complete else self._run_in_turn()

    def after_a_write(self) -> None:
        """Do what connections of a sound library do by themselves when the WAL has grown long."""
        now = monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        wal = open_files.look_at(self._wal_path)
        if wal is None or wal[1] < _LONG_WAL:
            return
        try:
            self.run()
        except StoreUnavailable:
            # The write is done; this can wait.
            return

    def _run_in_turn(self) -> WalCheckpoint:
        with ExitStack() as undo:
            self._turns.enter(self._timeout)
            undo.callback(self._turns.leave)
            writer = self._connections.take_writer()
            undo.callback(self._connections.give_writer, writer)
            return _copy(writer)

    def _run_alone(self) -> WalCheckpoint:
        """Copy while nobody can write."""
        wal = open_files.look_at(self._wal_path)
        if wal is None or wal == self._done:
            return WalCheckpoint(0, 0)
        with ExitStack() as undo:
            self._turns.enter(self._timeout)
            undo.callback(self._turns.leave)
            writer = self._begin()
            undo.callback(self._connections.give_writer, writer)
            undo.callback(writer.rollback)
            reader = self._connections.take_reader(self._timeout)
            undo.callback(self._connections.give_reader, reader)
            wal = open_files.look_at(self._wal_path)
            found = _copy(reader)
            self._done = wal if found.is_complete else None
            return found


def _copy(connection: Connection) -> WalCheckpoint:
    ((_, pages, copied),) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    return WalCheckpoint(max(pages, 0), max(copied, 0))
