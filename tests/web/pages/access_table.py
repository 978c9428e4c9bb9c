"""Who may ask for which page: the part of `tests/web/test_access_table.py` that is of pages."""

from __future__ import annotations

from typing import Final

PAGES: Final[dict[str, tuple[str | None, bool]]] = {
    # route: (the least role, whether it shows payloads)
    "overview": ("read", False),
    "tasks": ("read", False),
    "bulk-resubmit": ("operate", False),
    "bulk-resubmit-do": ("operate", False),
    "bulk-cancel": ("operate", False),
    "bulk-cancel-do": ("operate", False),
    "bulk-delete": ("admin", False),
    "bulk-delete-do": ("admin", False),
    "task": ("read", False),
    "task-log": ("read", True),
    "task-log-lines": ("read", True),
    "task-cancel": ("operate", False),
    "task-resubmit": ("operate", False),
    "task-reschedule": ("operate", False),
    "task-delete": ("admin", False),
    "task-stack": ("operate", True),
    "send": ("operate", True),
    "send-do": ("operate", True),
    "queues": ("read", False),
    "queue": ("read", False),
    "queue-pause": ("operate", False),
    "queue-resume": ("operate", False),
    "queue-limit": ("admin", False),
    "workers": ("read", False),
    "worker": ("read", False),
    "worker-stop": ("admin", False),
    "worker-drain": ("admin", False),
    "dead-letters": ("read", False),
    "audit": ("admin", False),
    "theme": (None, False),
    "static": (None, False),
}
