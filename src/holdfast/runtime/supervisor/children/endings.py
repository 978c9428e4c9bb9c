"""What a child's word, or its death, means for the tasks it had in hand.

Owns the translation into what `core.decide` understands. A child is believed about its
own tasks only; whether a task is its own has been asked before (`Ledger.own`).
"""

from __future__ import annotations

from holdfast.core.outcome import (
    NEIGHBOUR,
    AbortAsked,
    Crashed,
    Failed,
    Interrupted,
    NotBegun,
    Outcome,
    RetryAsked,
    Returned,
    SnoozeAsked,
    TimedOut,
    Why,
    ended_because,
)
from holdfast.core.payload.failure import decode_error
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.supervisor.state.child_handle import ChildHandle
from holdfast.runtime.wire import messages


def told(said: messages.Outcome, assignment: Assignment) -> Outcome:
    """What a child reports of a task."""
    if said.kind == "returned" or said.kind == "committed":
        return Returned(said.result or "null")
    if said.kind == "cancelled":
        return doomed(assignment.doomed or "cancel", assignment)
    if said.kind == "snooze":
        return SnoozeAsked(said.delay_us or 0)
    if said.kind == "interrupted":
        if assignment.doomed is not None:
            return doomed(assignment.doomed, assignment)
        return Interrupted(NEIGHBOUR)
    error = decode_error(said.error or "{}")
    if said.kind == "retry":
        return RetryAsked(error, said.delay_us)
    if said.kind == "abort":
        return AbortAsked(error)
    if assignment.doomed is not None and error.exception is not None:
        # What code raises when it is told to end is that end, by another name.
        return doomed(assignment.doomed, assignment)
    return Failed(error, said.listed)


def doomed(why: Why, assignment: Assignment) -> Outcome:
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
            return Interrupted(NEIGHBOUR)
        if child.breach is not None:
            return Crashed(*self._exit, f"its process was killed: it {child.breach}")
        if assignment.doomed is not None:
            return doomed(assignment.doomed, assignment)
        if child.killed:
            return Interrupted(NEIGHBOUR)
        return Crashed(*self._exit)
