"""What a worker is doing, for somebody who asks with SIGUSR1.

Owns the text: its queues, its children and what each runs since when, what is claimed and waits,
and where each of its threads is. Changes nothing.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic, monotonic_ns
from uuid import UUID

from holdfast.runtime.supervisor.state.child_handle import ChildHandle
from holdfast.runtime.supervisor.state.ledger import Ledger

_PACKAGE = str(Path(__file__).parents[2])
_MOST_TASKS = 20
"""Of one child; a window of short tasks may be long."""


def report(ledger: Ledger, queues: Sequence[str], stopping: bool) -> list[str]:
    """All of it, line by line."""
    return [*_work(ledger, queues, stopping), *_threads()]


def _work(ledger: Ledger, queues: Sequence[str], stopping: bool) -> Iterator[str]:
    running, claimed = ledger.counts()
    paused, children = ledger.paused_queues(), ledger.roster.all()
    yield "what this worker is doing" + (" (it is stopping)" if stopping else "") + ":"
    yield f"  queues: {', '.join(queues) or 'none'}"
    if paused:
        yield f"  paused: {', '.join(paused)}"
    states = Counter(child.state.value for child in children)
    made = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    yield f"  children: {made or 'none'}; {running} task(s) running, {claimed} claimed"
    for child in children:
        yield from _child(child)


def _child(child: ChildHandle) -> Iterator[str]:
    begun = {entry.slot: entry.at_ns for entry in child.page.begun()}
    yield (
        f"  {child.name} (pid {child.pid}): {child.state.value}, "
        f"{len(begun)} of {child.lanes} running, {len(child.hand)} in hand, {child.served} served"
    )
    now = monotonic()
    for shown, (slot, run) in enumerate(list(child.hand.items())):
        if shown == _MOST_TASKS:
            yield f"    and {len(child.hand) - shown} more"
            return
        if slot in begun:
            how = f"running for {(monotonic_ns() - begun[slot]) / 1e9:.1f} s"
        elif run.started:
            how = f"waiting in the child for {now - run.given_at:.1f} s"
        else:
            how = "being started"
        if run.told_to_end is not None:
            how += f", being ended ({run.told_to_end}) for {now - run.told_to_end_at:.1f} s"
        yield f"    {run.task.task_name} {UUID(bytes=run.task.id)}, attempt {run.attempt}: {how}"


def _threads() -> Iterator[str]:
    frames = sys._current_frames()
    yield "  threads:"
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is not None:
            stack = traceback.extract_stack(frame)
            # That it waits in the standard library says less than what it waits for.
            own = [place for place in stack if place.filename.startswith(_PACKAGE)]
            place = (own or stack)[-1]
            yield f"    {thread.name}: {place.name} ({place.filename}:{place.lineno})"
