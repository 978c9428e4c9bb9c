"""submit: how tasks come into being, alone or in bulk, in any transaction.

Owns the answers a sender gets. A submission never raises for one row: each row gets
its own answer, so that one bad row cannot fail its neighbours. Repeating a submission
is safe: the id is the client's, and `enqueue_sha` tells a repetition from a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from holdfast.core.options.unique import in_period
from holdfast.core.records import Submission, SubmitAnswer, Submitted
from holdfast.store import rows
from holdfast.store.op import (
    Alike,
    At,
    Channel,
    Column,
    Hint,
    Mode,
    Op,
    Plain,
    Row,
    Statement,
    Steps,
    Table,
    Texts,
    Uuids,
)
from holdfast.store.verbs import dependents

COLUMNS = {
    "id": Column.UUID,
    "args": Column.TEXT,
    "kwargs": Column.TEXT,
    "enqueue_sha": Column.TEXT,
    "sent_at": Column.TIME,
    "unique_slot": Column.TEXT,
    "task_name": Column.TEXT,
    "version": Column.INT,
    "queue_name": Column.TEXT,
    "priority": Column.INT,
    "task_options": Column.TEXT,
    "tags": Column.TEXT,
    "delay_us": Column.BIGINT,
    "asked_at": Column.TIME,
    "good_until": Column.TIME,
    "good_for_us": Column.BIGINT,
    "max_retries": Column.INT,
    "unique_until": Column.TEXT,
    "unique_period_us": Column.BIGINT,
    "workflow_id": Column.UUID,
    "parent_id": Column.UUID,
    "root_id": Column.UUID,
    "schedule_name": Column.TEXT,
    "schedule_tick": Column.TIME,
    "trace_context": Column.TEXT,
    "concurrency_key": Column.TEXT,
    "deps_needed": Column.INT,
    "deps_open": Column.INT,
}
ALIKE = Alike("submit_alike", own=6)
"""Calls of one function differ only in the first columns."""
_NO_EDGES = (0, 0)
_MAY_BE_EMPTY = (
    *("unique_slot", "delay_us", "asked_at", "good_until", "good_for_us", "unique_until"),
    *("unique_period_us", "workflow_id", "schedule_name", "schedule_tick"),
)
PLAIN = Plain(
    "submit_plain",
    itemgetter(*map([*COLUMNS].index, (*_MAY_BE_EMPTY, "deps_needed", "deps_open"))),
    (*(None for _ in _MAY_BE_EMPTY), *_NO_EDGES),
    times=("sent_at",),
)
"""Most sends: one task that may begin at once, and has no key."""
# In one call into C: this runs for every row of a bulk send.
_fields = itemgetter(
    *map(
        Submission._fields.index,
        ["run_at" if name == "asked_at" else name for name in COLUMNS if name[:5] != "deps_"],
    )
)


def submit(submissions: Sequence[Submission]) -> Op[list[Submitted]]:
    """Create tasks; one answer per submission, in order.

    `AGAIN` asks the caller to submit that row once more: the task that held its unique
    key ended between the insert and the look.
    """
    # Only a submission that may have to write twice needs a transaction of its own.
    mode = Mode.ALONE
    for s in submissions:
        if s.depends_on or s.on_conflict != "return":
            mode = Mode.WRITE
            break
    return Op(_submit(submissions), mode, "submit")


def _submit(submissions: Sequence[Submission]) -> Steps[list[Submitted]]:
    # Plain loops, here and above: most sends are of one task, and a comprehension is a call.
    queues: set[str] = set()
    table: list[Row] = []
    depending: list[Submission] = []
    for s in _in_lock_order(submissions):
        table.append(_row(s))
        queues.add(s.queue_name)
        if s.depends_on:
            depending.append(s)
    # A plain task runs as `submit_plain`, rows that share their last columns as `submit_alike` (see
    # the binding of each engine).
    found = yield Statement(
        "submit",
        table=Table(COLUMNS, table, ALIKE, PLAIN),
        hint=Hint(Channel.READY, sorted(queues)),
    )
    all_created = len(found) == len(submissions)
    created: set[bytes] = set()
    if not all_created:
        created = {rows.uuid(row[0]) for row in found}
        depending = [s for s in depending if s.id in created]
    if depending:
        yield from dependents.connect(depending)
    if all_created:
        return [Submitted(s.id, SubmitAnswer.CREATED) for s in submissions]
    met = yield from _meet(submissions, created)
    return [
        met.get(place) or Submitted(s.id, SubmitAnswer.CREATED)
        for place, s in enumerate(submissions)
    ]


def _in_lock_order(submissions: Sequence[Submission]) -> Sequence[Submission]:
    # Two bulk sends that share unique slots would deadlock if they took them in any order.
    for s in submissions:
        if s.unique_slot:
            return sorted(submissions, key=_slot_order)
    return submissions


def _slot_order(s: Submission) -> tuple[str, int, int, bytes]:
    # Of one key in two periods, the one that is to run first comes first.
    return s.unique_slot or "", s.run_at or 0, s.delay_us or 0, s.id


def _row(s: Submission) -> Row:
    row: Row = _fields(s)
    if not s.depends_on and s.deps_needed is None:
        return row + _NO_EDGES
    # Two edges from one parent are one: it ends once.
    edges = len({edge.parent_id for edge in s.depends_on})
    return (*row, edges if s.deps_needed is None else s.deps_needed, edges)


def _meet(submissions: Sequence[Submission], created: set[bytes]) -> Steps[dict[int, Submitted]]:
    """Explain every submission that created nothing: by its id, or by its unique slot."""
    # The same id twice in one batch is created once; the second is a repetition.
    seen: set[bytes] = set()
    blocked: dict[int, Submission] = {}
    for place, s in enumerate(submissions):
        if s.id not in created or s.id in seen:
            blocked[place] = s
        seen.add(s.id)
    slots = yield from _slots(blocked)
    found = yield Statement(
        "submitted",
        {
            "ids": Uuids(s.id for s in blocked.values()),
            "slots": Texts(slots.values()),
        },
    )
    shas = {rows.uuid(id): sha for id, sha, *_ in found}
    holders = {slot: rows.uuid(id) for id, _, slot, *_ in found if slot is not None}
    answers: dict[int, Submitted] = {}
    for place, s in blocked.items():
        if s.id in shas:
            same = shas[s.id] == s.enqueue_sha
            answer = SubmitAnswer.EXISTING if same else SubmitAnswer.MISMATCH
            answers[place] = Submitted(s.id, answer)
        elif (slot := slots.get(place)) in holders:
            answers[place] = yield from _yield_to(holders[slot], s)
        else:
            answers[place] = Submitted(s.id, SubmitAnswer.AGAIN)
    return answers


def _slots(blocked: Mapping[int, Submission]) -> Steps[dict[int, str]]:
    """The slots that these wanted, as the statement that submits makes them.

    A period may have ended since it ran: then nobody is found there, and the answer is `AGAIN`.
    """
    slots: dict[int, str] = {}
    now: int | None = None
    for place, s in blocked.items():
        slot = s.unique_slot
        if slot is None:
            continue
        if s.unique_period_us is not None:
            if now is None:
                ((clock,),) = yield Statement("read_clock")
                now = int(clock)
            run_at = s.run_at if s.delay_us is None else now + s.delay_us
            slot = in_period(slot, max(run_at or 0, now), s.unique_period_us)
        slots[place] = slot
    return slots


def _yield_to(holder: bytes, s: Submission) -> Steps[Submitted]:
    if s.on_conflict == "raise":
        return Submitted(holder, SubmitAnswer.CONFLICT)
    if s.on_conflict == "replace":
        replaced = yield Statement(
            "replace",
            {
                "id": holder,
                "args": s.args,
                "kwargs": s.kwargs,
                "task_options": s.task_options,
                "tags": s.tags,
                "version": s.version,
                "max_retries": s.max_retries,
                "concurrency_key": s.concurrency_key,
                "good_until": None if s.good_until is None else At(s.good_until),
                "good_for_us": s.good_for_us,
            },
        )
        if replaced:
            return Submitted(holder, SubmitAnswer.REPLACED)
    if s.on_conflict == "debounce":
        moved = yield Statement(
            "reschedule",
            {
                "ids": Uuids([holder]),
                "move": True,
                "delay_us": s.delay_us,
                "run_at": None if s.run_at is None else At(s.run_at),
                "queue_name": None,
                "priority": None,
                "renew": True,
                "good_until": None if s.good_until is None else At(s.good_until),
                "good_for_us": s.good_for_us,
            },
            hint=Hint(Channel.READY, [s.queue_name]),
        )
        if moved:
            return Submitted(holder, SubmitAnswer.DEBOUNCED)
    return Submitted(holder, SubmitAnswer.EXISTING)
