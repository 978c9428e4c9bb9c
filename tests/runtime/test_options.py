"""The settings of a worker: where they come from, and what is refused where it was written."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import ConfigError, Holdfast, Retention
from holdfast.runtime.options import WorkerOptions


def test_what_was_given_wins_over_the_app_over_the_environment() -> None:
    environment = {"HOLDFAST_LEASE": "7", "HOLDFAST_GRACE": "8", "HOLDFAST_POLL": "9"}
    found = WorkerOptions.load({"lease": 5.0}, {"lease": 6.0, "grace": 6.5}, environment)
    assert (found.lease, found.grace, found.poll) == (5.0, 6.5, 9.0)


def test_none_is_not_given() -> None:
    assert WorkerOptions.load({"poll": None}, {}, {"HOLDFAST_POLL": "3"}).poll == 3.0


def test_a_variable_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigError, match="HOLDFAST_MAX_TASKS_PER_CHILD is 'many'"):
        WorkerOptions.load({}, {}, {"HOLDFAST_MAX_TASKS_PER_CHILD": "many"})


def test_retention_as_text() -> None:
    found = WorkerOptions.load({"retention": "tasks=1d,dead=never"}, {}, {})
    assert found.retention == Retention(tasks="1d", dead=None)
    with pytest.raises(ConfigError, match="--retention is 'a week'"):
        WorkerOptions.load({"retention": "a week"}, {}, {})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("processes", 1),
        ("concurrency", 0),
        ("concurrency", "2"),
        ("concurrency", True),
        ("threads", 1.5),
        ("lease", 0.1),
        ("lease", "30"),
        ("lease", float("inf")),
        ("lease", 1e20),
        ("poll", float("nan")),
        ("poll", 1e20),
        ("snapshot_interval", 1e20),
        ("max_tasks_per_child", 0),
        ("max_memory_per_child", "1GB"),
        ("drop_unknown_after", "1d"),
        ("retention", {"tasks": 1}),
        ("burst", 1),
        ("queues", 3),
    ],
)
def test_a_bad_setting_is_refused_at_the_call(setting: str, value: Any) -> None:
    app = Holdfast("sqlite:///:memory:")
    with pytest.raises(ConfigError, match=setting):
        app.worker(**{setting: value})


def test_queues_as_a_list() -> None:
    app = Holdfast("sqlite:///:memory:")

    @app.task("one")
    def one() -> None: ...

    one.options(queue="tenant:42").send()
    assert app.worker(queues=["default"]).run_until_idle() == 0
    assert app.worker(queues=["tenant:42"]).run_until_idle() == 1
