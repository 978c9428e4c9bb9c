"""Holdfast: a durable task queue for Python, on one SQLite file or on PostgreSQL.

Owns the public names and nothing else. It must stay light: importing it loads no
command line, no PostgreSQL driver and no optional dependency.
"""

from holdfast.app import Holdfast
from holdfast.client.handle import TaskHandle
from holdfast.client.info import Attempt, TaskInfo
from holdfast.client.task import Task
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
    TaskNotFound,
    TaskStalled,
    UniqueConflict,
    UnknownTask,
    WaitTimeout,
)
from holdfast.core.result import TaskError, TaskResult
from holdfast.core.retry import Retry
from holdfast.core.signals import Abort, RetryLater, Snooze
from holdfast.core.status import TASK_TERMINAL_STATES, TaskStatus
from holdfast.core.unique import Unique

__version__ = "0.1.0.dev0"

__all__ = [
    "TASK_TERMINAL_STATES",
    "Abort",
    "Attempt",
    "ClaimLost",
    "ConfigError",
    "ErrorCode",
    "Holdfast",
    "HoldfastError",
    "IllegalTransition",
    "PayloadError",
    "PayloadMismatch",
    "Retry",
    "RetryLater",
    "SchemaMismatch",
    "Snooze",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskCancelled",
    "TaskDropped",
    "TaskError",
    "TaskExpired",
    "TaskFailed",
    "TaskHandle",
    "TaskInfo",
    "TaskNotFound",
    "TaskResult",
    "TaskStalled",
    "TaskStatus",
    "Unique",
    "UniqueConflict",
    "UnknownTask",
    "WaitTimeout",
    "__version__",
]
