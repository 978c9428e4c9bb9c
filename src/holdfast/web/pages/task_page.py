"""One task: everything that is known of it, and the verbs that its status allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from starlette.responses import Response

from holdfast.client.info import Attempt, TaskInfo
from holdfast.client.task_questions import CheckpointInfo
from holdfast.client.task_search import TaskPage
from holdfast.core.lifecycle import Verb, legal
from holdfast.core.result import TaskError
from holdfast.core.status import AttemptOutcome, TaskStatus
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.drawing.lifecycle_map import Reached, lifecycle_map
from holdfast.web.pages.dead_letter_page import exception_of
from holdfast.web.pages.lineage import ancestors
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.task_address import short_id, task_id_of
from holdfast.web.pages.task_log import LogView, log_view
from holdfast.web.pages.task_verbs import allowed_now
from holdfast.web.pages.template import render
from holdfast.web.pages.traceback_text import FrameGroup, frame_groups
from holdfast.web.pages.value_tree import ValueNode, call_trees, value_text, value_tree
from holdfast.web.pages.words import as_sentence, duration
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_ATTEMPTS: Final = 3
"""How many are shown side by side unless all are asked for."""
_MOST_ATTEMPTS: Final = 50
_CHILDREN: Final = 20
_OF_WORKFLOWS: Final = (Verb.HAND_OVER, Verb.HOLD, Verb.UNBLOCK, Verb.SKIP, Verb.SETTLE)
_HUES: Final[Mapping[AttemptOutcome, str]] = {
    AttemptOutcome.COMPLETED: "completed",
    AttemptOutcome.FAILED: "failed",
    AttemptOutcome.CANCELLED: "cancelled",
    AttemptOutcome.SNOOZED: "scheduled",
    AttemptOutcome.INTERRUPTED: "pending",
    AttemptOutcome.STALLED: "stalled",
    AttemptOutcome.WORKER_FAILURE: "stalled",
}


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One start, as a column beside others."""

    number: int
    hue: str
    word: str
    started_at: datetime | None
    waited: timedelta | None
    ran: timedelta | None
    worker: str
    memory_mb: float | None
    cpu: timedelta | None
    exit: str
    error: str


@dataclass(frozen=True, slots=True)
class ErrorView:
    """One error with what led to it."""

    error: TaskError
    attempt: int | None
    at: datetime | None
    groups: Sequence[FrameGroup]

    @property
    def head(self) -> str:
        """Its type, or its code."""
        return self.error.type_name or str(self.error.error_code)


async def show_task(context: Context) -> Response:
    """The page."""
    id = task_id_of(context)
    tasks = context.control.tasks
    info = await tasks.ashow(id)
    now = await context.control.anow()
    attempts = await tasks.aattempts(id)
    why = await tasks.awhy(id)
    waits_for = await tasks.adependencies(id) if info.workflow_id is not None else []
    sent = await tasks.alist(parent_id=id, limit=_CHILDREN) if info.attempt else TaskPage((), None)
    log: LogView | None = None
    checkpoints: list[tuple[str, ValueNode]] = []
    if context.visitor.payloads:
        log = await log_view(context, info, attempts)
        made = await tasks.acheckpoints(id) if info.attempt else []
        checkpoints = [(each.name, _stored(context, each)) for each in made]
    error = _error(info, attempts)
    every = "attempts" in context.request.query_params
    return render(
        context,
        "task.html",
        now=now,
        here="tasks",
        title=info.name,
        navigation=await navigation(context),
        info=info,
        short=short_id(id),
        places=lifecycle_map(
            info.status,
            _reached(info, attempts),
            _now_text(info, attempts, now),
            without=() if info.workflow_id is not None else _OF_WORKFLOWS,
        ),
        columns=_columns(info, attempts, now, _MOST_ATTEMPTS if every else _ATTEMPTS),
        attempts=attempts,
        error=error,
        exception=exception_of(info),
        said_error=context.payloads.said,
        data_tree=None if error is None else _tree(context, error.error.data),
        why=[as_sentence(context.payloads.said(reason)) for reason in why.reasons],
        log=log,
        log_level=context.request.query_params.get("level"),
        checkpoints=checkpoints,
        ancestors=await ancestors(context, info),
        children=sent.tasks,
        more_children=sent.next is not None,
        waits_for=[(UUID(bytes=each.parent_id), each) for each in waits_for],
        arguments=_arguments(context, info) if context.visitor.payloads else None,
        arguments_text=value_text(context.payloads.value(_named(info))),
        result=_result(context, info),
        result_text=value_text(context.payloads.value(info.result)),
        meta=_tree(context, info.meta),
        options=value_tree(info.options) if info.options else None,
        running_for=_running_for(info, now),
        tries=_tries(info),
        verbs=allowed_now(info.status, context.visitor),
        can_reschedule=legal(Verb.RESCHEDULE, info.status) and context.visitor.may(Role.OPERATE),
        can_send=context.visitor.may(Role.OPERATE) and context.visitor.payloads,
        said=_said(context, info),
    )


_SAID: Final = {
    "resubmit": "Resubmitted.",
    "cancel": "Its worker was asked to end it.",
    "reschedule": "Rescheduled.",
    "send": "Sent. This is the new task.",
    "same": "A task with the same unique key exists already: this is it.",
}


def _said(context: Context, info: TaskInfo) -> str:
    """What has just been done here."""
    done = context.request.query_params.get("done", "")
    if done == "cancel" and info.status is not TaskStatus.RUNNING:
        return f"{info.status.label}."
    return _SAID.get(done, "")


def _tries(info: TaskInfo) -> str:
    parts = [f"{info.attempt:,} of {max(info.max_retries + 1, info.attempt):,}"]
    if info.retry_count:
        parts.append(f"{info.retry_count:,} {'retry' if info.retry_count == 1 else 'retries'}")
    if info.crash_count:
        parts.append(f"{info.crash_count:,} {'crash' if info.crash_count == 1 else 'crashes'}")
    return "; ".join(parts)


def _running_for(info: TaskInfo, now: datetime) -> timedelta | None:
    if info.status is not TaskStatus.RUNNING or info.started_at is None:
        return None
    return max(timedelta(0), now - info.started_at)


def _reached(info: TaskInfo, attempts: Sequence[Attempt]) -> dict[TaskStatus, Reached]:
    """How often each state was reached, as far as what is stored tells."""
    starts = info.attempt
    ran = sum((each.duration for each in attempts), timedelta(0))
    held = _held_back(attempts)
    # A retry moves `run_at`; until then it tells whether the task was sent for later.
    if not held and info.run_at is not None and info.run_at > info.submitted_at:
        held = 1
    claims = starts + (1 if info.status is TaskStatus.CLAIMED else 0)
    found: dict[TaskStatus, Reached] = {}
    if info.workflow_id is not None:
        found[TaskStatus.WAITING] = Reached(1, "its parents")
    if held:
        found[TaskStatus.SCHEDULED] = Reached(held, "until it was due")
    queued = max(claims, 1 if info.status is not TaskStatus.WAITING and not held else 0)
    if queued:
        found[TaskStatus.PENDING] = Reached(queued)
    if claims:
        found[TaskStatus.CLAIMED] = Reached(claims)
    if starts:
        text = f"{duration(ran)} in all" if attempts else ""
        found[TaskStatus.RUNNING] = Reached(starts, text)
    return found


def _held_back(attempts: Sequence[Attempt]) -> int:
    """How many starts were followed by a wait until a moment: retries, snoozes, and every crash
    but the first one, after which it is queued at once."""
    crashes = [each for each in attempts if each.outcome is AttemptOutcome.WORKER_FAILURE]
    return sum(
        each.outcome is AttemptOutcome.SNOOZED or (each.will_retry and each not in crashes[:1])
        for each in attempts
    )


def _now_text(info: TaskInfo, attempts: Sequence[Attempt], now: datetime) -> str:
    match info.status:
        case TaskStatus.RUNNING:
            ran = _running_for(info, now)
            return f"attempt {info.attempt}" + (f", {duration(ran)}" if ran is not None else "")
        case TaskStatus.SCHEDULED:
            due = info.next_retry_at or info.run_at
            return "" if due is None else f"due {due:%H:%M:%S}"
        case TaskStatus.PENDING:
            return f"since {info.enqueued_at:%H:%M:%S}"
        case TaskStatus.WAITING:
            return f"for {info.waits_for:,} more"
        case status if status.is_terminal and info.finished_at is not None:
            return f"{info.finished_at:%H:%M:%S}"
        case _:
            return ""


def _columns(
    info: TaskInfo, attempts: Sequence[Attempt], now: datetime, most: int
) -> list[AttemptView]:
    """The latest first; of many the last ones and the first one."""
    waited = _waited(info, attempts)
    views = [_ended(each, wait) for each, wait in zip(attempts, waited, strict=False)]
    if info.status is TaskStatus.RUNNING:
        views.append(_running(info, waited[-1], now))
    views.reverse()
    if len(views) > most:
        views = [*views[: most - 1], views[-1]]
    return views


def _waited(info: TaskInfo, attempts: Sequence[Attempt]) -> list[timedelta | None]:
    """How long each start had waited: since it could be claimed, later since the one before had
    ended. The last one may be of a start that is under way."""
    starts = [each.started_at for each in attempts]
    if info.status is TaskStatus.RUNNING and info.started_at is not None:
        starts.append(info.started_at)
    # A retry moves `enqueued_at`: of a step, which waited for others first, nothing else is known.
    sent = None if info.workflow_id is not None else info.submitted_at
    since = info.enqueued_at if len(starts) < 2 else sent
    return [
        None if before is None else max(timedelta(0), at - before)
        for before, at in zip(
            [since, *(each.finished_at for each in attempts)], starts, strict=False
        )
    ]


def _ended(made: Attempt, waited: timedelta | None) -> AttemptView:
    error = made.error
    said = error.message if error is not None else made.failed_reason
    head = (error.type_name if error is not None else None) or made.error_code
    word = made.outcome.value.lower().replace("_", " ")
    if made.outcome is AttemptOutcome.FAILED:
        word = "will retry" if made.will_retry else "for good"
    ended = ""
    if made.exit_signal is not None:
        ended = f"signal {made.exit_signal}"
    elif made.exit_code is not None:
        ended = f"exit code {made.exit_code}"
    return AttemptView(
        made.number,
        _HUES[made.outcome],
        word,
        made.started_at,
        waited,
        made.duration,
        _worker(made.worker_hostname, made.worker_pid),
        None if made.peak_memory_kb is None else made.peak_memory_kb / 1000,
        made.cpu_time,
        ended,
        "" if head is None and not said else f"{head or ''}: {said}" if said else head or "",
    )


def _running(info: TaskInfo, waited: timedelta | None, now: datetime) -> AttemptView:
    return AttemptView(
        info.attempt,
        "running",
        "in progress",
        info.started_at,
        waited,
        _running_for(info, now),
        _worker(info.worker_hostname, info.worker_pid),
        None,
        None,
        "",
        "",
    )


def _worker(host: str | None, pid: int | None) -> str:
    return " · ".join(str(part) for part in (host, pid) if part is not None)


def _error(info: TaskInfo, attempts: Sequence[Attempt]) -> ErrorView | None:
    """The last one: of the task, or of an attempt."""
    for made in reversed(attempts):
        if made.error is not None:
            groups = frame_groups(made.error.traceback or "")
            return ErrorView(made.error, made.number, made.finished_at, groups)
    if info.error is not None:
        groups = frame_groups(info.error.traceback or "")
        return ErrorView(info.error, None, info.finished_at, groups)
    return None


def _stored(context: Context, point: CheckpointInfo) -> ValueNode:
    if point.value is None and point.length > len("null"):
        return ValueNode(None, "more", f"{point.length:,} characters, not shown")
    return value_tree(context.payloads.value(point.value))


def _named(info: TaskInfo) -> object:
    return {"args": info.args, **info.kwargs} if info.args else info.kwargs


def _arguments(context: Context, info: TaskInfo) -> Sequence[tuple[str, ValueNode]]:
    return call_trees(context.payloads.value(info.args), context.payloads.value(info.kwargs))


def _result(context: Context, info: TaskInfo) -> ValueNode | None:
    if info.status is not TaskStatus.COMPLETED or not context.visitor.payloads:
        return None
    return value_tree(context.payloads.value(info.result))


def _tree(context: Context, value: object) -> ValueNode | None:
    """Something that a task attached; None where there is nothing, or nothing to be seen."""
    return None if value is None else value_tree(context.payloads.value(value))


ROUTES: Final = (
    WebRoute("/tasks/{id}", ("GET",), show_task, needs=Role.READ, name="task", kind="page"),
)
