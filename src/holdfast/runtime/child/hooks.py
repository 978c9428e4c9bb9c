"""Calling the hooks of an application.

Owns the rule that a hook never changes what becomes of a run: what
it raises is told to the supervisor, for the worker's log, and its traceback goes to stderr, where
it becomes part of the task's own output.
"""

from __future__ import annotations

import inspect
import logging
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from holdfast.core.hooks import OF_WORKER, AppHooks, Hook, TaskEvent, WorkerEvent
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.payload.codec import encode_arguments
from holdfast.core.payload.failure import secrets_in, summary
from holdfast.core.redaction import redact_lines
from holdfast.core.secret import without
from holdfast.runtime.child.context import EndRun

log = logging.getLogger("holdfast.worker")


_ANY_SIZE: Final = 1 << 62

HookCall: TypeAlias = tuple[Sequence[Hook], TaskEvent | WorkerEvent]
"""Hooks, and what to tell them."""


def _to_nobody(text: str) -> None:
    """Where there is no supervisor, what a hook raised is in the output only."""


tell_supervisor: Callable[[str], None] = _to_nobody
"""Says a line in the worker's log; a child puts its own way there into this place."""


def hooks_for(everywhere: AppHooks, task: TaskDefinition) -> Mapping[str, Sequence[Hook]] | None:
    """What to call around one task; None, as for most tasks, if there is nothing."""
    names = (set(everywhere.names) - OF_WORKER) | set(task.hooks.names)
    if not names:
        return None
    return {name: everywhere.functions(name) + task.hooks.functions(name) for name in names}


def call(calls: Iterable[HookCall]) -> None:
    """Call hooks where there is no event loop."""
    for function, event in _each(calls):
        try:
            answer = function(event)
            if inspect.isawaitable(answer):
                _run(answer)
        except EndRun:
            raise
        except BaseException as error:  # noqa: BLE001 - a hook must not change anything
            _report(function, event, error)


async def acall(calls: Iterable[HookCall]) -> None:
    """Call hooks inside the event loop."""
    for function, event in _each(calls):
        try:
            answer = function(event)
            if inspect.isawaitable(answer):
                await answer
        except BaseException as error:
            if _is_cancelled(error):
                raise
            _report(function, event, error)


def _each(calls: Iterable[HookCall]) -> list[tuple[Hook, TaskEvent | WorkerEvent]]:
    return [(function, event) for functions, event in calls for function in functions]


def _is_cancelled(error: BaseException) -> bool:
    """Whether this run is being ended, and not only something that its hook has waited for."""
    import asyncio

    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _run(answer: Awaitable[Any]) -> None:
    import asyncio

    async def wait() -> None:
        await answer

    asyncio.run(wait())


def _report(function: Hook, event: TaskEvent | WorkerEvent, error: BaseException) -> None:
    about = f" of task {event.id} ({event.name})" if isinstance(event, TaskEvent) else ""
    name = getattr(function, "__qualname__", repr(function))
    secrets = _secrets_of(event)
    told = (
        f"hook {event.hook} ({name}){about} raised {redact_lines(without(summary(error), secrets))}"
    )
    tell_supervisor(told)
    try:
        log.error("%s", told)
        text = "".join(traceback.format_exception(error))
        sys.stderr.write(redact_lines(without(text, secrets)))
    except Exception:  # noqa: BLE001 - the exception's own code runs in there
        pass


def _secrets_of(event: TaskEvent | WorkerEvent) -> list[str]:
    """The secrets among the arguments of its task, which a hook may have put into its message."""
    if not isinstance(event, TaskEvent):
        return []
    try:
        return secrets_in(encode_arguments(event.args, event.kwargs, _ANY_SIZE)[:2])
    except Exception:  # noqa: BLE001 - the hook may have changed them to anything
        return []
