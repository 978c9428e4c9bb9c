"""Holdfast: a durable task queue for Python, on one SQLite file or on PostgreSQL.

Owns the public names and nothing else. It must stay light: a name is loaded when it is first
used, so importing the package loads no command line, no driver and no optional dependency, and
nothing of the standard library: Ctrl-C in the first moment of a command would meet it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.app import Holdfast
    from holdfast.client.call import Call, chain, group
    from holdfast.client.explain import Why
    from holdfast.client.handle import TaskHandle
    from holdfast.client.info import Attempt, TaskInfo
    from holdfast.client.task import Task
    from holdfast.client.workflow import Workflow
    from holdfast.client.workflow_handle import WorkflowHandle
    from holdfast.core.error_code import ErrorCode
    from holdfast.core.errors import (
        ClaimLost,
        ConfigError,
        HoldfastError,
        IllegalTransition,
        PayloadError,
        PayloadMismatch,
        SchemaMismatch,
        StoreError,
        StoreUnavailable,
        TaskCancelled,
        TaskDropped,
        TaskExpired,
        TaskFailed,
        TaskNotCompleted,
        TaskNotFound,
        TaskStalled,
        UniqueConflict,
        UnknownTask,
        UnreadableRow,
        UpstreamEnded,
        WaitTimeout,
    )
    from holdfast.core.hooks import TaskEvent, WorkerEvent
    from holdfast.core.options.limit import Limit
    from holdfast.core.options.retention import Retention
    from holdfast.core.options.retry import Retry
    from holdfast.core.options.unique import Unique
    from holdfast.core.result import TaskError, TaskResult
    from holdfast.core.secret import Secret
    from holdfast.core.signals import Abort, RetryLater, Snooze
    from holdfast.core.status import TASK_TERMINAL_STATES, TaskStatus
    from holdfast.core.workflows.step import Step, Steps, any_of, at_least
    from holdfast.runtime.child.context import TaskContext, current_task
    from holdfast.runtime.worker import Worker

__version__ = "0.1.0.dev0"

__all__ = [
    "TASK_TERMINAL_STATES",
    "Abort",
    "Attempt",
    "Call",
    "ClaimLost",
    "ConfigError",
    "ErrorCode",
    "Holdfast",
    "HoldfastError",
    "IllegalTransition",
    "Limit",
    "PayloadError",
    "PayloadMismatch",
    "Retention",
    "Retry",
    "RetryLater",
    "SchemaMismatch",
    "Secret",
    "Snooze",
    "Step",
    "Steps",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskCancelled",
    "TaskContext",
    "TaskDropped",
    "TaskError",
    "TaskEvent",
    "TaskExpired",
    "TaskFailed",
    "TaskHandle",
    "TaskInfo",
    "TaskNotCompleted",
    "TaskNotFound",
    "TaskResult",
    "TaskStalled",
    "TaskStatus",
    "Unique",
    "UniqueConflict",
    "UnknownTask",
    "UnreadableRow",
    "UpstreamEnded",
    "WaitTimeout",
    "Why",
    "Worker",
    "WorkerEvent",
    "Workflow",
    "WorkflowHandle",
    "__version__",
    "any_of",
    "at_least",
    "chain",
    "current_task",
    "group",
]

_HOMES = {
    "holdfast.app": ("Holdfast",),
    "holdfast.client.call": ("Call", "chain", "group"),
    "holdfast.client.explain": ("Why",),
    "holdfast.client.handle": ("TaskHandle",),
    "holdfast.client.info": ("Attempt", "TaskInfo"),
    "holdfast.client.task": ("Task",),
    "holdfast.client.workflow": ("Workflow",),
    "holdfast.client.workflow_handle": ("WorkflowHandle",),
    "holdfast.core.error_code": ("ErrorCode",),
    "holdfast.core.hooks": ("TaskEvent", "WorkerEvent"),
    "holdfast.core.options.retention": ("Retention",),
    "holdfast.core.options.retry": ("Retry",),
    "holdfast.core.options.limit": ("Limit",),
    "holdfast.core.options.unique": ("Unique",),
    "holdfast.core.result": ("TaskError", "TaskResult"),
    "holdfast.core.secret": ("Secret",),
    "holdfast.core.signals": ("Abort", "RetryLater", "Snooze"),
    "holdfast.core.workflows.step": ("Step", "Steps", "any_of", "at_least"),
    "holdfast.core.status": ("TASK_TERMINAL_STATES", "TaskStatus"),
    "holdfast.runtime.child.context": ("TaskContext", "current_task"),
    "holdfast.runtime.worker": ("Worker",),
}
"""Where the public names are; those of errors, which are most, in `holdfast.core.errors`."""


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    homes = (module for module, names in _HOMES.items() if name in names)
    value = getattr(import_module(next(homes, "holdfast.core.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING"})
