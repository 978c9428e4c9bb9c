"""Sends of all children, committed together.

Owns the merging of `submit` statements that stand alone. Whoever sends while a commit runs
goes into the next one, so a lone send is not delayed and many share their commits. Each
child gets the rows of its own submissions, as if it had been alone. If the store refuses a
batch, each send is tried by itself: nobody fails for a neighbour's sake.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.wire.messages import Answer
from holdfast.store import rows
from holdfast.store.op import Hint, Mode, Op, Row, Rows, Statement, Steps, Table
from holdfast.store.protocol import Store

if TYPE_CHECKING:
    from holdfast.runtime.supervisor.relay.server import Asker

MOST_ROWS: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Send:
    asker: Asker
    ticket: int
    statement: Statement
    table: Table


class RelaySends:
    """`add` returns at once; a thread of this object's own commits."""

    def __init__(self, store: Store, *, answer_of: Callable[[int, Exception], Answer]) -> None:
        self._store = store
        self._answer_of = answer_of
        self._changed = threading.Condition()
        self._waiting: deque[_Send] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, asker: Asker, ticket: int, statement: Statement) -> None:
        """A child has asked for this `submit`."""
        assert statement.table is not None
        with self._changed:
            self._waiting.append(_Send(asker, ticket, statement, statement.table))
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="holdfast-relay-sends", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Commit what has been asked, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                batch = self._take()
            self._commit(batch)

    def _take(self) -> list[_Send]:
        batch: list[_Send] = []
        size = 0
        while self._waiting and (not batch or size < MOST_ROWS):
            batch.append(self._waiting.popleft())
            size += len(batch[-1].table.rows)
        return batch

    def _commit(self, batch: Sequence[_Send]) -> None:
        try:
            created: Rows = self._store.attempt(
                lambda: Op(_just(_merged(batch)), Mode.ALONE, "submit")
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who asked
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                for send in batch:
                    send.asker.say(self._answer_of(send.ticket, error))
            else:
                for send in batch:
                    self._commit([send])
            return
        # The same id in two sends was created by one of them; the other finds it.
        by_id = {rows.uuid(row[0]): row for row in created}
        for send in batch:
            mine = [by_id.pop(id) for id in _ids(send) if id in by_id]
            send.asker.say(Answer(send.ticket, mine))


def _ids(send: _Send) -> list[bytes]:
    place = list(send.table.columns).index("id")
    return list(dict.fromkeys(row[place] for row in send.table.rows))


def _merged(batch: Sequence[_Send]) -> Statement:
    if len(batch) == 1:
        return batch[0].statement
    columns = batch[0].table.columns
    every: list[Row] = [row for send in batch for row in send.table.rows]
    slot, id = (list(columns).index(name) for name in ("unique_slot", "id"))
    if any(row[slot] is not None for row in every):
        # Two batches that share unique slots would deadlock if they took them in any order.
        every.sort(key=lambda row: (row[slot] or "", row[id]))
    hints = [send.statement.hint for send in batch if send.statement.hint is not None]
    hint = None
    if hints:
        hint = Hint(hints[0].channel, sorted({queue for h in hints for queue in h.queues}))
    return Statement("submit", batch[0].statement.params, Table(columns, every), hint)


def _just(statement: Statement) -> Steps[Any]:
    return (yield statement)
