"""The stack of a running task, asked for through the store.

Owns the waiting. The worker that runs the task looks for questions a few times a second and
leaves its answer; a question nobody answers is taken back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from holdfast.cli.session import Refused, Session
from holdfast.client.info import TaskInfo
from holdfast.core.status import TaskStatus
from holdfast.store.verbs.stack_requests import ask_stack, take_stack

_PATIENCE: Final = 3.0
_LOOK: Final = 0.05


def stack_of(session: Session, task: UUID, clock: Callable[[], float] = time.monotonic) -> str:
    """Where the code of a task is right now."""
    info = session.control.tasks.show(task)
    if info.status is not TaskStatus.RUNNING:
        raise Refused(f"task {task} is {info.status.value}: only running code has a stack")
    deadline = clock() + _PATIENCE
    session.run(partial(ask_stack, task.bytes))
    try:
        while clock() < deadline:
            answer = session.run(partial(take_stack, task.bytes))
            if answer is not None:
                return answer
            time.sleep(_LOOK)
    finally:
        late = session.run(partial(take_stack, task.bytes, give_up=True))
    if late is None:
        raise Refused(_silence(session.control.tasks.show(task)))
    return late


def _silence(info: TaskInfo) -> str:
    if info.status is not TaskStatus.RUNNING:
        return f"task {info.id} ended before its worker answered: it is {info.status.value}"
    return (
        f"worker {info.claimed_by_worker_id} on {info.worker_hostname} did not answer within "
        f"{_PATIENCE:g} s: it may be gone (holdfast workers list), or busy"
    )
