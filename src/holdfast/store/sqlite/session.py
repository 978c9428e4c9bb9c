"""Inside one transaction: statements in, rows out.

Owns the execution of an operation's statements on a connection, ours or a caller's, and
remembers whom to wake after the commit. Never begins or ends a transaction.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.store.op import Hint, Rows, Statement
from holdfast.store.sqlite.binding import Binder
from holdfast.store.sqlite.driver import Connection


class Session:
    """One transaction, in which it is always the same time."""

    __slots__ = ("hints", "now", "_binder", "_connection")

    def __init__(self, connection: Connection, binder: Binder, now: int) -> None:
        self.hints: list[Hint] = []
        self._connection = connection
        self._binder = binder
        self.now = now

    def execute(self, statement: Statement) -> Rows:
        """What `drive` calls for every statement.

        A text that runs for each row of a table and returns nothing is answered by the first
        column (the key) of those rows for which it wrote something.
        """
        rows: Rows = ()
        connection = self._connection
        for call in self._binder.bind(statement, self.now):
            if call.values is not None:
                rows = connection.execute(call.sql, call.values)
            elif call.returns or statement.table is None:
                rows = connection.execute_many(call.sql, call.rows)
            else:
                # RETURNING costs a fifth of an insert, to learn what its absence tells too.
                idle = connection.write_many(call.sql, call.rows)
                rows = _keys(statement.table.rows, idle)
        if statement.hint is not None:
            self.hints.append(statement.hint)
        return rows


def _keys(rows: Rows, idle: Collection[int]) -> Rows:
    if not idle:
        return [rows[0][:1]] if len(rows) == 1 else [row[:1] for row in rows]
    return [row[:1] for place, row in enumerate(rows) if place not in idle]
