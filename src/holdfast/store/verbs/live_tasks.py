"""Tasks that may end soon, for whoever follows the ends of all of them.

Owns the choice. No index knows when tasks ended (keeping one would cost every task), so who wants
to see them end has to know them before: those that workers hold, the first of each queue, and the
newest of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store import rows
from holdfast.store.op import Statement, Steps, Texts, reads
from holdfast.store.verbs.queues import list_queues
from holdfast.store.verbs.timing import next_due

_AHEAD_MS = 10 * 365 * 86_400_000
"""How far ahead of the database's clock a sender's may be; see `newest`."""
_LARGEST_MS = 2**48 - 1
_MOST_OF_ALL = 10_000
_LEAST_OF_A_QUEUE = 10


@reads
def live_tasks(*, most: int, queues: Sequence[str] | None = None) -> Steps[list[bytes]]:
    """The ids of tasks that may end soon: of each queue, and of the newest, so many at most.
    Where there are many queues, it is fewer of each, so that all together are bounded.

    `queues`: of these alone; None: of all in which something waits. Tasks that have ended are among
    the newest.
    """
    if queues is None:
        found = yield from list_queues(1)
        queues = list(rows.texts(queue.queue_name for queue in found if queue.pending))
    now = (yield from next_due()).now
    latest = min(now // 1000 + _AHEAD_MS, _LARGEST_MS).to_bytes(6) + bytes(10)
    each = min(most, max(_LEAST_OF_A_QUEUE, _MOST_OF_ALL // max(1, len(queues))))
    asked = {"queues": Texts(queues), "latest": latest, "most": most, "each": each}
    return list(rows.uuids((yield Statement("live_tasks", asked))))
