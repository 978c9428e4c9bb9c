"""The public surface, pinned: a name appears or goes only by a change here."""

from __future__ import annotations

import subprocess
import sys

import holdfast

PUBLIC = [
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
    "TASK_TERMINAL_STATES",
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


def test_the_public_names_are_these() -> None:
    assert sorted(holdfast.__all__) == PUBLIC


def test_every_name_is_there_and_listed() -> None:
    for name in PUBLIC:
        assert getattr(holdfast, name) is not None
    assert set(PUBLIC) <= set(dir(holdfast))


def test_a_name_that_is_not_public_is_an_ordinary_error() -> None:
    assert not hasattr(holdfast, "no_such_name")


def test_importing_loads_nothing_heavy() -> None:
    code = "import holdfast, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "click",
        "rich",
        "psycopg",
        "psycopg_pool",
        "django",
        "sqlalchemy",
        "jinja2",
        "starlette",
    }
    assert heavy & set(loaded) == set()
