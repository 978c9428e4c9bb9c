"""Event loops that one coroutine keeps to itself.

Owns what that means for the other tasks of the loop: the time does not count against their own
limits, and the task that blocks is named in the log. The child notes in the shared page when its
loop last came round, and whose code it is in, as far as it can tell. The page is untrusted, so at
most `MOST_EXCUSED` seconds are deducted, and fewer if it is not known which task blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Container
from time import monotonic_ns
from typing import Final

from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildHandle
from holdfast.runtime.supervisor.task_log import named

log = logging.getLogger("holdfast.worker")

LAG: Final = 0.25
"""Seconds without a turn after which a loop counts as blocked."""
LOGGED_AFTER: Final = 1.0
MOST_EXCUSED: Final = 60.0
_EXCUSED_FOR_UNKNOWN: Final = 10.0


def excuse(child: ChildHandle, begun: Container[int], now: float) -> None:
    """If the loop is blocked, do not count the time since the last look against the other tasks."""
    turned_ns, slot = child.page.loop()
    lag = (monotonic_ns() - turned_ns) / 1e9 if turned_ns else 0.0
    if lag < LAG or len(child.hand) < 2:
        child.blocked_until = child.blocker = 0
        return
    blocker = child.hand.get(slot)
    newly = now - max(now - lag, child.blocked_until)
    child.blocked_until = now
    most = MOST_EXCUSED if blocker is not None else _EXCUSED_FOR_UNKNOWN
    for assignment in list(child.hand.values()):
        if assignment is not blocker and assignment.slot in begun and assignment.excused < most:
            assignment.excused += newly
            assignment.beat_at += newly
        if assignment is not blocker:
            assignment.remark = (
                f"; for {max(lag, assignment.excused):.1f} s of that the event loop of its "
                f"process was blocked by {_named(blocker)}"
            )
    if lag > LOGGED_AFTER and child.blocker != (slot or -1):
        child.blocker = slot or -1
        log.warning(
            "the event loop of %s has been blocked for %.1f s by %s: its %d neighbour(s) wait; "
            "a coroutine must not block (await, asyncio.to_thread, or a plain `def` task)",
            child.name,
            lag,
            _named(blocker),
            len(child.hand) - (blocker is not None),
        )


def _named(blocker: Assignment | None) -> str:
    if blocker is None:
        return "code that cannot be named"
    return named(blocker.task)
