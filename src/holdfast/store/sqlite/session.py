"""Inside one transaction: statements in, rows out.

Owns the execution of an operation's statements on a connection, ours or a caller's, and
remembers whom to wake after the commit. Never begins or ends a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.store.op import EVERY, Hint, Rows, Statement, Table
from holdfast.store.sqlite.binding import RETURNING, Binder, Call
from holdfast.store.sqlite.drivers.driver import Connection


class Session:
    """One transaction, in which it is always the same time."""

    __slots__ = ("hints", "now", "_binder", "_connection")

    def __init__(self, connection: Connection, binder: Binder, now: int) -> None:
        self.hints: list[Hint] = []
        self._connection = connection
        self._binder = binder
        self.now = now

    def execute(self, statement: Statement) -> Rows:
        """What `drive` calls for every statement."""
        return self.carry_out(statement, self._binder.bind(statement))

    def carry_out(self, statement: Statement, calls: Sequence[Call]) -> Rows:
        """Execute a statement that has been bound.

        A text that writes the rows of a table and returns nothing is answered by the first
        column (the key) of those rows for which it wrote something.
        """
        rows: Rows = ()
        connection = self._connection
        for call in calls:
            call.at(self.now)
        if statement.table is not None and calls[0].whole:
            rows, calls = self._write_whole(statement, statement.table, calls[0]), ()
        elif statement.expected is not None and self._is_as_expected(statement.expected, calls):
            rows, calls = EVERY, ()
        for call in calls:
            if call.values is not None:
                rows = connection.execute(call.sql, call.values)
            elif call.returns or statement.table is None:
                rows = connection.execute_many(call.sql, call.rows)
            else:
                # RETURNING costs a fifth of an insert, to learn what its absence tells too.
                rows = _keys(statement.table.rows, connection.write_many(call.sql, call.rows))
        if statement.hint is not None:
            self.hints.append(statement.hint)
        return rows

    def _write_whole(self, statement: Statement, table: Table, call: Call) -> Rows:
        """Write all rows at once; if one met another, each by itself, to learn which."""
        if len(table.rows) == 1:
            self._connection.execute(call.sql, call.values or ())
            return _keys(table.rows, ()) if self._connection.changes else ()
        if self._is_as_expected(len(table.rows), [call]):
            return _keys(table.rows, ())
        (each,) = self._binder.bind(statement, row_by_row=True)
        return _keys(table.rows, self._connection.write_many(each.sql, each.at(self.now).rows))

    def _is_as_expected(self, expected: int, calls: Sequence[Call]) -> bool:
        """Execute the calls without having their rows returned; undone if those are too few."""
        connection = self._connection
        connection.execute("SAVEPOINT holdfast_batch")
        for call in calls:
            connection.execute(RETURNING.split(call.sql)[0], call.values or ())
        as_expected = connection.changes == expected
        if not as_expected:
            connection.execute("ROLLBACK TO holdfast_batch")
        connection.execute("RELEASE holdfast_batch")
        return as_expected


def _keys(rows: Rows, idle: Collection[int]) -> Rows:
    if not idle:
        return [rows[0][:1]] if len(rows) == 1 else [row[:1] for row in rows]
    return [row[:1] for place, row in enumerate(rows) if place not in idle]
