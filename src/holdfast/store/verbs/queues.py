"""Queues: pausing and resuming them, and what waits in them."""

from __future__ import annotations

from holdfast.core.errors import UnreadableRow
from holdfast.core.records import QueueRecord
from holdfast.store import rows
from holdfast.store.op import Channel, Hint, Statement, Steps, alone, paused, reads

COUNT_CAP = 10_000
HEADS = 2_000
"""Among how many keys and priorities the oldest task is looked for, where many wait."""
FEW = 1_000
"""Of fewer tasks in a queue, the oldest is looked for among all."""


@alone
def pause(queue: str, *, by: str | None = None) -> Steps[None]:
    """Let nothing more be claimed from a queue. Takes effect with the next claim; workers that
    hear of it give back what they have claimed and not begun."""
    yield Statement(
        "pause_queue",
        {"queue_name": queue, "paused_by": by},
        hint=Hint(Channel.READY, (paused(queue),)),
    )


@alone
def resume(queue: str) -> Steps[bool]:
    """Let a paused queue go on; False if it was not paused."""
    found = yield Statement(
        "resume_queue", {"queue_name": queue}, hint=Hint(Channel.READY, (queue,))
    )
    return bool(found)


@reads
def list_queues(
    cap: int = COUNT_CAP,
    set_aside: list[UnreadableRow] | None = None,
    *,
    few: int = FEW,
    heads: int = HEADS,
) -> Steps[list[QueueRecord]]:
    """The queues that have waiting or scheduled tasks or were ever paused; counts stop at `cap`.

    Those that cannot be read are added to `set_aside`. The oldest task of a queue with `few` or
    more is that of its first keys and priorities, of `heads` in all queues together.
    """
    found = yield Statement("list_queues", {"cap": cap, "few": few, "heads": heads})
    return list(rows.readable(rows.queue, found, set_aside))
