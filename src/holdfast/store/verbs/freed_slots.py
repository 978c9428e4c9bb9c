"""The hint that slots of limits came free: who waits for one learns of it with the commit.

Owns what such a hint says. That the slot comes free is the business of a trigger of the database;
whichever verb ends a claim only has to say so. (Completions are the exception: the worker that ran
the task says it, once for many.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.core.limiting import (
    QUEUE,
    QUEUE_KEY,
    TASK,
    TASK_KEY,
    queue_scope,
    task_scope,
)
from holdfast.store import rows
from holdfast.store.op import Channel, Hint, Statement, Steps, came_free


def payloads(left: Iterable[tuple[Any, Any, Any]]) -> set[str]:
    """What to say of tasks (slots, queue, name) that may have been claimed, and are not any more.

    The slots of one that was not are those of an earlier claim: then it is said in vain.
    """
    found: set[str] = set()
    for slots, queue, name in left:
        if slots & (QUEUE | QUEUE_KEY):
            found.update(came_free(queue_scope(text)) for text in rows.texts([queue]))
        if slots & (TASK | TASK_KEY):
            found.update(came_free(task_scope(text)) for text in rows.texts([name]))
    return found


def say(left: Iterable[tuple[Any, Any, Any]]) -> Steps[None]:
    """Wake those who wait for what these tasks (slots, queue, name) held."""
    said = payloads(left)
    if said:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(said)))
