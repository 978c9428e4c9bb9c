"""Every verb × every state × every token, on both engines.

The cells come from `core.lifecycle.TRANSITIONS`: a verb may do exactly what its row there
says, and where the table says nothing not a single column may change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import pytest

from holdfast.core.identity import new_id
from holdfast.core.lifecycle import TRANSITIONS, Verb, legal, targets
from holdfast.core.records import LOST, Answer, Landing
from holdfast.core.status import TASK_TERMINAL_STATES, TaskStatus
from holdfast.store.op import Row
from holdfast.store.verbs import inspect, operate
from tests.store.matrix.expected import IN_FLIGHT, MAY_EXPIRE, Deed, attempt_after, task_after
from tests.store.matrix.ways import FIELDS, PARENT, WAYS, WORKFLOW, Way
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import Case, new_token, submission

ENDED_BY_A_RUN = (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.STALLED)
ONE_CALL = {Verb.CANCEL: Verb.REQUEST_CANCEL, Verb.REQUEST_CANCEL: Verb.CANCEL}
"""Verbs that are asked for by the same call; the task's state says which of them it is."""


class Token(StrEnum):
    """What the caller of a fenced verb believes to hold."""

    FRESH = "fresh"
    """The claim that is on the row."""
    SPENT = "spent"
    """The claim under which the task ended."""
    STALE = "stale"
    """An earlier claim of this task, given back since."""
    ABSENT = "absent"
    """A token that no claim ever had."""
    NONE = "none"
    """The verb is nobody's claim."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One verb, done in one way to a task in one state, with every token there may be."""

    way: Way
    status: TaskStatus
    cancel_requested: bool = False

    @property
    def tokens(self) -> list[Token]:
        """Those that are refused in any state first, so that one task serves them all."""
        if not TRANSITIONS[self.way.verb].fenced:
            return [Token.NONE]
        more = [Token.SPENT] if self.status in ENDED_BY_A_RUN else []
        more += [Token.FRESH] if self.status in IN_FLIGHT else []
        return [Token.ABSENT, Token.STALE, *more]

    def lands(self, token: Token) -> bool:
        if self.status not in self.way.starts_from:
            return False
        if self.way.verb is Verb.ACK_CANCEL and not self.cancel_requested:
            return False
        return token in (Token.FRESH, Token.NONE)

    @property
    def to(self) -> TaskStatus | None:
        """Where a cell that lands leads."""
        possible = targets(self.way.verb, self.status, cancel_requested=self.cancel_requested)
        return self.way.to if not possible or self.way.to in possible else possible[0]

    def __str__(self) -> str:
        wish = "-cancel-requested" if self.cancel_requested else ""
        return f"{self.way}-from-{self.status}{wish}"


def cells() -> Iterator[Cell]:
    for way in WAYS:
        row = TRANSITIONS[way.verb]
        for status in TaskStatus:
            if way.verb in ONE_CALL and legal(ONE_CALL[way.verb], status):
                continue
            if status in row.sources and status not in way.starts_from:
                # From there the verb leads elsewhere, by another way.
                continue
            yield Cell(way, status)
            if status is TaskStatus.RUNNING and row.fenced:
                yield Cell(way, status, cancel_requested=True)


def test_every_verb_has_a_way_to_each_of_its_targets() -> None:
    for verb, row in TRANSITIONS.items():
        ways = [way for way in WAYS if way.verb is verb]
        assert {way.to for way in ways} == set(row.targets or (None,)), verb
        assert {source for way in ways for source in way.starts_from} == set(row.sources), verb


@on_each_engine
@pytest.mark.parametrize("cell", list(cells()), ids=str)
def test_cell(lab: Lab, cell: Cell) -> None:
    case = cell.way.prepare(lab, cell.status, {**FIELDS, **cell.way.fields})
    if cell.cancel_requested:
        lab.cancel(case.id)
    lab.clock.advance(7)
    for kind in cell.tokens:
        token = token_of(kind, case)
        if cell.lands(kind):
            check_landing(lab, cell, case, token)
        else:
            check_refusal(lab, cell, case, token)


def token_of(kind: Token, case: Case) -> bytes:
    match kind:
        case Token.FRESH | Token.SPENT:
            assert case.current is not None
            return case.current
        case Token.STALE:
            return case.stale
        case Token.ABSENT | Token.NONE:
            return new_token()


def check_refusal(lab: Lab, cell: Cell, case: Case, token: bytes) -> None:
    before = traces(lab, case)
    did = cell.way.call(lab, case, token)
    assert did is False or did == LOST
    assert traces(lab, case) == before


def check_landing(lab: Lab, cell: Cell, case: Case, token: bytes) -> None:
    before, attempts = lab.task(case.id), lab.attempts(case.id)
    leases = lab.contents("leases")
    did = cell.way.call(lab, case, token)
    if cell.to is None:
        assert did is True
        assert not any(traces(lab, case).values())
        return
    deed = Deed(cell.way, before, cell.to, lab.clock.now, token)
    check_answer(deed, did)
    assert lab.task(case.id) == task_after(deed)
    outcome = TRANSITIONS[cell.way.verb].attempt
    added = [] if outcome is None else [attempt_after(deed, outcome)]
    assert lab.attempts(case.id) == attempts + added
    if cell.way.verb is not Verb.CLAIM:
        assert lab.contents("leases") == leases
    check_invariants(lab, case.id)


def check_answer(deed: Deed, did: bool | Landing) -> None:
    if isinstance(did, bool):
        assert did
        return
    redirected = deed.to is TaskStatus.CANCELLED and deed.way.verb is not Verb.ACK_CANCEL
    assert did.answer is (Answer.CANCELLED if redirected else Answer.LANDED)
    assert did.status is deed.to


def check_invariants(lab: Lab, id: bytes) -> None:
    """What must be true of any task at any time."""
    task, rows = lab.task(id), lab.attempts(id)
    terminal = task.status in TASK_TERMINAL_STATES
    assert (task.claim_token is not None) == (task.status in IN_FLIGHT)
    assert (task.due_at is not None) == (task.status is TaskStatus.SCHEDULED)
    assert (task.finished_at is not None) == terminal
    assert (task.error_code is not None) == (terminal and task.status is not TaskStatus.COMPLETED)
    waits = task.status in MAY_EXPIRE and not task.handed_over
    assert task.expire_at == (task.good_until if waits else None)
    assert [row.attempt for row in rows] == list(range(1, len(rows) + 1))
    assert task.attempt == len(rows) + (task.status is TaskStatus.RUNNING)
    assert (id in lab.run(inspect.endings([id]))) == terminal


def traces(lab: Lab, case: Case) -> dict[str, list[Row]]:
    """All that the database holds about one task."""
    of_task = "task_seq = :key" if lab.engine == "sqlite" else "task_id = :key"
    return {
        "tasks": lab.sql("SELECT * FROM holdfast_tasks WHERE id = :id", id=case.id),
        "attempts": lab.sql(
            f"SELECT * FROM holdfast_task_attempts WHERE {of_task} ORDER BY attempt", key=case.key
        ),
        "edges": lab.sql(
            "SELECT * FROM holdfast_task_dependencies WHERE parent_id = :id OR child_id = :id",
            id=case.id,
        ),
    }


@on_each_engine
@pytest.mark.parametrize("way", [way for way in WAYS if way.verb is Verb.SUBMIT], ids=str)
def test_submit_makes_a_task_in_the_state_it_was_sent_for(lab: Lab, way: Way) -> None:
    nobody = Case(new_id(), 0, b"", None, lab.claimed(queue_name="other"))
    lab.send(id=PARENT, workflow_id=WORKFLOW, queue_name="other")
    assert lab.status(nobody.id) is None
    assert way.call(lab, nobody, b"") is True
    task = lab.task(nobody.id)
    assert task.status is way.to
    assert task.created_at == task.updated_at == lab.clock.now
    assert task.sent_at == submission().sent_at
    check_invariants(lab, nobody.id)


@on_each_engine
def test_nothing_happens_to_a_task_that_does_not_exist(lab: Lab) -> None:
    case = lab.reach(TaskStatus.FAILED)
    lab.run(operate.delete([case.id]))
    for way in WAYS:
        if way.verb is not Verb.SUBMIT:
            token = case.stale if TRANSITIONS[way.verb].fenced else new_token()
            assert way.call(lab, case, token) in (False, LOST), str(way)
            assert lab.status(case.id) is None
            assert lab.attempts(case.id) == []
