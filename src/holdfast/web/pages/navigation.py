"""The navigation beside every page, with what needs to be known wherever one is.

Its numbers are shared by all pages that are open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.web.pages.fleet import read_depths, read_workers
from holdfast.web.pages.lateness import is_late
from holdfast.web.pages.shared_reads import shared
from holdfast.web.pages.words import capped, compact

if TYPE_CHECKING:
    from holdfast.web.context import Context

__all__ = ["NavigationItem", "navigation"]


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
    return await shared(context.app, "navigation", lambda: _items(context))


async def _items(context: Context) -> Sequence[NavigationItem]:
    depths = await read_depths(context)
    workers = await read_workers(context)
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
