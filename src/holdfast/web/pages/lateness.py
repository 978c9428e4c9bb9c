"""When a schedule is late."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from holdfast.client.schedule_control import ScheduleInfo

__all__ = ["LATE", "is_late"]

LATE: Final = timedelta(seconds=15)
"""So much after its time a tick is late: workers look every few seconds."""


def is_late(info: ScheduleInfo, now: datetime) -> bool:
    """Whether its next tick should have been fired."""
    due = info.next_run_at
    return info.state == "active" and not info.waiting and due is not None and now - due > LATE
