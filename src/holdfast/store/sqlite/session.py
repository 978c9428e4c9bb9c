"""Inside one transaction: statements in, rows out.

Owns the execution of an operation's statements on a connection, ours or a caller's, and
remembers whom to wake after the commit. Never begins or ends a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.op import Hint, Rows, Statement
from holdfast.store.row_refused import RowRefused
from holdfast.store.sqlite.binding import Execution, SqliteBinder
from holdfast.store.sqlite.drivers.driver import Connection, from_bytes


class Session:
    """One transaction, in which it is always the same time."""

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
