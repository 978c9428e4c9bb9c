"""The table against the facts of the design: what must be true of it whoever edits it."""

from __future__ import annotations

import pytest

from holdfast.core.lifecycle import (
    CANCEL_REDIRECTS,
    TRANSITIONS,
    Verb,
    edges,
    legal,
    targets,
    verbs_from,
)
from holdfast.core.status import TASK_TERMINAL_STATES, AttemptOutcome, TaskStatus

S = TaskStatus
V = Verb
ENDS_A_START = {
    V.HAND_OVER: AttemptOutcome.COMPLETED,
    V.COMPLETE: AttemptOutcome.COMPLETED,
    V.FAIL: AttemptOutcome.FAILED,
    V.RETRY: AttemptOutcome.FAILED,
    V.SNOOZE: AttemptOutcome.SNOOZED,
    V.INTERRUPT: AttemptOutcome.INTERRUPTED,
    V.STALL: AttemptOutcome.STALLED,
    V.RECOVER: AttemptOutcome.WORKER_FAILURE,
    V.ACK_CANCEL: AttemptOutcome.CANCELLED,
}


def test_the_table_has_one_row_per_verb_in_the_order_of_the_verbs() -> None:
    assert list(TRANSITIONS) == list(Verb)


def test_only_submit_makes_a_task_and_only_delete_and_prune_remove_one() -> None:
    assert verbs_from(None) == (V.SUBMIT,)
    assert {verb for verb, row in TRANSITIONS.items() if not row.targets} == {V.DELETE, V.PRUNE}


def test_fenced_verbs_are_those_that_act_on_a_claim() -> None:
    fenced = {verb for verb, row in TRANSITIONS.items() if row.fenced}
    assert fenced == {V.START, V.RELEASE, *ENDS_A_START}
    for verb in fenced:
        assert set(TRANSITIONS[verb].sources) <= {S.CLAIMED, S.RUNNING}


def test_nothing_enters_claimed_or_running_but_by_claim_and_start() -> None:
    assert {verb for _, to, verb in edges() if to is S.CLAIMED} == {V.CLAIM}
    into_running = {(source, verb) for source, to, verb in edges() if to is S.RUNNING}
    assert into_running == {(S.CLAIMED, V.START), (S.RUNNING, V.REQUEST_CANCEL)}


def test_every_way_out_of_running_ends_the_start_with_one_outcome() -> None:
    leaving = {verb for source, to, verb in edges() if source is S.RUNNING and to is not S.RUNNING}
    assert leaving == set(ENDS_A_START)
    assert {v: row.attempt for v, row in TRANSITIONS.items() if row.attempt} == ENDS_A_START


def test_nothing_leaves_completed_and_only_resubmit_leaves_another_ending() -> None:
    for source, to, verb in edges():
        if source in TASK_TERMINAL_STATES and to is not None:
            assert verb is V.RESUBMIT
            assert source is not S.COMPLETED


def test_every_terminal_status_can_be_deleted_and_pruned() -> None:
    for status in TASK_TERMINAL_STATES:
        assert {V.DELETE, V.PRUNE} <= set(verbs_from(status))


def test_cancel_beats_another_run_but_not_a_value() -> None:
    assert {
        V.RETRY,
        V.SNOOZE,
        V.INTERRUPT,
        V.RECOVER,
        V.FAIL,
        V.STALL,
        V.HAND_OVER,
    } == CANCEL_REDIRECTS
    for verb in CANCEL_REDIRECTS:
        assert targets(verb, S.RUNNING, cancel_requested=True) == (S.CANCELLED,)
        assert S.CANCELLED not in targets(verb, S.RUNNING)
    assert targets(V.COMPLETE, S.RUNNING, cancel_requested=True) == (S.COMPLETED,)


def test_a_cancelled_run_can_never_run_again_by_itself() -> None:
    """With a cancel requested, every way out of RUNNING ends the task."""
    for verb in ENDS_A_START:
        for target in targets(verb, S.RUNNING, cancel_requested=True):
            assert target.is_terminal


@pytest.mark.parametrize("status", [S.WAITING, S.SCHEDULED, S.PENDING, S.CLAIMED])
def test_what_has_not_started_is_cancelled_at_once(status: S) -> None:
    assert targets(V.CANCEL, status) == (S.CANCELLED,)
    assert not legal(V.REQUEST_CANCEL, status)


def test_what_runs_is_asked_first() -> None:
    assert not legal(V.CANCEL, S.RUNNING)
    assert targets(V.REQUEST_CANCEL, S.RUNNING) == (S.RUNNING,)


def test_verbs_that_keep_the_status() -> None:
    assert targets(V.REPLACE, S.SCHEDULED) == (S.SCHEDULED,)
    assert targets(V.REPLACE, S.PENDING) == (S.PENDING,)
    assert targets(V.RESCHEDULE, S.PENDING) == (S.PENDING, S.SCHEDULED)


def test_illegal_pairs_have_no_target() -> None:
    for verb in Verb:
        for status in (None, *TaskStatus):
            if not legal(verb, status):
                assert targets(verb, status) == ()
                assert verb not in verbs_from(status)


def test_expire_needs_a_task_that_nobody_holds() -> None:
    assert set(TRANSITIONS[V.EXPIRE].sources) == {S.WAITING, S.SCHEDULED, S.PENDING}


def test_every_status_can_be_reached_and_can_end() -> None:
    graph: dict[TaskStatus | None, set[TaskStatus | None]] = {}
    for source, target, _ in edges():
        graph.setdefault(source, set()).add(target)
    assert set().union(*graph.values()) >= set(TaskStatus)
    for status in TaskStatus:
        reached: set[TaskStatus | None] = {status}
        while not (following := set().union(*(graph[at] for at in reached if at))) <= reached:
            reached |= following
        assert reached & TASK_TERMINAL_STATES


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        TRANSITIONS[V.CLAIM] = TRANSITIONS[V.START]  # type: ignore[index]
    with pytest.raises(AttributeError):
        TRANSITIONS[V.CLAIM].fenced = True  # type: ignore[misc]
