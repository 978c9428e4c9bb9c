"""`/tasks/{id}/log` and `/output`: what a task printed and gave out, whole and while it runs."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from datetime import datetime
from time import monotonic
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response, StreamingResponse

from holdfast.client.task_questions import Printed
from holdfast.core.moment import from_us
from holdfast.web.api.operation import operation
from holdfast.web.api.tasks import LOOK, Wait
from holdfast.web.context import Context

__all__ = ["ROUTES", "follow_log", "whole_log"]

_START: Final = (0, -1)
_MOST: Final = 2**31 - 1
Position = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$",
        description="Behind this place: the `next` of the last answer.",
    ),
]
AttemptNumber = Annotated[int, Meta(ge=1, le=_MOST, description="Of this attempt only.")]


class LogQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which part, and whether to wait for it."""

    attempt: AttemptNumber | None = None
    after: Position | None = None
    wait: Wait = 0.0


class LogPartDocument(msgspec.Struct, kw_only=True):
    """A piece of what an attempt printed; a line may go on in the next piece."""

    attempt: int
    part: int
    at: datetime
    text: str


class LogDocument(msgspec.Struct, kw_only=True):
    """Some pieces of what a task printed."""

    parts: list[LogPartDocument]
    next: str | None
    """Give this as `after` to go on; null: nothing was printed yet."""
    ended: bool
    """The task has ended, and this is all."""


class TextQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which attempt; none: all."""

    attempt: AttemptNumber | None = None


class OutputQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which part, and whether to wait for it."""

    after: Annotated[int, Meta(ge=0, le=_MOST, description="Behind so many characters.")] = 0
    wait: Wait = 0.0


class OutputDocument(msgspec.Struct, kw_only=True):
    """What a generator task has yielded."""

    text: str
    next: int
    """Give this as `after` to go on."""
    ended: bool
    """The task has ended, and this is all."""


async def follow_log(
    context: Context,
    id: UUID,
    *,
    attempt: int | None = None,
    after: tuple[int, int] = _START,
    wait: float = 0.0,
) -> tuple[list[Printed], bool]:
    """The next pieces of a log, waited for; and whether the task has ended with them."""
    tasks, end = context.control.tasks, monotonic() + wait
    while True:
        # Asked first: what was printed before the end is there when the end is.
        info = await tasks.ashow(id)
        found = await tasks.alog_parts(id, attempt=attempt, after=after)
        if found or info.status.is_terminal or monotonic() >= end:
            return found, info.status.is_terminal
        await asyncio.sleep(max(0.0, min(LOOK, end - monotonic())))


async def whole_log(context: Context, id: UUID, attempt: int | None) -> AsyncIterator[str]:
    """Everything that a task printed, piece by piece."""
    await context.control.tasks.astatuses(id)
    reader, after, last = _decoder(), _START, 0
    while found := await context.control.tasks.alog_parts(id, attempt=attempt, after=after):
        for part in found:
            if part.attempt != last:
                reader, last = _decoder(), part.attempt
            yield reader.decode(part.data)
        after = found[-1].attempt, found[-1].part


@operation("GET", "/tasks/{id}/log", tag="tasks", payloads=True, refusals=[404])
async def read_log(context: Context, id: UUID, query: LogQuery) -> LogDocument:
    """Read what a task printed, from a place on; with `wait`, as soon as there is more."""
    after = _START
    if query.after is not None:
        attempt, _, part = query.after.partition(".")
        after = int(attempt), int(part)
    found, ended = await follow_log(
        context, id, attempt=query.attempt, after=after, wait=query.wait
    )
    return LogDocument(
        parts=_documents(found),
        next=f"{found[-1].attempt}.{found[-1].part}" if found else query.after,
        ended=ended and not found,
    )


@operation("GET", "/tasks/{id}/log/text", tag="tasks", payloads=True, refusals=[404])
async def read_whole_log(context: Context, id: UUID, query: TextQuery) -> Response:
    """Read everything a task has printed, as text."""
    await context.control.tasks.ashow(id)
    pieces = whole_log(context, id, query.attempt)
    return StreamingResponse(pieces, media_type="text/plain; charset=utf-8")


@operation("GET", "/tasks/{id}/output", tag="tasks", payloads=True, refusals=[404])
async def read_output(context: Context, id: UUID, query: OutputQuery) -> OutputDocument:
    """Read what a generator task has yielded; with `wait`, as soon as there is more."""
    end = monotonic() + query.wait
    while True:
        info = await context.control.tasks.ashow(id)
        text = (info.output or "")[query.after :]
        if text or info.status.is_terminal or monotonic() >= end:
            break
        await asyncio.sleep(max(0.0, min(LOOK, end - monotonic())))
    return OutputDocument(text=text, next=query.after + len(text), ended=info.status.is_terminal)


@operation("GET", "/tasks/{id}/output/text", tag="tasks", payloads=True, refusals=[404])
async def read_whole_output(context: Context, id: UUID) -> Response:
    """Read everything a generator task has yielded, as text."""
    output = (await context.control.tasks.ashow(id)).output or ""
    text = output.encode(errors="replace")
    return Response(text, media_type="text/plain; charset=utf-8")


def _documents(found: list[Printed]) -> list[LogPartDocument]:
    reader, last = _decoder(), 0
    parts = []
    for part in found:
        if part.attempt != last:
            reader, last = _decoder(), part.attempt
        text = reader.decode(part.data)
        at = from_us(part.written_at)
        parts.append(LogPartDocument(attempt=part.attempt, part=part.part, at=at, text=text))
    return parts


def _decoder() -> codecs.IncrementalDecoder:
    # A piece may end within a character.
    return codecs.getincrementaldecoder("utf-8")("replace")


ROUTES: Final = (read_log, read_whole_log, read_output, read_whole_output)
