"""Which statuses of a workflow are ends."""

from __future__ import annotations

from holdfast.core.workflows.records import WorkflowStatus


def test_a_workflow_that_runs_or_is_paused_has_not_ended() -> None:
    live = {status for status in WorkflowStatus if not status.is_terminal}
    assert live == {WorkflowStatus.RUNNING, WorkflowStatus.PAUSED}
