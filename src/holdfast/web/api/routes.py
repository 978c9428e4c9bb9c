"""Every route of the HTTP API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.web.api import (
    audit,
    dead_letters,
    evidence,
    health,
    metrics,
    queues,
    reference,
    schedules,
    sending,
    stats,
    task_actions,
    task_routes,
    tasks,
    workers,
    workflow_starts,
    workflows,
)
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

ROUTES: Final[Sequence[WebRoute]] = reference.with_reference(
    (
        *sending.ROUTES,
        *tasks.ROUTES,
        *evidence.ROUTES,
        *task_actions.ROUTES,
        *dead_letters.ROUTES,
        *queues.ROUTES,
        *workers.ROUTES,
        *stats.ROUTES,
        *workflows.ROUTES,
        *workflow_starts.ROUTES,
        *schedules.ROUTES,
        *task_routes.ROUTES,
        *audit.ROUTES,
        *health.ROUTES,
        *metrics.ROUTES,
    )
)
