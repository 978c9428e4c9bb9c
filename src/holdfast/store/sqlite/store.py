"""`SqliteStore`: tasks in one SQLite file.

Owns the transaction: whoever writes waits for the turn, begins IMMEDIATE, runs the
operation (`Session`), commits, and only then rings the doorbell. Readers never wait for
writers. Nobody who calls this sees "database is locked".

Failure: whatever goes wrong between BEGIN and COMMIT rolls back and leaves the turn.
A program that writes without taking turns is met by trying again, a little later
each time, until `lock_timeout`; then the error says who it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from holdfast.core.errors import StoreError
from holdfast.store import fork, statement
from holdfast.store.migrate import SchemaConnection
from holdfast.store.op import Channel, Hint, Mode, Op, Rows, Statement, drive
from holdfast.store.row_refused import RowRefused
from holdfast.store.settings import Engine, SqliteDriver, StoreSettings
from holdfast.store.sqlite import database_file, doorbell, faults
from holdfast.store.sqlite.binding import Execution, SqliteBinder
from holdfast.store.sqlite.checkpoint import Checkpointer, WalCheckpoint
from holdfast.store.sqlite.clock import Clock
from holdfast.store.sqlite.commit_watch import CommitWatch
from holdfast.store.sqlite.connections import Connections
from holdfast.store.sqlite.drivers.driver import Connection, from_bytes, is_vulnerable
from holdfast.store.sqlite.schema import SqliteSchema
from holdfast.store.sqlite.turns import turnstile
from holdfast.store.sqlite.turns.busy_wait import BusyWait

T = TypeVar("T")

_ENOUGH_DOUBTS = 10


class Session:
    """Inside one transaction, ours or a caller's: statements in, rows out.

    It is always the same time in it. Remembers whom to wake after the commit; never begins or
    ends a transaction.
    """

    __slots__ = ("hints", "now", "_binder", "_connection")

    def __init__(self, connection: Connection, binder: SqliteBinder, now: int) -> None:
        self.hints: list[Hint] = []
        self._connection = connection
        self._binder = binder
        self.now = now

    def execute(self, statement: Statement) -> Rows:
        """What `drive` calls for every statement."""
        return self.carry_out(statement, self._binder.bind(statement))

    def carry_out(self, statement: Statement, calls: Sequence[Execution]) -> Rows:
        """Execute a statement that has been bound.

        A text that writes the rows of a table and returns nothing is answered by the first
        column (the key) of those rows for which it wrote something.
        """
        if statement.hint is not None:
            self.hints.append(statement.hint)
        table = statement.table
        if table is not None and calls[0].all_or_none:
            (call,) = calls
            try:
                self._connection.execute(call.sql, call.at(self.now).values or ())
                return [row[:1] for row in table.rows]
            except RowRefused:
                # Nothing was written; some row met another: each by itself, to learn which.
                calls = self._binder.bind(statement, row_by_row=True)
        rows: Rows = ()
        for call in calls:
            rows = self._execute(call.at(self.now), None if table is None else table.rows)
        return rows

    def _execute(self, call: Execution, given: Rows | None) -> Rows:
        if call.values is None and given is not None and not call.returns:
            # RETURNING costs a fifth of an insert, to learn what its absence tells, too.
            idle = self._connection.write_many(call.sql, call.rows)
            return [row[:1] for place, row in enumerate(given) if place not in idle]
        if call.values is None:
            rows = self._connection.execute_many(call.sql, call.rows)
        else:
            rows = self._connection.execute(call.sql, call.values)
        return from_bytes(rows) if call.gives_bytes else rows


Work: TypeAlias = Callable[[Session, Connection], T]


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What `holdfast db status` tells about the file."""

    path: str
    library: SqliteDriver
    version: str
    checkpoints: bool
    """False: connections of this library must not do so by themselves (`driver.is_vulnerable`)."""
    journal_mode: str
    bytes: int
    wal_bytes: int


class SqliteStore:
    """One SQLite file, or one database in memory. Opened by the first use."""

    def __init__(
        self, settings: StoreSettings, *, texts: Callable[[str], Sequence[str]] | None = None
    ) -> None:
        self._settings = settings
        self._in_memory = settings.in_memory
        self.path = faults.MEMORY if settings.in_memory else database_file.resolve(settings)
        self._binder = SqliteBinder(texts or statement.texts)
        self.clock = Clock(settings.clock)
        self._connections = Connections(settings, self.path)
        self._doorbell = doorbell.of(self.path)
        self._commits = CommitWatch(self.path, self._connections)
        self._turns = turnstile.of(self.path)
        self._checkpointer = Checkpointer(
            settings, self.path, self._connections, self._turns, self._begin
        )
        self._is_open = False

    @property
    def engine(self) -> Engine:
        """Which engine this is."""
        return "sqlite"

    @property
    def settings(self) -> StoreSettings:
        """What it was made with."""
        return self._settings

    def run(self, op: Op[T]) -> T:
        """Run one operation in one transaction of its own."""
        self._open()
        if op.mode is Mode.READ:
            return self._read(lambda session, _: drive(op, session.execute))
        if op.mode is Mode.ALONE:
            return self._run_alone(op)
        value, hints = self._write(lambda session, _: (drive(op, session.execute), session.hints))
        self._ring(hints)
        return value

    def _run_alone(self, op: Op[T]) -> T:
        """Run an operation whose first step does all of its writing.

        What comes before and after that happens outside the turn: nobody else writes meanwhile,
        and this thread may have to wait for the interpreter.
        """

        def write(step: Statement | tuple[Statement, ...]) -> Any:
            asked = (step,) if isinstance(step, Statement) else step
            bound = [(statement, self._binder.bind(statement)) for statement in asked]
            (statement, (call, *others)), *more = bound
            if call.is_insert and not others and not more:
                try:
                    return self._insert(statement, call)
                except RowRefused:
                    if not call.all_or_none:
                        raise
            answers, hints = self._write(
                lambda session, _: (
                    [session.carry_out(statement, calls) for statement, calls in bound],
                    session.hints,
                )
            )
            self._ring(hints)
            return answers[0] if isinstance(step, Statement) else answers

        def read(statement: Statement) -> Rows:
            return self._read(lambda session, _: session.execute(statement))

        return drive(op, read, first=write)

    def _insert(self, statement: Statement, call: Execution) -> Rows:
        """Execute a statement that is a transaction of its own.

        BEGIN and COMMIT cost a tenth of a send; and each execution lets go of the interpreter's
        lock, for which sending threads then have to wait.
        """
        assert statement.table is not None
        has_written = self._in_turn(lambda: self._until_free(lambda: self._try_to_insert(call)))
        if statement.hint is not None:
            self._ring([statement.hint])
        return [row[:1] for row in statement.table.rows] if has_written else ()

    def _try_to_insert(self, call: Execution) -> bool:
        connection = self._connections.take_writer()
        try:
            now = self.clock.begin(connection)
            # Before: if this fails, nothing has been written.
            self.clock.end(connection, now)
            call.at(now)
            return connection.write_alone(call.sql, call.values or call.rows[0])
        finally:
            self._connections.give_writer(connection)

    def _ring(self, hints: Sequence[Hint]) -> None:
        for hint in hints:
            self._doorbell.ring(hint.channel, hint.queues)

    def attempt(self, make: Callable[[], Op[T]], *, tries: int = 5) -> T:
        """Run an operation; one writer at a time meets no conflict that a repetition cures."""
        del tries
        return self.run(make())

    def with_schema(self, work: Callable[[SchemaConnection], T], *, lock: bool) -> T:
        """Run `work` on the schema in one transaction; without `lock` it only reads."""
        self._open()
        if not lock:
            return self._read(lambda session, raw: work(SqliteSchema(raw, session.now)))
        return self._write(lambda session, raw: work(SqliteSchema(raw, session.now)))

    def hint(self, channel: Channel, queues: Sequence[str] = ()) -> None:
        """Wake listeners now. Best effort; never raises."""
        self._doorbell.ring(channel, queues)

    def listen(self, *channels: Channel) -> doorbell.DoorbellListener:
        """Hear hints on these channels from now on."""
        self._open()
        return self._doorbell.listen(self._commits.version, *channels)

    def tend(self) -> None:
        """Keep the WAL short."""
        self.checkpoint()

    def checkpoint(self) -> WalCheckpoint | None:
        """Copy the WAL into the database; None where there is none."""
        self._open()
        return None if self._in_memory else self._checkpointer.run()

    def probe(self) -> FileInfo:
        """What there is to know about the file."""
        self._open()
        connection = self._connections.take_reader(self._settings.lock_timeout)
        try:
            driver = self._connections.opener.driver
            assert driver is not None
            ((mode,),) = connection.execute("PRAGMA journal_mode")
        finally:
            self._connections.give_reader(connection)
        return FileInfo(
            path=self.path,
            library=driver.library,
            version=".".join(map(str, driver.version)),
            checkpoints=not is_vulnerable(driver.version),
            journal_mode=mode,
            bytes=_size(self.path),
            wal_bytes=_size(f"{self.path}-wal"),
        )

    def close(self) -> None:
        """Close the connections; whoever uses the store afterwards is refused."""
        self._connections.close()

    def _open(self) -> None:
        """Check the place, make the file if it is new, put it into WAL mode. Once."""
        fork.settle()
        if not self._connections.is_tried:
            self._connections.try_once()
        if self._is_open:
            # Whoever takes a connection hears whether the store is still usable.
            return
        self._connections.check_usable()
        if not self._in_memory:
            allowed = self._settings.allow_network_filesystem
            database_file.check_place(self.path, allow_network=allowed)
            database_file.create(self.path)
        timeout = self._settings.lock_timeout
        self._turns.enter(timeout)
        try:
            patience = BusyWait(self.path, timeout, for_wal=True)
            while not self._is_open:
                try:
                    self._adopt()
                except faults.Busy:
                    patience.wait()
        finally:
            self._turns.leave()

    def _adopt(self) -> None:
        connection = self._connections.take_writer()
        try:
            database_file.adopt(connection, self.path)
            self._connections.opener.stay(connection)
            self.clock.recall(connection)
            self._is_open = True
        finally:
            self._connections.give_writer(connection)

    def _write(self, work: Work[T]) -> T:
        def write() -> T:
            connection = self._begin()
            try:
                return self._transact(connection, work)
            finally:
                self._connections.give_writer(connection)

        return self._in_turn(write)

    def _in_turn(self, write: Callable[[], T]) -> T:
        """Write when the turn has come, and keep the WAL short where the library does not."""
        self._turns.enter(self._settings.lock_timeout)
        try:
            value = write()
        finally:
            self._turns.leave()
        if self._connections.opener.must_not_checkpoint:
            self._checkpointer.after_a_write()
        return value

    def _begin(self) -> Connection:
        """Begin a write transaction."""
        return self._until_free(self._try_to_begin)

    def _until_free(self, attempt: Callable[[], T]) -> T:
        """Try until no outsider writes; that is waited for without a connection."""
        patience: BusyWait | None = None
        doubts = 0
        while True:
            was_free = patience is not None and self._connections.is_locked_by_nobody()
            try:
                return attempt()
            except faults.Busy:
                pass
            # While we wait no other writer has the turn, so do not wait for a lock that no process
            # holds. Free before and after the try: hardly ever did another hold it in between.
            doubts += was_free and self._connections.is_locked_by_nobody()
            if doubts >= _ENOUGH_DOUBTS:
                raise self._connections.lose()
            patience = patience or BusyWait(self.path, self._settings.lock_timeout)
            patience.wait()

    def _try_to_begin(self) -> Connection:
        connection = self._connections.take_writer()
        try:
            connection.begin_immediate()
        except BaseException:
            self._connections.give_writer(connection)
            raise
        return connection

    def _transact(self, connection: Connection, work: Work[T]) -> T:
        process = fork.process
        try:
            now = self.clock.begin(connection)
            before = connection.total_changes()
            value = work(Session(connection, self._binder, now), connection)
            if connection.total_changes() != before:
                self.clock.end(connection, now)
            if process != fork.settle():
                raise StoreError("the process was forked inside a transaction; it is the parent's")
            connection.commit()
        except BaseException:
            _roll_back(connection)
            raise
        return value

    def _read(self, work: Work[T]) -> T:
        if self._in_memory:
            self._turns.enter(self._settings.lock_timeout)
        try:
            connection = self._connections.take_reader(self._settings.lock_timeout)
            try:
                connection.bound(self._settings.statement_timeout)
                connection.begin_read()
                return work(Session(connection, self._binder, self.clock.now()), connection)
            finally:
                connection.bound(None)
                _roll_back(connection)
                self._connections.give_reader(connection)
        finally:
            if self._in_memory:
                self._turns.leave()


def _roll_back(connection: Connection) -> None:
    if connection.in_transaction:
        try:
            connection.rollback()
        except StoreError:
            connection.broken = True


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
