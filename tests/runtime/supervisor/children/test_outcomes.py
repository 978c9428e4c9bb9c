"""What a child's word, or its death, means for the tasks it had in hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.error_code import ErrorCode
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import (
    LOST_LEASE,
    NEIGHBOUR,
    AbortAsked,
    CancelAcknowledged,
    Crashed,
    Failed,
    NotBegun,
    Outcome,
    Reported,
    RetryAsked,
    Returned,
    SnoozeAsked,
    StoppedByShutdown,
    TimedOut,
    Why,
)
from holdfast.core.result import TaskError
from holdfast.runtime.supervisor.children.outcomes import Death, reported
from holdfast.runtime.supervisor.state.child_handle import Assignment
from tests.runtime.supervisor.state.test_ledger import claimed
from tests.support.hands import Hands
from tests.support.verbs import new_token

RAISED = TaskError.ours(ErrorCode.UNHANDLED_EXCEPTION, "no", exception="builtins.ValueError")
OWN = TaskError("MINE", "no", data={"sku": 7})
POLICY = Policy(timeout=3)


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


def given(hands: Hands, slot: int = 1, why: Why | None = None) -> Assignment:
    """A task that was handed to the child."""
    assignment = Assignment(
        slot,
        claimed(slot, new_token()),
        POLICY,
        hands.child,
        10,
        given_at=1.0,
        told_to_end=why,
    )
    hands.child.take(assignment, alone=False)
    return assignment


@pytest.mark.parametrize(
    ("said", "why", "outcome"),
    [
        (Returned("1"), None, Returned("1")),
        (Returned("1"), "timeout", Returned("1")),
        (SnoozeAsked(5), "timeout", SnoozeAsked(5)),
        (RetryAsked(RAISED, 5), "timeout", RetryAsked(RAISED, 5)),
        (AbortAsked(RAISED), "timeout", AbortAsked(RAISED)),
        (Failed(OWN, True), None, Failed(OWN, True)),
        (Failed(OWN, True), "timeout", Failed(OWN, True)),
        (Failed(RAISED), None, Failed(RAISED)),
        (Failed(RAISED), "timeout", TimedOut(3, "here", " remark")),
        (NEIGHBOUR, None, NEIGHBOUR),
        (NEIGHBOUR, "cancel", CancelAcknowledged()),
        (CancelAcknowledged(), None, CancelAcknowledged()),
        (CancelAcknowledged(), "lost", LOST_LEASE),
        (TimedOut(99), "timeout", TimedOut(3, "here", " remark")),
        (LOST_LEASE, "shutdown", StoppedByShutdown()),
    ],
)
def test_a_child_is_believed_but_not_about_why_it_was_told_to_end_a_task(
    hands: Hands, said: Reported, why: Why | None, outcome: Outcome
) -> None:
    assignment = given(hands, why=why)
    assignment.stack, assignment.remark = "here", " remark"
    assert reported(said, assignment) == outcome


def test_texts_of_an_error_are_cut_like_those_that_are_stored(hands: Hands) -> None:
    forged = TaskError.stored("MINE", "", None, None, None, ())
    object.__setattr__(forged, "message", "\x00" + "x" * 100_000)
    outcome = reported(Failed(forged), given(hands))
    assert isinstance(outcome, Failed)
    assert len(outcome.error.message) < 10_000
    assert "\x00" not in outcome.error.message


def test_only_what_has_begun_is_charged_with_a_death(hands: Hands) -> None:
    ran, waited = given(hands, 1), given(hands, 2)
    hands.child.page.begin(0, 1, 7)
    death = Death(hands.child, list(hands.child.hand.values()), None, 9)
    assert death.outcome(ran) == Crashed(None, 9)
    assert death.outcome(waited) == NotBegun()


def test_what_we_ended_did_not_crash(hands: Hands) -> None:
    ended, neighbour = given(hands, 1, "cancel"), given(hands, 2)
    hands.child.page.begin(0, 1, 7)
    hands.child.page.begin(1, 2, 7)
    hands.child.killed = True
    death = Death(hands.child, list(hands.child.hand.values()), None, 9)
    assert death.outcome(ended) == CancelAcknowledged()
    assert death.outcome(neighbour) == NEIGHBOUR


def test_a_breach_is_named_and_charged_even_to_code_that_hides(hands: Hands) -> None:
    hidden = given(hands)
    hands.child.breach = "sent garbage"
    assert Death(hands.child, [hidden], None, 9).outcome(hidden) == Crashed(
        None, 9, "its process was killed: it sent garbage"
    )
