"""Sends of all children, committed together.

Owns the merging of `submit` statements that stand alone; which of them share a commit is
`store.group_commit`'s work. Each child gets the rows of its own submissions, as if it had been
alone. If the store refuses a batch, each send is tried by itself: one bad or blocked send does not
affect the others. What the database cannot take now is not tried again here: the child asks again.

A unique key that another open transaction is taking holds up its batch once; then the others are
committed without it, and the child that wants that key is told so and asks again. For a while such
a key is tried apart and without waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.supervisor.relay.turns import Turns
from holdfast.runtime.supervisor.state.blocked_rows import HeldRows
from holdfast.runtime.wire.messages import Reply
from holdfast.runtime.wire.relay_codec import Asked
from holdfast.store import rows
from holdfast.store.group_commit import GroupCommit, Patience
from holdfast.store.op import Hint, Mode, Op, Row, Rows, Statement, Steps, Table, at_once
from holdfast.store.protocol import Store
from holdfast.store.verbs import submit

if TYPE_CHECKING:
    from holdfast.runtime.supervisor.relay.server import Asker

MOST_ROWS: Final = 2_000
_HELD_FOR: Final = 3.0
"""Seconds for which a unique key that was held is tried apart."""
_SLOT: Final = list(submit.COLUMNS).index("unique_slot")
_ID: Final = list(submit.COLUMNS).index("id")
_AT: Final = list(submit.COLUMNS).index("asked_at")
_DELAY: Final = list(submit.COLUMNS).index("delay_us")


@dataclass(frozen=True, slots=True)
class _Send:
    asker: Asker
    ticket: int
    statement: Statement
    table: Table

    @property
    def key(self) -> tuple[Asker, int]:
        """What tells it from all others."""
        return self.asker, self.ticket


_Answers: TypeAlias = "dict[tuple[Asker, int], Reply]"


class RelaySends:
    """`add` returns at once; a thread of this object's own commits."""

    def __init__(
        self,
        store: Store,
        *,
        answer_of: Callable[[int, Exception], Reply],
        held_rows: HeldRows | None = None,
    ) -> None:
        self._store = store
        self._held_rows = held_rows or HeldRows()
        self._held: dict[str, float] = {}
        """Unique slots that another transaction was taking, and when (monotonic)."""
        self._answer_of = answer_of
        self._thread = Turns(1, "holdfast-relay-sends")
        self._group: GroupCommit[_Send, Reply] = GroupCommit(
            self._commit,
            partial(self._thread.give, self),
            patience=Patience(0.0),
            weight=_rows,
            heaviest=MOST_ROWS,
        )

    def add(self, asker: Asker, ticket: int, statement: Statement) -> None:
        """A child has asked for this `submit`."""
        assert statement.table is not None

        def tell(outcome: Reply | Exception) -> None:
            if isinstance(outcome, Exception):
                outcome = self._answer_of(ticket, outcome)
            asker.say(outcome)

        self._group.post(_Send(asker, ticket, statement, statement.table), tell)

    def close(self) -> None:
        """Commit what has been asked, and end."""
        self._thread.close()

    def _commit(self, batch: Sequence[_Send]) -> list[Reply]:
        """The answer of each."""
        together, held = batch, []
        if self._held:
            since = monotonic() - _HELD_FOR
            self._held = {slot: at for slot, at in self._held.items() if at > since}
            held = [send for send in batch if any(slot in self._held for slot in _slots(send))]
            together = [send for send in batch if send not in held]
        answers = self._try(together) if together else {}
        answers |= self._one_by_one(held, waits=False)
        return [answers[send.key] for send in batch]

    def _try(self, batch: Sequence[_Send], *, waits: bool = True) -> _Answers:
        def make() -> Op[Rows]:
            op: Op[Rows] = Op(just(_merged(batch)), Mode.ALONE, "submit")
            return op if waits else at_once(op)

        try:
            created: Rows = self._store.attempt(make)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who asked
            if isinstance(error, StoreUnavailable) and error.locked and waits:
                return self._held_up(batch)
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                self._note_held(batch, error)
                return {send.key: self._answer_of(send.ticket, error) for send in batch}
            return self._one_by_one(batch, waits=waits)
        if not waits:
            keys = [slot.encode() for send in batch for slot in _slots(send)]
            self._held_rows.free("unique key", keys)
        # The same id in two sends was created by one of them; the other finds it.
        by_id = {rows.uuid(row[0]): row for row in created}
        return {
            send.key: Reply(send.ticket, [by_id.pop(id) for id in _ids(send) if id in by_id])
            for send in batch
        }

    def _held_up(self, batch: Sequence[_Send]) -> _Answers:
        """Another transaction is taking a unique key that one of these wants."""
        plain = [send for send in batch if not any(_slots(send))]
        answers = self._try(plain, waits=len(plain) < len(batch)) if plain else {}
        others = [send for send in batch if send not in plain]
        return answers | self._one_by_one(others, waits=False)

    def _one_by_one(self, batch: Sequence[_Send], *, waits: bool) -> _Answers:
        answers: _Answers = {}
        for send in batch:
            answers |= self._try([send], waits=waits)
        return answers

    def _note_held(self, batch: Sequence[_Send], error: Exception) -> None:
        if not isinstance(error, StoreUnavailable) or not error.locked:
            return
        for send in batch:
            for slot in _slots(send):
                self._held[slot] = monotonic()
                label = f"the unique key {slot!r}, which a task wants to send under,"
                self._held_rows.held("unique key", slot.encode(), label)


def _rows(send: _Send) -> int:
    return len(send.table.rows)


def _slots(send: _Send) -> Iterator[str]:
    """The unique slots that a send wants to take."""
    return (row[_SLOT] for row in send.table.rows if row[_SLOT] is not None)


def _ids(send: _Send) -> list[bytes]:
    return list(dict.fromkeys(row[_ID] for row in send.table.rows))


def _merged(batch: Sequence[_Send]) -> Statement:
    every: list[Row] = [row for send in batch for row in send.table.rows]
    if any(row[_SLOT] is not None for row in every):
        # Two batches that share unique slots would deadlock if they took them in any order.
        every.sort(key=_slot_order)
    hints = [send.statement.hint for send in batch if send.statement.hint is not None]
    hint = None
    if hints:
        hint = Hint(hints[0].channel, sorted({queue for h in hints for queue in h.queues}))
    return Statement(
        "submit", table=Table(submit.COLUMNS, every, submit.ALIKE, submit.PLAIN), hint=hint
    )


def _slot_order(row: Row) -> tuple[str, int, int, bytes]:
    return row[_SLOT] or "", row[_AT] or 0, row[_DELAY] or 0, row[_ID]


def just(asked: Asked) -> Steps[Any]:
    """Steps that ask this and nothing else."""
    return (yield asked)
