"""Hooks: functions of the application that are called around its tasks.

Owns the names of the hooks, who has registered for which, and what each is told. Nothing is
called here: the child that runs a task's code runs its hooks too, before the outcome is
written, so they run at least once, as tasks do. A hook that raises is logged, also into the
task's own output, and never changes what becomes of the task.

    @app.hooks.on_failure
    def page(event: TaskEvent) -> None: ...

    @resize.hooks.on_success
    def announce(event: TaskEvent) -> None: ...

Hooks of the application run before those of the task, each in the order of registration.
An `async def` hook is awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import UUID

from holdfast.core.errors import ConfigError
from holdfast.core.lifecycle import Verb
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus

__all__ = ["OF_WORKER", "AppHooks", "TaskEvent", "TaskHooks", "WorkerEvent", "hooks_after"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """What a hook of a task is told."""

    hook: str
    """Which hook this is, for a function that serves several."""
    name: str
    version: int
    id: UUID
    attempt: int
    queue: str
    args: tuple[Any, ...] = ()
    """The arguments, as the code gets them; empty if they did not fit its signature."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    """The value that the code returned."""
    error: TaskError | None = None
    exception: BaseException | None = None
    """What the code raised; None also when its process has died, and `error` says how."""
    delay: float | None = None
    """Seconds until the next run, where there is one and the time is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEvent:
    """What a hook of the worker is told."""

    hook: str
    process: str
    """The name of the child in which the hook runs."""
    pid: int


OnTask = TypeVar("OnTask", bound=Callable[[TaskEvent], Any])
OnWorker = TypeVar("OnWorker", bound=Callable[[WorkerEvent], Any])
F = TypeVar("F", bound=Callable[[Any], Any])
Hook = Callable[[Any], Any]


class TaskHooks:
    """The hooks around a task's code. Each method registers a function, as a decorator."""

    __slots__ = ("_functions",)

    def __init__(self) -> None:
        self._functions: dict[str, tuple[Hook, ...]] = {}

    def before_start(self, function: OnTask, /) -> OnTask:
        """Called before the code, once its arguments are known to fit."""
        return self._add("before_start", function)

    def on_success(self, function: OnTask, /) -> OnTask:
        """Called when the code has returned a value that can be stored."""
        return self._add("on_success", function)

    def on_failure(self, function: OnTask, /) -> OnTask:
        """Called when the task has failed and will not run again by itself."""
        return self._add("on_failure", function)

    def on_retry(self, function: OnTask, /) -> OnTask:
        """Called when the code has failed and will run again."""
        return self._add("on_retry", function)

    def on_cancel(self, function: OnTask, /) -> OnTask:
        """Called when the code has been ended because the task was cancelled."""
        return self._add("on_cancel", function)

    def after_finish(self, function: OnTask, /) -> OnTask:
        """Called last after every run, however it ended."""
        return self._add("after_finish", function)

    @property
    def names(self) -> list[str]:
        """The hooks for which there is at least one function."""
        return sorted(self._functions)

    def functions(self, hook: str) -> tuple[Hook, ...]:
        """What to call, in order."""
        return self._functions.get(hook, ())

    def _add(self, hook: str, function: F) -> F:
        if not callable(function):
            raise ConfigError(
                f"hooks.{hook} takes a function, not {function!r:.100}: "
                f"write @app.hooks.{hook} above one",
                option="hooks",
            )
        self._functions[hook] = (*self.functions(hook), function)
        return function


class AppHooks(TaskHooks):
    """The hooks around every task of an application, and those of its workers."""

    __slots__ = ()

    def worker_started(self, function: OnWorker, /) -> OnWorker:
        """Called once for each worker, in one of its children, before the first task."""
        return self._add("worker_started", function)

    def worker_stopping(self, function: OnWorker, /) -> OnWorker:
        """Called once for each worker, in one of its children, when it shuts down in order."""
        return self._add("worker_stopping", function)

    def child_started(self, function: OnWorker, /) -> OnWorker:
        """Called in every child before its first task; the place to open connections."""
        return self._add("child_started", function)


def hooks_after(verb: Verb, status: TaskStatus) -> list[str]:
    """The hooks that belong to the end of a run, in their order: `verb` is what was written
    about it, or will be, and `status` where that led its task."""
    if verb is Verb.COMPLETE:
        return ["on_success", "after_finish"]
    named = None if verb in (Verb.INTERRUPT, Verb.SNOOZE) else _AFTER.get(status)
    return ["after_finish"] if named is None else [named, "after_finish"]


_AFTER: Final = {
    TaskStatus.FAILED: "on_failure",
    TaskStatus.STALLED: "on_failure",
    TaskStatus.CANCELLED: "on_cancel",
    TaskStatus.PENDING: "on_retry",
    TaskStatus.SCHEDULED: "on_retry",
}

OF_WORKER: Final = frozenset({"worker_started", "worker_stopping", "child_started"})
"""The hooks that belong to no task."""
