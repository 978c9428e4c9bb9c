"""Hooks: who has registered for which."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.core.errors import ConfigError
from holdfast.core.hooks import OF_WORKER, AppHooks, TaskEvent, TaskHooks, WorkerEvent, hooks_after
from holdfast.core.lifecycle import Verb
from holdfast.core.status import TaskStatus


def one(event: TaskEvent) -> None: ...


def two(event: TaskEvent) -> None: ...


def started(event: WorkerEvent) -> None: ...


def test_functions_are_kept_in_order_and_given_back() -> None:
    hooks = TaskHooks()
    assert hooks.on_failure(one) is one
    hooks.on_failure(two)
    hooks.before_start(one)
    assert hooks.functions("on_failure") == (one, two)
    assert hooks.functions("on_success") == ()
    assert hooks.names == ["before_start", "on_failure"]


def test_an_app_has_those_of_its_workers_too() -> None:
    hooks = AppHooks()
    for register in (hooks.worker_started, hooks.worker_stopping, hooks.child_started):
        register(started)
    assert set(hooks.names) == OF_WORKER


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"hooks\.on_success takes a function, not 'x'"):
        TaskHooks().on_success("x")  # type: ignore[type-var]


def test_hooks_hang_on_apps_and_tasks() -> None:
    app = Holdfast("sqlite:///:memory:")

    @app.task
    def add(a: int, b: int) -> int:
        return a + b

    app.hooks.on_failure(one)
    add.hooks.on_failure(two)
    assert app.hooks.functions("on_failure") == (one,)
    assert add.options(priority=1).hooks.functions("on_failure") == (two,)


@pytest.mark.parametrize(
    ("verb", "target", "hooks"),
    [
        (Verb.COMPLETE, TaskStatus.COMPLETED, ["on_success", "after_finish"]),
        (Verb.FAIL, TaskStatus.FAILED, ["on_failure", "after_finish"]),
        (Verb.STALL, TaskStatus.STALLED, ["on_failure", "after_finish"]),
        (Verb.RECOVER, TaskStatus.FAILED, ["on_failure", "after_finish"]),
        (Verb.RECOVER, TaskStatus.PENDING, ["on_retry", "after_finish"]),
        (Verb.RETRY, TaskStatus.SCHEDULED, ["on_retry", "after_finish"]),
        (Verb.ACK_CANCEL, TaskStatus.CANCELLED, ["on_cancel", "after_finish"]),
        (Verb.SNOOZE, TaskStatus.SCHEDULED, ["after_finish"]),
        (Verb.RETRY, TaskStatus.CANCELLED, ["on_cancel", "after_finish"]),
        (Verb.INTERRUPT, TaskStatus.PENDING, ["after_finish"]),
    ],
)
def test_which_hooks_belong_to_which_end(verb: Verb, target: TaskStatus, hooks: list[str]) -> None:
    assert hooks_after(verb, target) == hooks
