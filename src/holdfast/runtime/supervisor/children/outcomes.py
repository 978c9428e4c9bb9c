"""What became of the tasks that a child had in hand: by its own report, or by its death.

Owns the `Outcome` that is written about them. A child is believed about its
own tasks only; whether a task is its own has been asked before (`Ledger.own`).

A death is told by the template. This module also detects the exit of children whose template died,
by a descriptor for each process, which can be read when it has ended. How it ended is known
only where the kernel made it our own child (as process 1 of a container, say); elsewhere that is
lost with the template.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

import msgspec

from holdfast.core.outcome import (
    NEIGHBOUR,
    AbortAsked,
    Crashed,
    Failed,
    NotBegun,
    Outcome,
    Reported,
    RetryAsked,
    Returned,
    SnoozeAsked,
    TimedOut,
    Why,
    ended_because,
)
from holdfast.core.payload.failure import as_plain
from holdfast.runtime import orphan_guard
from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildHandle
from holdfast.runtime.wire.messages import EXIT_CUT_OFF


def reported(outcome: Reported, assignment: Assignment) -> Outcome:
    """What became of a task, as its child says; but why it was told to end, we know better."""
    if isinstance(outcome, Returned | SnoozeAsked):
        return outcome
    why = assignment.told_to_end
    if isinstance(outcome, Failed | RetryAsked | AbortAsked):
        error = as_plain(outcome.error)
        # What code raises after it was told to end counts as that end.
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


_CUT_OFF: Final = (
    "its process lost its connection to the worker, which the task's own code may have closed"
)


class Death:
    """A child is dead: what that means for each of its tasks."""

    def __init__(
        self,
        child: ChildHandle,
        runs: Iterable[Assignment],
        exit_code: int | None,
        exit_signal: int | None,
    ) -> None:
        self._child = child
        self._exit = exit_code, exit_signal
        given = [a for a in runs if a.given_at]
        said = {entry.slot for entry in child.page.begun()}
        # One that was seen to run and told to end would have reported its end.
        self._begun = {a.slot for a in given if a.slot in said or (a.begun_at and a.told_to_end)}
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
        if self._culprit not in (0, assignment.slot) and assignment.told_to_end is None:
            return NEIGHBOUR
        if child.breach is not None:
            return Crashed(*self._exit, f"its process was killed: it {child.breach}")
        if assignment.told_to_end is not None:
            return ended(assignment.told_to_end, assignment)
        if child.killed:
            return NEIGHBOUR
        return Crashed(*self._exit, _CUT_OFF if self._exit[0] == EXIT_CUT_OFF else None)


def watch_orphan(child: ChildHandle) -> int | None:
    """A descriptor that can be read once the child is dead; None if it is, or cannot be watched."""
    child.orphaned = True
    if child.pid is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(child.pid)
    except OSError:
        return None


def orphan_ended(child: ChildHandle, descriptor: int | None) -> tuple[int | None, int | None]:
    """One is dead, and what is left of its process group is killed; its exit code and signal, as
    far as they are known."""
    if child.pid is not None:
        orphan_guard.kill_group(child.pid)
    if descriptor is None:
        return None, None
    try:
        found = os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG)
    except OSError:
        # Somebody else's child by now.
        return None, None
    finally:
        os.close(descriptor)
    if found is None:
        return None, None
    has_exited = found.si_code == os.CLD_EXITED
    return (found.si_status, None) if has_exited else (None, found.si_status)
