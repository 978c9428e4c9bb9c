"""What is done to one task from its page: each a POST that leads back to the page.

The lifecycle decides whether it can be done: a verb that it does not allow is refused with what is
allowed, by the same error as everywhere.
"""

from __future__ import annotations

from functools import partial
from typing import Final
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from holdfast.client.control import TaskControl
from holdfast.core.errors import ConfigError, IllegalTransition, TaskNotFound, WaitTimeout
from holdfast.core.lifecycle import Verb
from holdfast.core.status import TaskStatus
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.task_address import short_id, task_id_of
from holdfast.web.pages.task_filter import typed_when
from holdfast.web.pages.template import render
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]


async def cancel(context: Context) -> Response:
    """End it, or ask its worker to."""
    id = task_id_of(context)
    async with context.acting():
        status = (await context.control.tasks.acancel(id))[id]
    if status is None:
        raise TaskNotFound(id.bytes)
    if status not in (TaskStatus.CANCELLED, TaskStatus.RUNNING):
        raise IllegalTransition(id.bytes, Verb.CANCEL, status)
    return _back(context, id, "cancel")


async def resubmit(context: Context) -> Response:
    """Let it run again."""
    id = task_id_of(context)
    fields = await context.form()
    async with context.acting():
        done = await context.control.tasks.aresubmit(
            id, fresh="fresh" in fields, keep_retries="keep_retries" in fields
        )
    if not done[id]:
        raise await _refused(context.control.tasks, id, Verb.RESUBMIT)
    return _back(context, id, "resubmit")


async def delete(context: Context) -> Response:
    """Remove it, with all that belongs to it."""
    id = task_id_of(context)
    async with context.acting():
        done = await context.control.tasks.adelete(id)
    if not done[id]:
        raise await _refused(context.control.tasks, id, Verb.DELETE)
    return RedirectResponse(context.url("/tasks"), status_code=303)


async def reschedule(context: Context) -> Response:
    """Change when, where and how urgently it runs."""
    id = task_id_of(context)
    fields = await context.form()
    given = {name: (fields.get(name) or [""])[-1].strip() for name in ("when", "queue", "priority")}
    info = await context.control.tasks.ashow(id)
    queue = given["queue"] if given["queue"] not in ("", info.queue) else None
    priority = _priority(given["priority"])
    when = typed_when(given["when"])
    if when is None and queue is None and priority in (None, info.priority):
        return _back(context, id, "")
    async with context.acting():
        done = await context.control.tasks.areschedule(
            id, when=when, queue=queue, priority=priority
        )
    if not done[id]:
        raise await _refused(context.control.tasks, id, Verb.RESCHEDULE)
    return _back(context, id, "reschedule")


async def show_stack(context: Context) -> Response:
    """Where its code is now; its worker is asked, which takes a moment."""
    id = task_id_of(context)
    info = await context.control.tasks.ashow(id)
    stack, problem = "", ""
    try:
        stack = await context.control.tasks.astack(id)
    except (WaitTimeout, IllegalTransition) as error:
        problem = str(error)
    return render(
        context,
        "stack.html",
        now=await context.control.anow(),
        here="tasks",
        title=f"Stack of {info.name}",
        navigation=await navigation(context),
        info=info,
        short=short_id(id),
        stack=stack,
        problem=problem,
    )


def _back(context: Context, id: UUID, done: str) -> Response:
    return RedirectResponse(context.url(f"/tasks/{id}", done=done or None), status_code=303)


async def _refused(tasks: TaskControl, id: UUID, verb: Verb) -> Exception:
    status = (await tasks.astatuses(id)).get(id)
    if status is None:
        return TaskNotFound(id.bytes)
    why = await tasks.awhy_not(verb, id)
    return IllegalTransition(id.bytes, verb, status, why=why[id])


def _priority(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 3):
        raise ConfigError(f"priority={text!r:.50} is not a number from 1 to 100", option="priority")
    return int(text)


_page = partial(WebRoute, kind="page")

ROUTES: Final = (
    _page("/tasks/{id}/cancel", ("POST",), cancel, needs=Role.OPERATE, name="task-cancel"),
    _page("/tasks/{id}/resubmit", ("POST",), resubmit, needs=Role.OPERATE, name="task-resubmit"),
    _page(
        "/tasks/{id}/reschedule", ("POST",), reschedule, needs=Role.OPERATE, name="task-reschedule"
    ),
    _page("/tasks/{id}/delete", ("POST",), delete, needs=Role.ADMIN, name="task-delete"),
    _page(
        "/tasks/{id}/stack",
        ("GET",),
        show_stack,
        needs=Role.OPERATE,
        name="task-stack",
        payloads=True,
    ),
)
