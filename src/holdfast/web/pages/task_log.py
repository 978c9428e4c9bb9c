"""What a task printed: the end of it on its page, all of it as text, and new lines as they come.

Owns the cutting of pieces into lines and the levels that lines seem to have. A piece may end in the
middle of a character or of a line; the rest of a line is shown when it comes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from starlette.responses import PlainTextResponse, Response

from holdfast.client.info import Attempt, TaskInfo
from holdfast.client.task_questions import Printed
from holdfast.core.moment import from_us
from holdfast.core.status import TaskStatus
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.task_address import task_id_of
from holdfast.web.pages.template import render
from holdfast.web.route import WebRoute

__all__ = ["ROUTES", "LogLine", "LogView", "log_view"]

LEVELS: Final = ("all", "info", "warning", "error")
_RANKS: Final = {"info": 0, "warning": 1, "error": 2}
_LEVEL: Final = re.compile(
    r"\b(?:(?P<error>ERROR|CRITICAL|FATAL|Traceback)|(?P<warning>WARN(?:ING)?)|(?P<info>INFO|DEBUG))\b"
)
_SOON: Final = 60
"""Where in a line its level may stand."""
_MOST_LINES: Final = 500
_LONGEST_LINE: Final = 4_000
_MOST_LOOKS: Final = 20


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line."""

    at: str
    """`+29.871`: seconds since its attempt began; empty if that is not known."""
    level: str
    text: str
    cut: bool = False
    """Not printed by the task: a new attempt begins here."""


@dataclass(frozen=True, slots=True)
class LogView:
    """The end of a log."""

    lines: Sequence[LogLine]
    left_out: int
    size: int
    follow: str | None
    """Where new lines are to be had; None: there will be none."""


async def log_view(context: Context, info: TaskInfo, attempts: Sequence[Attempt]) -> LogView:
    """What a page shows: the last lines, of at least this level."""
    parts, after = await _read(context, info, None, (0, -1))
    lines = _lines(parts, _begun(info, attempts), {each.number: each for each in attempts})
    wanted = context.request.query_params.get("level", "all")
    if wanted in _RANKS:
        least = _RANKS[wanted]
        lines = [each for each in lines if each.cut or _RANKS.get(each.level, 0) >= least]
    shown = lines[-_MOST_LINES:]
    is_open = not info.status.is_terminal and wanted not in _RANKS
    return LogView(
        shown,
        len(lines) - len(shown),
        sum(len(part.data) for part in parts),
        _follow(context, info, after) if is_open else None,
    )


async def show_text(context: Context) -> Response:
    """All of it, as it was printed."""
    info = await context.control.tasks.ashow(task_id_of(context))
    parts, _ = await _read(context, info, None, (0, -1))
    text = b"".join(part.data for part in parts).decode(errors="replace")
    name = f"{info.id}.log"
    headers = {"content-disposition": f'inline; filename="{name}"'}
    return PlainTextResponse(text, headers=headers)


async def show_more(context: Context) -> Response:
    """The lines behind a place, and where the next ones will be."""
    info = await context.control.tasks.ashow(task_id_of(context))
    after = _place(context.request.query_params.get("after", ""))
    parts, rest = await _read(context, info, None, after)
    begun = {info.attempt: info.started_at} if info.started_at is not None else {}
    return render(
        context,
        "log_lines.html",
        now=info.updated_at,
        here="tasks",
        title="Log",
        lines=_lines(parts, begun, {}, since=after[0]),
        next=None if info.status.is_terminal and not parts else _follow(context, info, rest),
    )


async def _read(
    context: Context, info: TaskInfo, attempt: int | None, after: tuple[int, int]
) -> tuple[list[Printed], tuple[int, int]]:
    found: list[Printed] = []
    for _ in range(_MOST_LOOKS):
        some = await context.control.tasks.alog_parts(info.id, attempt=attempt, after=after)
        if not some:
            break
        found += some
        after = some[-1].attempt, some[-1].part
    return found, after


def _begun(info: TaskInfo, attempts: Sequence[Attempt]) -> dict[int, datetime]:
    begun = {each.number: each.started_at for each in attempts}
    if info.status is TaskStatus.RUNNING and info.started_at is not None:
        begun[info.attempt] = info.started_at
    return begun


def _lines(
    parts: Sequence[Printed],
    begun: dict[int, datetime],
    ended: dict[int, Attempt],
    *,
    since: int = 0,
) -> list[LogLine]:
    found: list[LogLine] = []
    attempt, rest, at = since, b"", ""
    for part in parts:
        if part.attempt != attempt:
            found += _line(rest, at)
            attempt, rest = part.attempt, b""
            found.append(LogLine("", "", _heading(attempt, ended.get(attempt)), cut=True))
        at = _since(part, begun.get(part.attempt))
        *whole, rest = (rest + part.data).split(b"\n")
        for line in whole:
            found.append(_made(line, at))
    found += _line(rest, at)
    return found


def _line(rest: bytes, at: str) -> list[LogLine]:
    return [_made(rest, at)] if rest else []


def _made(line: bytes, at: str) -> LogLine:
    text = line[: 4 * _LONGEST_LINE].decode(errors="replace").rstrip("\r")
    match = _LEVEL.search(text[:_SOON])
    level = "" if match is None else match.lastgroup or ""
    if match is not None and match.start() == 0 and match[0] != "Traceback":
        # It stands in a column of its own.
        text = text[match.end() :].lstrip(" :-") or text
    if len(text) > _LONGEST_LINE:
        text = f"{text[:_LONGEST_LINE]}…"
    return LogLine(at, level, text)


def _since(part: Printed, begun: datetime | None) -> str:
    if begun is None:
        return ""
    passed = max(timedelta(0), from_us(part.written_at) - begun).total_seconds()
    return f"+{passed:.3f}"


def _heading(number: int, made: Attempt | None) -> str:
    parts = [f"Attempt {number}"]
    if made is not None:
        parts += [made.worker_hostname or "", made.outcome.value.lower().replace("_", " ")]
    return " · ".join(part for part in parts if part)


def _follow(context: Context, info: TaskInfo, after: tuple[int, int]) -> str:
    return context.url(f"/tasks/{info.id}/log-lines", after=f"{after[0]}.{after[1]}")


def _place(text: str) -> tuple[int, int]:
    attempt, _, part = text.partition(".")
    try:
        place = int(attempt[:9]), int(part[:9])
    except ValueError:
        return 0, -1
    return max(0, place[0]), max(-1, place[1])


ROUTES: Final = (
    WebRoute(
        "/tasks/{id}/log", ("GET",), show_text, needs=Role.READ, name="task-log", kind="page",
        payloads=True,
    ),
    WebRoute(
        "/tasks/{id}/log-lines", ("GET",), show_more, needs=Role.READ, name="task-log-lines",
        kind="page", payloads=True,
    ),
)  # fmt: skip
