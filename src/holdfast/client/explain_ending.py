"""Why a workflow ended as it did: which step was the first to end badly, and what was behind that.

Owns the sentences; what the database still shows of the steps is all that they say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.client import explain_steps
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.records import StepRecord, WorkflowRecord
from holdfast.store.op import Steps
from holdfast.store.verbs.inspect import tasks_by_id

__all__ = ["ending", "some"]

_MOST_NAMES: Final = 5
_STOPPED: Final = {
    "deadline": "its deadline passed before it had ended",
    "fail_fast": "it stopped at the first failure",
}


def ending(whole: WorkflowRecord, steps: Sequence[StepRecord]) -> Steps[list[str]]:
    """How a workflow ended."""
    first = next((step for step in steps if step.id == whole.error_id), None)
    behind: Sequence[str] = ()
    if first is not None and whole.status is not WorkflowStatus.COMPLETED:
        tasks = yield from tasks_by_id([first.id])
        if first.id in tasks:
            behind = yield from explain_steps.reasons(tasks[first.id])
    return [*_sentences(whole, steps, first, behind)]


def _sentences(
    whole: WorkflowRecord,
    steps: Sequence[StepRecord],
    first: StepRecord | None,
    behind: Sequence[str],
) -> Iterator[str]:
    if whole.status is WorkflowStatus.COMPLETED:
        yield "all that it required has completed"
        return
    if whole.stopping is not None:
        by = f" by {whole.stopped_by}" if whole.stopped_by else ""
        yield _STOPPED.get(whole.stopping, f"it was cancelled{by}")
    if first is not None:
        said = first.failed_reason or first.error_code or first.status.value
        yield f"step {first.name!r} was the first to end badly: {said}"
        yield from behind
    bad = [
        step.name
        for step in steps
        if step.required
        and step.status.is_terminal
        and step.status is not TaskStatus.COMPLETED
        and step.error_code != "UPSTREAM_SUCCEEDED"
        and (first is None or step.name != first.name)
    ]
    if bad:
        yield f"{'other ' if first is not None else ''}steps that did not succeed: {some(bad)}"
    yield "`resubmit` runs again what ended badly and what was skipped for it"


def some(names: Sequence[str]) -> str:
    """The first of these names, and how many there are."""
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMES])
    rest = len(names) - _MOST_NAMES
    return shown if rest <= 0 else f"{shown} and {rest:,} more"
