"""What a child's word, or its death, means for the tasks it had in hand.

Owns the `Outcome` that is written about them. A child is believed about its
own tasks only; whether a task is its own has been asked before (`Ledger.own`).
"""

from __future__ import annotations

import msgspec

from holdfast.core.outcome import (
    NEIGHBOUR,
    AbortAsked,
    Crashed,
    Failed,
    NotBegun,
    Outcome,
    RetryAsked,
    Returned,
    SnoozeAsked,
    TimedOut,
    Why,
    ended_because,
)
from holdfast.core.payload.failure import as_plain
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.supervisor.state.child_handle import ChildHandle
from holdfast.runtime.wire.messages import RunReport


def reported(report: RunReport, assignment: Assignment) -> Outcome:
    """What became of a task, as its child says; but why it was told to end, we know better."""
    outcome = report.outcome
    if isinstance(outcome, Returned | SnoozeAsked):
        return outcome
    why = assignment.doomed
    if isinstance(outcome, Failed | RetryAsked | AbortAsked):
        error = as_plain(outcome.error)
        # What code raises when it is told to end is that end, by another name.
        if isinstance(outcome, Failed) and why is not None and error.exception is not None:
            return ended(why, assignment)
        return msgspec.structs.replace(outcome, error=error)
    return outcome if why is None else ended(why, assignment)


def ended(why: Why, assignment: Assignment) -> Outcome:
    """The outcome of code that we ended."""
    outcome = ended_because(why, assignment.policy, assignment.stack)
    if isinstance(outcome, TimedOut) and assignment.remark:
        return TimedOut(outcome.timeout, outcome.stack, assignment.remark)
    return outcome


class Death:
    """A child is dead: what that means for each of its tasks."""

    def __init__(self, child: ChildHandle, exit_code: int | None, exit_signal: int | None) -> None:
        self._child = child
        self._exit = exit_code, exit_signal
        given = [a for a in child.hand.values() if a.given_at]
        said = {entry.slot for entry in child.page.begun()}
        # One that was seen to run and told to end would have left word of its end.
        self._begun = {a.slot for a in given if a.slot in said or (a.begun_at and a.doomed)}
        stepping = child.page.stepping() if child.kind == "async" else 0
        self._culprit = stepping if stepping in self._begun else 0
        """Which of several coroutines it was, if it is known."""
        if given and not self._begun and (child.breach is not None or child.reader.is_torn):
            # Code that hides that it runs is still the only one that can have done it.
            self._begun = {given[0].slot}

    def outcome(self, assignment: Assignment) -> Outcome:
        """What became of this task of the child."""
        child = self._child
        if assignment.slot not in self._begun:
            return NotBegun()
        if self._culprit not in (0, assignment.slot) and assignment.doomed is None:
            return NEIGHBOUR
        if child.breach is not None:
            return Crashed(*self._exit, f"its process was killed: it {child.breach}")
        if assignment.doomed is not None:
            return ended(assignment.doomed, assignment)
        if child.killed:
            return NEIGHBOUR
        return Crashed(*self._exit)
