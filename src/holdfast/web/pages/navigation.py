"""The navigation beside every page, with what needs to be known wherever one is.

Its numbers are asked for at most once every two seconds and app, however many pages are open.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holdfast.web.pages.lateness import is_late
from holdfast.web.pages.words import capped, compact

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.web.context import Context

__all__ = ["NavigationItem", "navigation"]

_FRESH_S: Final = 2.0
_cached: WeakKeyDictionary[Holdfast, tuple[float, Sequence[NavigationItem]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """One link."""

    key: str
    title: str
    path: str
    icon: str
    badge: str = ""
    bad: bool = False
    gap: bool = False


async def navigation(context: Context) -> Sequence[NavigationItem]:
    """The links, with their numbers."""
    kept = _cached.get(context.app)
    if kept is not None and time.monotonic() - kept[0] < _FRESH_S:
        return kept[1]
    items = await _items(context)
    _cached[context.app] = (time.monotonic(), items)
    return items


async def _items(context: Context) -> Sequence[NavigationItem]:
    depths = await context.control.stats.adepths()
    workers = await context.control.workers.alist()
    now = await context.control.anow()
    schedules = await context.control.schedules.alist()
    late = sum(is_late(schedule, now) for schedule in schedules)
    gone = sum(worker.state == "silent" for worker in workers)
    dead = sum(depth.dead for depth in depths)
    queues = compact(len(depths)) if depths else ""
    there = len(workers) - gone
    return (
        NavigationItem("overview", "Overview", "/", "overview"),
        NavigationItem("tasks", "Tasks", "/tasks", "tasks"),
        NavigationItem("workflows", "Workflows", "/workflows", "workflows"),
        NavigationItem(
            "schedules",
            "Schedules",
            "/schedules",
            "schedules",
            f"{late} late" if late else "",
            bool(late),
        ),
        NavigationItem(
            "queues",
            "Queues",
            "/queues",
            "queues",
            queues,
            gap=True,
        ),
        NavigationItem(
            "workers",
            "Workers",
            "/workers",
            "workers",
            f"{gone} gone" if gone else str(there) if there else "",
            bool(gone),
        ),
        NavigationItem(
            "dead", "Dead letters", "/dead-letters", "dead", capped(dead, 100_000) if dead else ""
        ),
        NavigationItem("audit", "Audit", "/audit", "audit"),
    )
