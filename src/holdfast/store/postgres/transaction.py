"""One operation on one connection: when to BEGIN, when to COMMIT, what a failure means.

Owns the transaction of an `Op`, the knowledge whether its commit was under way, and the
hints that it did not carry because one had just left.

    READ     no transaction: at READ COMMITTED every statement has its own snapshot anyway
    ALONE    the first step commits by itself, one statement in one round trip; the rest only
             read
    WRITE    BEGIN, the statements, COMMIT

Statements that need not wait for each other (and BEGIN before the first) leave together
when the server is far; near by, psycopg's pipeline mode costs more than the round trips
it saves. Behind a pooler the plan settings live in the transaction, so every write gets one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import psycopg

from holdfast.core.errors import HoldfastError
from holdfast.store.op import Channel, Mode, Op, Rows, Statement
from holdfast.store.postgres import faults
from holdfast.store.postgres.binding import Binder, Query
from holdfast.store.postgres.connection import OwnConnection
from holdfast.store.postgres.hints import Limiter
from holdfast.store.postgres.value_adapters import NeutralCursor

T = TypeVar("T")

_AT_ONCE = b"; SET LOCAL lock_timeout = 1"
"""Milliseconds, the least that is not for ever."""


class Transaction:
    """The run of one operation."""

    def __init__(
        self,
        connection: OwnConnection,
        binder: Binder,
        limiter: Limiter,
        begin: bytes,
        mode: Mode,
        waits: bool = True,
    ) -> None:
        self._connection = connection
        self._binder = binder
        self._limiter = limiter
        self._begin = begin if waits else begin + _AT_ONCE
        self._waits = waits
        self._alone = mode is Mode.ALONE
        self._must_begin = mode is Mode.WRITE or (self._alone and connection.pooled)
        self._begun = False
        self._committing = False
        self._owed: list[tuple[Channel, list[str]]] = []

    def run(self, op: Op[T]) -> T:
        """Drive the operation to its end and commit it, or undo it and raise."""
        value = self._perform(op.name, partial(self._drive, op))
        for channel, payloads in self._owed:
            self._limiter.owe(channel, payloads)
        return value

    def run_plain(self, name: str, work: Callable[[], T]) -> T:
        """The same for work that uses the connection itself."""

        def begin_and_work() -> T:
            self._begun = True
            self._connection.main.execute(self._begin, prepare=False)
            return work()

        return self._perform(name, begin_and_work)

    def _perform(self, name: str, work: Callable[[], T]) -> T:
        try:
            value = work()
            if self._begun:
                self._committing = True
                self._connection.commit()
            return value
        except psycopg.Error as error:
            raise self._failed(name, error) from (error if faults.may_show(error) else None)
        except BaseException:
            self._undo()
            raise

    def _drive(self, op: Op[T]) -> T:
        steps = iter(op)
        answer: Any = None
        try:
            while True:
                asked = steps.send(answer)
                if not isinstance(asked, Statement):
                    answer = self._ask(asked)
                elif self._must_begin and not self._begun:
                    answer = self._ask((asked,))[0]
                else:
                    answer = self._ask_one(asked)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            steps.close()

    def _ask_one(self, statement: Statement) -> Rows:
        """What `_ask` does, where there is nothing to send together."""
        query = self._bind(statement)
        self._committing, self._alone = self._alone and not self._begun, False
        rows = self._connection.main.execute(query.sql, query.params, binary=True).rows()
        self._committing = False
        return rows

    def _ask(self, statements: Sequence[Statement]) -> Sequence[Rows]:
        queries = [self._bind(statement) for statement in statements]
        must_begin = self._must_begin or (self._alone and len(queries) > 1)
        begin = must_begin and not self._begun
        self._begun = self._begun or begin
        self._committing, self._alone = self._alone and not self._begun, False
        connection = self._connection
        # In a pipeline, what opens the transaction must be a single command.
        if connection.far and self._waits and len(queries) + begin > 1:
            answers: Sequence[Rows] = self._ask_together(queries, begin)
        else:
            cursor = connection.main
            if begin:
                cursor.execute(self._begin, prepare=False)
            answers = [cursor.execute(q.sql, q.params, binary=True).rows() for q in queries]
        self._committing = False
        return answers

    def _ask_together(self, queries: Sequence[Query], begin: bool) -> Sequence[Rows]:
        cursors = [NeutralCursor(self._connection) for _ in queries]
        with self._connection.pipeline():
            if begin:
                self._connection.main.execute(self._begin, prepare=False)
            for cursor, query in zip(cursors, queries, strict=True):
                cursor.execute(query.sql, query.params, binary=True)
        return [cursor.rows() for cursor in cursors]

    def _bind(self, statement: Statement) -> Query:
        hint = statement.hint
        if hint is None:
            return self._binder.bind(statement)
        due = self._limiter.due(hint.channel, hint.queues)
        if len(due) < len(hint.queues):
            owed = [queue for queue in hint.queues if queue not in due]
            self._owed.append((hint.channel, owed))
        return self._binder.bind(statement, due)

    def _failed(self, name: str, error: psycopg.Error) -> HoldfastError:
        connection = self._connection
        fatal = error.diag.severity_nonlocalized in ("FATAL", "PANIC")
        translated = faults.translate(
            error,
            doing=f"running {name}",
            lost=fatal or connection.closed,
            committing=self._committing,
        )
        if fatal or faults.spoils(error):
            connection.close()
        else:
            self._undo()
        return translated

    def _undo(self) -> None:
        connection = self._connection
        try:
            # Nothing to do outside a transaction; fails on a statement that an interrupt left
            # half read.
            connection.rollback()
        except psycopg.Error:
            connection.close()
