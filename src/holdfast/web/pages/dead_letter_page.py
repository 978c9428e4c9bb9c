"""Dead letters: what failed for good, together by cause, until somebody decides.

The newest ten thousand are counted by the store, which reads them by their index; what a cause says
is taken from the newest hundred. So the page costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from starlette.responses import Response

from holdfast.client.dead_letter_control import DeadCount, DeadOverview
from holdfast.client.info import TaskInfo
from holdfast.core.error_code import ErrorCode
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.drawing.chart import Line, spark
from holdfast.web.pages.fleet import read_depths
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.shared_reads import shared
from holdfast.web.pages.task_list import rows_of
from holdfast.web.pages.template import render
from holdfast.web.route import WebRoute

__all__ = ["ROUTES", "Cause", "exception_of", "read_causes"]

_LOOKED_AT: Final = 100
_SHOWN: Final = 50
_SAMPLES: Final = 20
_STEPS: Final = 24
_HOUR: Final = timedelta(hours=1)
_Way: TypeAlias = "tuple[str, str, str]"
"""Name, error code, exception."""


@dataclass(slots=True)
class Cause:
    """One way in which one task fails."""

    name: str
    code: str
    exception: str
    """The class of an exception that no code stands for, or nothing."""
    number: int
    first_at: datetime
    last_at: datetime
    hours: list[DeadCount] = field(default_factory=list)
    error: str = ""
    """What the newest of them says."""
    last: TaskInfo | None = None
    """The newest of them, if it is among those that were read."""
    spark: Sequence[Line] = ()
    span: str = ""
    """The time that is drawn."""

    @property
    def filter(self) -> Mapping[str, str | None]:
        """What a list of its tasks asks for."""
        by = {"exception": self.exception} if self.exception else {"error": self.code or None}
        return {"name": self.name, **by}


async def read_causes(context: Context) -> DeadOverview:
    """Of what the newest died; shared by all pages."""
    return await shared(
        context.app, "dead letters", context.control.dead_letters.aoverview, times=2.5
    )


async def show_dead_letters(context: Context) -> Response:
    """The page."""
    control = context.control
    now = await control.anow()
    page = await control.dead_letters.alist(limit=_LOOKED_AT)
    overview = await read_causes(context)
    depths = await read_depths(context)
    causes = _causes(overview, now)
    _say(context, causes, page.tasks)
    counted = sum(cause.number for cause in causes)
    return render(
        context,
        "dead_letters.html",
        now=now,
        here="dead",
        title="Dead letters",
        navigation=await navigation(context),
        total=max(sum(depth.dead for depth in depths), counted),
        counted=counted,
        more=not overview.is_all,
        causes=causes[:_SHOWN],
        others=max(0, len(causes) - _SHOWN),
        samples=await rows_of(context, page.tasks[:_SAMPLES], now),
        unreadable=page.unreadable,
    )


def _causes(overview: DeadOverview, now: datetime) -> list[Cause]:
    """Whatever their queues and versions are."""
    found: dict[_Way, Cause] = {}
    for each in overview.causes:
        code, exception = each.error_code or "", each.exception or ""
        cause = found.setdefault(
            (each.name, code, exception),
            Cause(
                each.name,
                code,
                exception,
                0,
                each.first_at,
                each.last_at,
                error=exception or code,
            ),
        )
        cause.number += each.count
        cause.first_at = min(cause.first_at, each.first_at)
        cause.last_at = max(cause.last_at, each.last_at)
        cause.hours += overview.by_hour[each]
    for cause in found.values():
        _draw(cause, now)
    return sorted(found.values(), key=lambda cause: (-cause.number, cause.name))


def _draw(cause: Cause, now: datetime) -> None:
    """By the hour of the last day, or in as many parts of the time since the first."""
    hours = max(_STEPS, int((now - cause.first_at) / _HOUR) + 1)
    cause.span = "24 h" if hours <= _STEPS else f"{hours / 24:.0f} d"
    start = now - hours * _HOUR
    values = [0.0] * _STEPS
    for each in cause.hours:
        place = int((each.at - start) / (hours * _HOUR) * _STEPS)
        values[min(_STEPS - 1, max(0, place))] += each.count
    cause.spark = spark(values)


def _say(context: Context, causes: Sequence[Cause], tasks: Sequence[TaskInfo]) -> None:
    """What each cause says, and its newest task, as far as they are among these."""
    newest: dict[_Way, TaskInfo] = {}
    for info in tasks:
        newest.setdefault((info.name, info.error_code or "", exception_of(info)), info)
    for cause in causes:
        cause.last = newest.get((cause.name, cause.code, cause.exception))
        if cause.last is not None:
            cause.error = context.payloads.said(_said(cause.last))


def exception_of(info: TaskInfo) -> str:
    """The class of the exception it failed with, where no code stands for it."""
    if info.error_code != ErrorCode.UNHANDLED_EXCEPTION or info.error is None:
        return ""
    return info.error.type_name or ""


def _said(info: TaskInfo) -> str:
    error = info.error
    head = info.error_code or ""
    if error is not None:
        head = error.type_name or str(error.error_code)
    message = error.message if error is not None else info.failed_reason or ""
    return f"{head}: {message}" if message else head


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
