"""Every page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.web.pages import (
    audit_page,
    bulk,
    dead_letter_page,
    overview,
    queue_pages,
    schedule_pages,
    send_page,
    static_files,
    task_actions,
    task_list,
    task_log,
    task_page,
    theme,
    worker_pages,
    workflow_pages,
)
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

ROUTES: Final[Sequence[WebRoute]] = (
    *overview.ROUTES,
    *task_list.ROUTES,
    *bulk.ROUTES,
    *task_page.ROUTES,
    *task_log.ROUTES,
    *task_actions.ROUTES,
    *send_page.ROUTES,
    *workflow_pages.ROUTES,
    *schedule_pages.ROUTES,
    *queue_pages.ROUTES,
    *worker_pages.ROUTES,
    *dead_letter_page.ROUTES,
    *audit_page.ROUTES,
    *theme.ROUTES,
    *static_files.ROUTES,
)
"""In the order in which they are tried: fixed paths before those with parameters."""
