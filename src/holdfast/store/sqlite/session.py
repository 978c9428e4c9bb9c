"""Inside one transaction: statements in, rows out.

Owns the execution of an operation's statements on a connection, ours or a caller's, and
remembers whom to wake after the commit. Never begins or ends a transaction.
"""

from __future__ import annotations

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
        """What `drive` calls for every statement."""
        rows: Rows = ()
        for call in self._binder.bind(statement, self.now):
            if call.values is not None:
                rows = self._connection.execute(call.sql, call.values)
            else:
                rows = self._connection.execute_many(call.sql, call.rows)
        if statement.hint is not None:
            self.hints.append(statement.hint)
        return rows
