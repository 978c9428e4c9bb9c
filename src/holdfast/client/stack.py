"""The stack of a running task, asked for through the store.

Owns the waiting. The worker that runs the task looks for questions a few times a second and
leaves its answer; a question nobody answers is taken back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, TypeAlias

from holdfast.client import one_task
from holdfast.client.access import Access
from holdfast.core.errors import IllegalTransition, WaitTimeout
from holdfast.core.status import TaskStatus
from holdfast.store.op import Op
from holdfast.store.verbs.stack_requests import ask_stack, take_stack

__all__ = ["PATIENCE", "aask", "ask"]

PATIENCE: Final = 3.0
_LOOK: Final = 0.05

Exchange: TypeAlias = "Generator[Callable[[], Op[Any]] | None, Any, str]"
"""Yields operations to run, and None to pause; returns the stack."""


def ask(access: Access, task_id: bytes, timeout: float) -> str:
    """Where the code of a task is right now."""
    exchange = _exchange(task_id, timeout)
    answer: Any = None
    while True:
        try:
            step = exchange.send(answer)
        except StopIteration as end:
            return str(end.value)
        answer = None
        if step is None:
            time.sleep(_LOOK)
        else:
            answer = access.run(step)


async def aask(access: Access, task_id: bytes, timeout: float) -> str:
    """The same without blocking the event loop."""
    exchange = _exchange(task_id, timeout)
    answer: Any = None
    while True:
        try:
            step = exchange.send(answer)
        except StopIteration as end:
            return str(end.value)
        answer = None
        if step is None:
            await asyncio.sleep(_LOOK)
        else:
            answer = await access.arun(step)


def _exchange(task_id: bytes, timeout: float) -> Exchange:
    yield from _check_running(task_id)
    deadline = time.monotonic() + timeout
    yield partial(ask_stack, task_id)
    late: str | None = None
    while time.monotonic() < deadline and late is None:
        late = yield partial(take_stack, task_id)
        if late is None:
            yield None
    if late is None:
        late = yield partial(take_stack, task_id, give_up=True)
    if late is None:
        yield from _check_running(task_id)
        raise WaitTimeout(task_id, timeout, TaskStatus.RUNNING)
    return late


def _check_running(task_id: bytes) -> Generator[Callable[[], Op[Any]], Any, None]:
    status: TaskStatus = yield partial(one_task.status, task_id)
    if status is not TaskStatus.RUNNING:
        raise IllegalTransition(task_id, "show the stack of", status)
