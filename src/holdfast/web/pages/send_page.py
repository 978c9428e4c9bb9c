"""Send a task from the browser: a new one, or one like another with changed arguments.

What cannot be sent is shown again as it was typed, with what is wrong beside its field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from holdfast.client.info import TaskInfo
from holdfast.core.errors import ConfigError, HoldfastError
from holdfast.core.options import checks
from holdfast.core.redaction import HIDDEN
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.fleet import read_workers
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.task_filter import typed_when
from holdfast.web.pages.template import render
from holdfast.web.pages.value_tree import holds, value_text
from holdfast.web.route import WebRoute

__all__ = ["ROUTES", "SendForm"]

_LONGEST: Final = 500_000


@dataclass(slots=True)
class SendForm:
    """What was typed."""

    name: str = ""
    version: str = "1"
    args: str = "[]"
    kwargs: str = "{}"
    queue: str = ""
    priority: str = ""
    delay: str = ""
    again: str = ""
    has_secrets: bool = False
    """Some values were left out that must be typed again."""
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, info: TaskInfo, args: Any, kwargs: Any) -> SendForm:
        """A call like that of a task."""
        return cls(
            name=info.name,
            version=str(info.version),
            args=value_text(args),
            kwargs=value_text(kwargs),
            queue=info.queue,
            priority=str(info.priority),
            again=str(info.id),
        )

    @classmethod
    def typed(cls, given: Mapping[str, list[str]]) -> SendForm:
        """What came with a form."""
        form = cls()
        for each in fields(cls):
            if each.name in _TYPED and each.name in given:
                setattr(form, each.name, given[each.name][-1].strip()[:_LONGEST])
        return form


async def show_form(context: Context) -> Response:
    """The form, empty or filled."""
    again = context.request.query_params.get("again", "")
    form = SendForm()
    if again:
        info = await context.control.tasks.ashow(again)
        args, kwargs = context.payloads.value(info.args), context.payloads.value(info.kwargs)
        form = SendForm.of(info, args, kwargs)
        if (args, kwargs) != (info.args, info.kwargs):
            form.has_secrets = True
    return await _form(context, form)


async def send(context: Context) -> Response:
    """Send it, and show the new task."""
    form = SendForm.typed(await context.form())
    args = _json(form, "args", list)
    kwargs = _json(form, "kwargs", dict)
    options: dict[str, Any] = {}
    version = _number(form, "version", 1)
    if form.queue:
        options["queue"] = form.queue
    if form.priority:
        options["priority"] = _number(form, "priority", 50)
    if form.delay:
        options.update(_due(form))
    try:
        checks.task_name(form.name)
    except ConfigError as error:
        form.problems["name"] = str(error)
    for given, value in (("args", args), ("kwargs", kwargs)):
        if holds(value, HIDDEN):
            form.problems[given] = f"{HIDDEN} stands for a secret value: type it again"
    if form.problems:
        return await _form(context, form, 422)
    try:
        async with context.acting():
            sending = context.app.options(version=version, **options)
            handle = await sending.asend(form.name, *args, **kwargs)
            if handle.created:
                detail = {"name": form.name}
                await context.control.audit.arecord("send", f"task {handle.id}", detail=detail)
    except HoldfastError as error:
        name = getattr(error, "option", None)
        form.problems[name if name in _TYPED else "kwargs"] = str(error)
        return await _form(context, form, 422)
    done = "send" if handle.created else "same"
    return RedirectResponse(context.url(f"/tasks/{handle.id}", done=done), status_code=303)


async def _form(context: Context, form: SendForm, status: int = 200) -> Response:
    workers = await read_workers(context)
    known = {name.rpartition("@")[0] for worker in workers for name in worker.tasks}
    return render(
        context,
        "send.html",
        now=await context.control.anow(),
        here="tasks",
        title="Send a task",
        status=status,
        navigation=await navigation(context),
        form=form,
        names=sorted(known | {task.name for task in context.app.tasks})[:1000],
        again=_uuid(form.again),
    )


_TYPED: Final = {each.name for each in fields(SendForm) if each.type == "str"}


def _json(form: SendForm, name: str, kind: type) -> Any:
    text = getattr(form, name) or ("[]" if kind is list else "{}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        form.problems[name] = f"this is not JSON: {error}"
        return kind()
    if not isinstance(value, kind):
        word = "a list, such as [1, 2]" if kind is list else 'an object, such as {"width": 640}'
        form.problems[name] = f"this must be {word}"
        return kind()
    return value


def _due(form: SendForm) -> dict[str, Any]:
    try:
        when = typed_when(form.delay)
    except ConfigError as error:
        form.problems["delay"] = str(error)
        return {}
    if when is None:
        return {}
    return {"run_at": when} if isinstance(when, datetime) else {"delay": when}


def _number(form: SendForm, name: str, otherwise: int) -> int:
    text: str = getattr(form, name)
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    form.problems[name] = "this must be a whole number"
    return otherwise


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


ROUTES: Final = (
    WebRoute(
        "/send", ("GET",), show_form, needs=Role.OPERATE, name="send", kind="page", payloads=True
    ),
    WebRoute(
        "/send", ("POST",), send, needs=Role.OPERATE, name="send-do", kind="page", payloads=True
    ),
)
