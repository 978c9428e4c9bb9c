"""Dead letters: what failed for good, together by cause, until somebody decides.

The newest five hundred are put together here; how many there are in all is counted by the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from starlette.responses import Response

from holdfast.client.info import TaskInfo
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.drawing.chart import Line, spark
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.task_list import rows_of
from holdfast.web.pages.template import render
from holdfast.web.route import WebRoute

__all__ = ["ROUTES", "Cause"]

_LOOKED_AT: Final = 500
_SHOWN: Final = 50
_SAMPLES: Final = 20
_STEPS: Final = 30


@dataclass(slots=True)
class Cause:
    """One way in which one task fails."""

    name: str
    code: str
    error: str
    tasks: list[TaskInfo] = field(default_factory=list)
    spark: Sequence[Line] = ()

    @property
    def last(self) -> TaskInfo:
        """The newest of them."""
        return self.tasks[0]

    @property
    def first_at(self) -> datetime | None:
        """When the oldest of them ended."""
        return self.tasks[-1].finished_at


async def show_dead_letters(context: Context) -> Response:
    """The page."""
    control = context.control
    now = await control.anow()
    page = await control.dead_letters.alist(limit=_LOOKED_AT)
    depths = await control.stats.adepths()
    total = max(sum(depth.dead for depth in depths), len(page.tasks))
    causes = _causes(context, page.tasks, now)
    return render(
        context,
        "dead_letters.html",
        now=now,
        here="dead",
        title="Dead letters",
        navigation=await navigation(context),
        total=total,
        looked_at=len(page.tasks),
        more=page.next is not None,
        causes=causes[:_SHOWN],
        others=max(0, len(causes) - _SHOWN),
        samples=await rows_of(context, page.tasks[:_SAMPLES], now),
        unreadable=page.unreadable,
    )


def _causes(context: Context, tasks: Sequence[TaskInfo], now: datetime) -> list[Cause]:
    found: dict[tuple[str, str], Cause] = {}
    for info in tasks:
        error = info.error
        head = info.error_code or ""
        if error is not None:
            head = error.type_name or str(error.error_code)
        cause = found.setdefault(
            (info.name, head),
            Cause(info.name, info.error_code or "", context.payloads.said(_said(info, head))),
        )
        cause.tasks.append(info)
    for cause in found.values():
        cause.spark = spark(_over_time(cause.tasks, now))
    return sorted(found.values(), key=lambda cause: -len(cause.tasks))


def _said(info: TaskInfo, head: str) -> str:
    message = info.error.message if info.error is not None else info.failed_reason or ""
    return f"{head}: {message}" if message else head


def _over_time(tasks: Sequence[TaskInfo], now: datetime) -> list[float]:
    """How many ended in each thirtieth of the time since the first."""
    ends = [info.finished_at for info in tasks if info.finished_at is not None]
    values = [0.0] * _STEPS
    if not ends:
        return values
    span = max(now - min(ends), timedelta(minutes=30))
    for at in ends:
        place = int((1 - (now - at) / span) * (_STEPS - 1))
        values[min(_STEPS - 1, max(0, place))] += 1
    return values


ROUTES: Final = (
    WebRoute(
        "/dead-letters",
        ("GET",),
        show_dead_letters,
        needs=Role.READ,
        name="dead-letters",
        kind="page",
    ),
)
