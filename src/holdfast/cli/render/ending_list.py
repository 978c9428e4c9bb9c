"""The ends of tasks as they come, a line each.

Owns the lines, the pace, and going on while the database is away.
"""

from __future__ import annotations

from time import sleep
from typing import Final

from holdfast.cli.render import json_document, times
from holdfast.cli.render.table import Cell, Value
from holdfast.cli.render.task_list import detail_of, id_cell, status_cell
from holdfast.cli.session import CommandSession
from holdfast.client.ending_tail import EndingTail
from holdfast.client.info import TaskInfo
from holdfast.client.redacted import redacted_task
from holdfast.core.errors import StoreUnavailable
from holdfast.core.pause import growing

_LOOK_EVERY: Final = 1.0
_LONGEST_PAUSE: Final = 15.0


def follow_endings(session: CommandSession, tail: EndingTail, *, limit: int | None) -> None:
    """Print the ends of tasks until there were so many, or for ever."""
    told, failures, begun = 0, 0, False
    while limit is None or told < limit:
        try:
            found = tail.look()
        except StoreUnavailable as error:
            if not begun:
                # It was never there: that is no outage.
                raise
            failures += 1
            if failures == 1:
                session.screen.remark(f"{error}; trying again")
            sleep(growing(_LOOK_EVERY, failures, _LONGEST_PAUSE))
            continue
        if failures:
            session.screen.remark("the database is back")
        failures, begun = 0, True
        if limit is not None:
            found = found[: limit - told]
        for info in found:
            _show(session, redacted_task(info, session.hides))
        told += len(found)
        if limit is None or told < limit:
            sleep(_LOOK_EVERY)


def _show(session: CommandSession, info: TaskInfo) -> None:
    if session.screen.as_json:
        session.screen.document_line(json_document.as_dict(info))
    else:
        session.screen.row(_cells(session, info))


def _cells(session: CommandSession, info: TaskInfo) -> list[Value]:
    at = info.finished_at or info.updated_at
    ran = None if info.started_at is None else at - info.started_at
    status = status_cell(info.status)
    return [
        Cell(f"{at:%H:%M:%S}", "dim", piped=times.stamp(at)),
        Cell(f"{status.text:9}", status.style, piped=info.status.value),
        id_cell(info.id),
        Cell(info.name),
        Cell(info.queue, "dim"),
        Cell("" if ran is None else times.length(ran, 1), piped=_seconds(info)),
        detail_of(info, session.control.now()) or Cell("", piped=""),
    ]


def _seconds(info: TaskInfo) -> str:
    if info.started_at is None or info.finished_at is None:
        return ""
    return f"{(info.finished_at - info.started_at).total_seconds():.3f}s"
