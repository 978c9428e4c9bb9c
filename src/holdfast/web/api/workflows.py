"""`/workflows`: which there are, where each stands with its steps, and what is done to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from holdfast.client.workflow_control import WorkflowFilters
from holdfast.client.workflow_info import StepInfo, WorkflowInfo
from holdfast.core.status import WorkflowStatus
from holdfast.web.access import Role
from holdfast.web.allowed import workflow_verbs
from holdfast.web.api.operation import operation
from holdfast.web.api.task_actions import StatusDocument
from holdfast.web.api.task_documents import UnreadableDocument, unreadable
from holdfast.web.api.task_filter import Moment, PageSize, Word
from holdfast.web.context import Context
from holdfast.web.payload_view import PayloadView

__all__ = ["ROUTES"]

_COPIED: Final = (
    "id",
    "name",
    "version",
    "on_failure",
    "stopping",
    "stopped_by",
    "paused_at",
    "paused_by",
    "deadline_at",
    "run_at",
    "steps",
    "created_at",
    "finished_at",
    "parent_id",
)


class WorkflowDocument(msgspec.Struct, kw_only=True):
    """A workflow, without its steps."""

    id: UUID
    name: str
    version: int
    status: str
    on_failure: str
    stopping: str | None
    """Why it winds down: `fail_fast`, `deadline`, `cancel`."""
    stopped_by: str | None
    paused_at: datetime | None
    paused_by: str | None
    deadline: float | None
    """Seconds."""
    deadline_at: datetime | None
    run_at: datetime | None
    tags: list[str]
    arguments: Any
    """Payload."""
    steps: int
    """How many it was started with."""
    created_at: datetime
    finished_at: datetime | None
    parent_id: UUID | None
    """The workflow that it is a part of."""
    allowed: list[str]
    """The verbs that can be applied to it now."""

    @classmethod
    def of(cls, info: WorkflowInfo, view: PayloadView) -> WorkflowDocument:
        """A workflow, as this visitor sees it."""
        fields = {name: getattr(info, name) for name in _COPIED}
        return cls(
            **fields,
            status=info.status.value,
            deadline=None if info.deadline is None else info.deadline.total_seconds(),
            tags=list(info.tags),
            arguments=view.value(info.arguments),
            allowed=list(workflow_verbs(info.status)),
        )


class WaitDocument(msgspec.Struct, kw_only=True):
    """A step above another, and what that one waits for."""

    id: UUID
    on: str


class StepDocument(msgspec.Struct, kw_only=True):
    """A step of a workflow: where it stands, and what it waits for."""

    id: UUID
    """It is a task, with this id."""
    name: str
    task: str
    status: str
    attempt: int
    required: bool
    """Whether the whole fails without it."""
    handler: bool
    """Whether it waits for a failure or an end, or hangs below such a step."""
    hidden: str | None
    handed_over: bool
    """Its code has run, and it ends with the steps that it added."""
    added_by: UUID | None
    error_code: str | None
    failed_reason: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    waits_for: list[WaitDocument]

    @classmethod
    def of(cls, info: StepInfo) -> StepDocument:
        """A step, as it stands."""
        made = {"status", "failed_reason", "waits_for"}
        names = [name for name in cls.__struct_fields__ if name not in made]
        why = info.failed_reason
        return cls(
            **{name: getattr(info, name) for name in names},
            status=info.status.value,
            failed_reason=None if why is None else PayloadView.said(why),
            waits_for=[WaitDocument(id=above, on=on) for above, on in info.waits_for.items()],
        )


class WorkflowQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which workflows, and where the page begins."""

    status: list[WorkflowStatus] = []
    """One of these; none: any."""
    name: Word | UnsetType = UNSET
    tag: Word | UnsetType = UNSET
    submitted_from: Moment | UnsetType = UNSET
    submitted_until: Moment | UnsetType = UNSET
    parts: bool = False
    """Also those that are parts of others."""
    before: UUID | None = None
    limit: PageSize = 50

    @property
    def filter(self) -> WorkflowFilters:
        """The same, for `app.control.workflows`."""
        names = ("name", "tag", "submitted_from", "submitted_until")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        given = {name: value for name, value in given.items() if value is not UNSET}
        return cast("WorkflowFilters", given | {"status": self.status, "parts": self.parts})


class WorkflowList(msgspec.Struct, kw_only=True):
    """Some workflows, the newest first."""

    workflows: list[WorkflowDocument]
    next: UUID | None
    """Give this as `before` for the next page; null: there is none."""
    unreadable: list[UnreadableDocument]


class WorkflowCount(msgspec.Struct, kw_only=True):
    """How many of the newest 10,000 are in each status."""

    by_status: dict[str, int]


class WorkflowReportDocument(msgspec.Struct, kw_only=True):
    """A workflow with all its steps."""

    workflow: WorkflowDocument
    steps: list[StepDocument]
    """In the order in which they were built."""
    unreadable: list[UnreadableDocument]


class WorkflowWhyDocument(msgspec.Struct, kw_only=True):
    """What keeps a workflow from ending, or how it ended."""

    workflow_id: UUID
    status: str
    reasons: list[str]
    text: str


class CancelWorkflowBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How."""

    cleanup: bool = True
    """Steps that wait for an end still run."""


class ResubmitWorkflowBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How."""

    fresh: bool = False
    """Forget the checkpoints of its steps."""


def _status(id: UUID, status: WorkflowStatus) -> StatusDocument:
    return StatusDocument(id=id, status=status.value)


@operation("GET", "/workflows", tag="workflows", refusals=[404])
async def list_workflows(context: Context, query: WorkflowQuery) -> WorkflowList:
    """List workflows, the newest first."""
    page = await context.control.workflows.alist(
        before=query.before, limit=query.limit, **query.filter
    )
    return WorkflowList(
        workflows=[WorkflowDocument.of(info, context.payloads) for info in page.workflows],
        next=page.next,
        unreadable=unreadable(page.unreadable),
    )


@operation("GET", "/workflows/count", tag="workflows")
async def count_workflows(context: Context) -> WorkflowCount:
    """Count the workflows in each status, among the newest 10,000; parts are not counted."""
    found = await context.control.workflows.acount()
    return WorkflowCount(by_status={status.value: number for status, number in found.items()})


@operation("GET", "/workflows/{id}", tag="workflows", refusals=[409])
async def show_workflow(context: Context, id: UUID) -> WorkflowReportDocument:
    """Show a workflow with all its steps, and what each waits for."""
    report = await context.control.workflows.ashow(id)
    return WorkflowReportDocument(
        workflow=WorkflowDocument.of(report.info, context.payloads),
        steps=[StepDocument.of(step) for step in report.steps],
        unreadable=unreadable(report.unreadable),
    )


@operation("GET", "/workflows/{id}/why", tag="workflows", refusals=[409])
async def why_workflow(context: Context, id: UUID) -> WorkflowWhyDocument:
    """Say what a workflow waits for, or how it ended."""
    why = await context.control.workflows.awhy(id)
    return WorkflowWhyDocument(
        workflow_id=id,
        status=why.status.value,
        reasons=[context.payloads.said(reason) for reason in why.reasons],
        text=context.payloads.said(str(why)),
    )


@operation("GET", "/workflows/{id}/mermaid", tag="workflows", refusals=[409])
async def chart_workflow(context: Context, id: UUID) -> Response:
    """Draw the graph with the state of each step, as the text of a Mermaid flowchart."""
    text = await context.control.workflows.ato_mermaid(id)
    return Response(text.encode(errors="replace"), media_type="text/plain; charset=utf-8")


@operation("POST", "/workflows/{id}/pause", tag="workflows", needs=Role.OPERATE, refusals=[409])
async def pause_workflow(context: Context, id: UUID) -> StatusDocument:
    """Hold what has not begun. What runs goes on."""
    async with context.acting():
        return _status(id, await context.control.workflows.apause(id))


@operation("POST", "/workflows/{id}/resume", tag="workflows", needs=Role.OPERATE, refusals=[409])
async def resume_workflow(context: Context, id: UUID) -> StatusDocument:
    """Undo a pause; a failure that had caused it is accepted."""
    async with context.acting():
        return _status(id, await context.control.workflows.aresume(id))


@operation("POST", "/workflows/{id}/cancel", tag="workflows", needs=Role.OPERATE, refusals=[409])
async def cancel_workflow(context: Context, id: UUID, body: CancelWorkflowBody) -> StatusDocument:
    """Cancel what has not ended, running steps included."""
    async with context.acting():
        status = await context.control.workflows.acancel(id, cleanup=body.cleanup)
    return _status(id, status)


@operation("POST", "/workflows/{id}/resubmit", tag="workflows", needs=Role.OPERATE, refusals=[409])
async def resubmit_workflow(
    context: Context, id: UUID, body: ResubmitWorkflowBody
) -> StatusDocument:
    """Run every step again that ended badly, and what was skipped below it."""
    async with context.acting():
        return _status(id, await context.control.workflows.aresubmit(id, fresh=body.fresh))


@operation("DELETE", "/workflows/{id}", tag="workflows", needs=Role.ADMIN, refusals=[409])
async def delete_workflow(context: Context, id: UUID) -> StatusDocument:
    """Delete a workflow that has ended, with its steps and parts; the answer is how it ended."""
    status = (await context.control.workflows.aget(id)).status
    async with context.acting():
        await context.control.workflows.adelete(id)
    return _status(id, status)


ROUTES: Final = (
    list_workflows,
    count_workflows,
    show_workflow,
    why_workflow,
    chart_workflow,
    pause_workflow,
    resume_workflow,
    cancel_workflow,
    resubmit_workflow,
    delete_workflow,
)
