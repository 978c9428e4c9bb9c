"""Workflows: all of them, and one with its graph, each node a link, and what can be done to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from holdfast.client.workflow_control import WorkflowFilters
from holdfast.client.workflow_info import StepInfo, WorkflowInfo
from holdfast.core.errors import ConfigError, TaskNotFound
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.lifecycle import WORKFLOW_TRANSITIONS, WorkflowVerb
from holdfast.web.access import Role, Visitor
from holdfast.web.context import Context
from holdfast.web.drawing.graph import GraphLayout, lay_out
from holdfast.web.pages.foreign_text import shorten_end
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.template import render
from holdfast.web.pages.value_tree import ValueNode, call_trees, value_tree
from holdfast.web.pages.words import as_sentence, duration
from holdfast.web.route import WebRoute

__all__ = ["ROUTES", "StepView"]

_MOST_DRAWN: Final = 300
_MOST_EDGES: Final = 1_500
_MOST_LISTED: Final = 500
_NAME_ROOM: Final = 24
_LONGEST: Final = 300
HUES: Final = {
    WorkflowStatus.RUNNING: "running",
    WorkflowStatus.PAUSED: "waiting",
    WorkflowStatus.COMPLETED: "completed",
    WorkflowStatus.FAILED: "failed",
    WorkflowStatus.CANCELLED: "cancelled",
}
_BAD: Final = tuple(
    status for status in TaskStatus if status.is_terminal and status is not TaskStatus.COMPLETED
)
"""What a resubmit is for."""
_TAILS: Final = {"error": "the first failure", "ended": "the end of all before"}
"""What a step waits for that is no step."""
_ORDER: Final = (
    TaskStatus.COMPLETED,
    TaskStatus.RUNNING,
    TaskStatus.CLAIMED,
    TaskStatus.PENDING,
    TaskStatus.SCHEDULED,
    TaskStatus.FAILED,
    TaskStatus.STALLED,
    TaskStatus.DROPPED,
    TaskStatus.EXPIRED,
    TaskStatus.WAITING,
    TaskStatus.CANCELLED,
)


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of the table and of the graph."""

    info: StepInfo
    short: str
    """Its name, as there is room for it in the graph."""
    said: str
    """Where it stands."""
    ran: timedelta | None
    bar: tuple[float, float] | None
    """Where its latest start began and how long it lasted, of a width of 192."""
    after: str
    """The names of those above it."""


async def show_workflows(context: Context) -> Response:
    """The list."""
    params = context.request.query_params
    where = WorkflowFilters()
    problem, status = "", params.get("status", "").upper()
    if status:
        try:
            where["status"] = WorkflowStatus(status)
        except ValueError:
            problem = f"there is no status {status!r:.100}"
    if name := params.get("name", "").strip()[:_LONGEST]:
        where["name"] = name
    before = _uuid(params.get("before", ""))
    control = context.control.workflows
    page = await control.alist(before=before, **where)
    counts = await control.acount()
    shown = {"status": status.lower() or None, "name": name or None}
    return render(
        context,
        "workflows.html",
        now=await context.control.anow(),
        here="workflows",
        title="Workflows",
        navigation=await navigation(context),
        workflows=page.workflows,
        unreadable=page.unreadable,
        counts=counts,
        statuses=list(WorkflowStatus),
        hues=HUES,
        chosen=where.get("status"),
        name=name,
        problem=problem,
        query=shown,
        newest=context.url("/workflows", **shown) if before is not None else None,
        older=None if page.next is None else context.url("/workflows", **shown, before=page.next),
    )


async def show_workflow(context: Context) -> Response:
    """One workflow."""
    id = _id(context)
    report = await context.control.workflows.ashow(id)
    why = await context.control.workflows.awhy(id)
    now = await context.control.anow()
    info = report.info
    views = _views(report.steps, info, now)
    drawn = views[:_MOST_DRAWN]
    counts = Counter(each.status for each in report.steps)
    return render(
        context,
        "workflow.html",
        now=now,
        here="workflows",
        title=info.name,
        navigation=await navigation(context),
        info=info,
        hues=HUES,
        counts=[(status, counts[status]) for status in _ORDER if counts[status]],
        shares=_shares(counts),
        steps=views[:_MOST_LISTED],
        total=len(views),
        graph=_layout(drawn),
        drawn={view.info.id: view for view in drawn},
        taken=(info.finished_at or now) - info.created_at,
        why=[as_sentence(context.payloads.said(reason)) for reason in why.reasons],
        failed=next((v for v in views if v.info.status is TaskStatus.FAILED), None),
        verbs=_verbs(info, context.visitor, any_bad=any(counts[each] for each in _BAD)),
        arguments=_arguments(context, info) if context.visitor.payloads else None,
        unreadable=report.unreadable,
        without_passwords=context.payloads.said,
        said=context.request.query_params.get("done", ""),
    )


def _arguments(context: Context, info: WorkflowInfo) -> Sequence[tuple[str, ValueNode]] | None:
    given = context.payloads.value(info.arguments)
    if not isinstance(given, dict) or given.keys() != {"args", "kwargs"}:
        return None if given is None else [("", value_tree(given))]
    if not given["args"] and not given["kwargs"]:
        return None
    return call_trees(given["args"], given["kwargs"])


def _views(steps: Sequence[StepInfo], whole: WorkflowInfo, now: datetime) -> list[StepView]:
    names = {step.id: step.name for step in steps}
    span = max(((whole.finished_at or now) - whole.created_at).total_seconds(), 0.001)
    found = []
    for step in steps:
        ran = None
        bar = None
        if step.started_at is not None:
            end = step.finished_at or (now if step.status is TaskStatus.RUNNING else None)
            if end is not None:
                ran = max(timedelta(0), end - step.started_at)
                begin = max(0.0, (step.started_at - whole.created_at).total_seconds())
                x = min(190.0, begin / span * 192)
                bar = (
                    round(x, 1),
                    round(max(2.0, min(192 - x, ran.total_seconds() / span * 192)), 1),
                )
        above = [*step.waits_for, *([step.added_by] if step.added_by is not None else [])]
        after = [names[each] for each in above[:6] if each in names]
        if step.tail in _TAILS:
            after.insert(0, _TAILS[step.tail])
        short = shorten_end(step.name, _NAME_ROOM)
        found.append(
            StepView(step, short, _said(step, len(above), ran), ran, bar, ", ".join(after))
        )
    return found


def _said(step: StepInfo, above: int, ran: timedelta | None) -> str:
    """Where it stands, as there is room for it in the graph."""
    more = ""
    if ran is not None:
        more = duration(ran)
    elif step.status is TaskStatus.WAITING:
        more = f"for {above}" if above else "for a failure" if step.tail == "error" else ""
        more = more or ("for the end" if step.tail == "ended" else "")
    elif step.status is TaskStatus.CANCELLED and not step.attempt:
        more = "not needed" if step.error_code == "UPSTREAM_SUCCEEDED" else "skipped"
    return f"{step.status.label} · {more}" if more else step.status.label


def _layout(views: Sequence[StepView]) -> GraphLayout[UUID]:
    edges = [(parent, view.info.id) for view in views for parent in view.info.waits_for]
    edges += [(v.info.added_by, v.info.id) for v in views if v.info.added_by is not None]
    tail = {view.info.id for view in views if view.info.tail is not None}
    return lay_out([view.info.id for view in views], edges[:_MOST_EDGES], tail=tail)


def _shares(counts: Counter[TaskStatus]) -> list[tuple[str, float, float]]:
    """The bar of all steps: hue, x and width of 1000, with gaps between."""
    total, x = counts.total(), 0.0
    found = []
    for status in _ORDER:
        if counts[status]:
            width = counts[status] / total * 1000
            found.append((status.value.lower(), round(x, 1), round(max(1.0, width - 4), 1)))
            x += width
    return found


_OFFERED: Final = (
    (WorkflowVerb.RESUBMIT, "Resubmit", Role.OPERATE),
    (WorkflowVerb.PAUSE, "Pause", Role.OPERATE),
    (WorkflowVerb.RESUME, "Resume", Role.OPERATE),
    (WorkflowVerb.CANCEL, "Cancel", Role.OPERATE),
    (WorkflowVerb.DELETE, "Delete", Role.ADMIN),
)
_MEANING: Final = {
    "resubmit": "Every step that ended badly runs again, with what was skipped below it. Steps "
    "that completed stay.",
    "pause": "What has not begun is held until you resume; what runs goes on.",
    "resume": "What was held goes on. A failure that caused the pause is accepted.",
    "cancel": "What has not ended is cancelled, running steps included. Steps that wait for an "
    "end still run.",
    "delete": "It goes with its steps, and does not come back.",
}


def _verbs(info: WorkflowInfo, visitor: Visitor, *, any_bad: bool) -> list[tuple[str, str, str]]:
    """What can be done now: name, label, meaning."""
    found = []
    for verb, label, needs in _OFFERED:
        row = WORKFLOW_TRANSITIONS[verb]
        fits = info.status.is_terminal or info.stopping in row.after
        if verb is WorkflowVerb.RESUBMIT and not any_bad:
            continue
        if info.status in row.sources and fits and visitor.may(needs):
            found.append((verb.value, label, _MEANING[verb.value]))
    return found


async def act(verb: str, context: Context) -> Response:
    """Do it to the whole."""
    id = _id(context)
    control = context.control.workflows
    async with context.acting():
        if verb == "pause":
            await control.apause(id)
        elif verb == "delete":
            if not await control.adelete(id):
                raise TaskNotFound(id.bytes, noun="workflow")
            return RedirectResponse(context.url("/workflows"), status_code=303)
        else:
            does = {
                "resume": control.aresume,
                "cancel": control.acancel,
                "resubmit": control.aresubmit,
            }
            await does[verb](id)
    return RedirectResponse(context.url(f"/workflows/{id}", done=verb), status_code=303)


def _id(context: Context) -> UUID:
    found = _uuid(context.request.path_params["id"])
    if found is None:
        raise TaskNotFound(context.request.path_params["id"][:100], noun="workflow")
    return found


def _uuid(text: str) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        raise ConfigError(f"{text!r:.100} is not a UUID", option="id") from None


_page = partial(WebRoute, kind="page")

ROUTES: Final = (
    _page("/workflows", ("GET",), show_workflows, needs=Role.READ, name="workflows"),
    _page("/workflows/{id}", ("GET",), show_workflow, needs=Role.READ, name="workflow"),
    *(
        _page(
            f"/workflows/{{id}}/{verb.value}",
            ("POST",),
            partial(act, verb.value),
            needs=needs,
            name=f"workflow-{verb.value}",
        )
        for verb, _, needs in _OFFERED
    ),
)
