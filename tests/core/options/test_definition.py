from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from datetime import timedelta
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.options.definition import TaskOptions, define
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.options.unique import Unique
from holdfast.core.payload.codec import decode


def add(a: int, b: int) -> int:
    return a + b


async def fetch(url: str) -> str:
    return url


async def stream() -> AsyncIterator[str]:
    yield "a"


def test_the_defaults() -> None:
    task = define(add)
    assert task.name == f"{__name__}.add"
    assert task.key == (task.name, 1)
    assert (task.version, task.queue, task.priority) == (1, "default", 50)
    assert (task.executor, task.max_concurrent, task.unique) == ("process", None, None)
    assert (task.good_for_us, task.tags, task.tags_json) == (None, (), None)
    assert task.policy == Policy()
    assert task.task_options is None
    assert task.function is add
    assert task.signature.name == task.name


def test_all_options() -> None:
    task = define(
        add,
        "images.resize",
        version=2,
        queue="images",
        priority=10,
        retry=Retry(3, delay=10),
        timeout=60,
        max_heartbeat_interval=timedelta(seconds=30),
        on_shutdown="stop",
        on_crash="stall",
        max_crashes=5,
        executor="thread",
        max_concurrent=4,
        unique=Unique(),
        dead_letter=False,
        capture_output=False,
        good_for="1h",
        tags=["a", "b"],
    )
    assert (task.name, task.version, task.queue, task.priority) == (
        "images.resize",
        2,
        "images",
        10,
    )
    assert (task.executor, task.max_concurrent, task.unique) == ("thread", 4, Unique())
    assert (task.good_for_us, task.tags, task.tags_json) == (3_600_000_000, ("a", "b"), '["a","b"]')
    assert decode(task.task_options or "") == {
        "retry": {"max_retries": 3, "delay": 10},
        "timeout": 60,
        "max_heartbeat_interval": 30,
        "on_shutdown": "stop",
        "on_crash": "stall",
        "max_crashes": 5,
        "dead_letter": False,
        "capture_output": False,
    }


def test_the_apps_timeout_is_the_default_and_none_means_never() -> None:
    assert define(add).policy.timeout == 3600
    assert define(add, default_timeout=60).policy.timeout == 60
    assert define(add, default_timeout=60, timeout=None).policy.timeout is None
    assert define(add, default_timeout=None).policy.timeout is None
    assert define(add, default_timeout=60).task_options == '{"timeout":60.0}'


def test_a_number_is_a_retry_policy() -> None:
    assert define(add, retry=3).policy.retry == Retry(3)


def test_async_functions_run_on_the_async_executor() -> None:
    assert define(fetch).executor == "async"
    assert define(stream).executor == "async"
    assert define(fetch, executor="async").executor == "async"


def test_a_nested_function_has_a_usable_name() -> None:
    def inner() -> None: ...

    here = "test_a_nested_function_has_a_usable_name"
    assert define(inner).name == f"{__name__}.{here}.inner"


def main_function(**names: Any) -> FunctionType:
    function = FunctionType(add.__code__, {"__name__": "__main__", **names}, "add")
    function.__module__ = "__main__"
    return function


def test_a_script_calls_its_tasks_as_the_worker_will() -> None:
    assert define(main_function(__file__="/srv/app/tasks.py", __spec__=None)).name == "tasks.add"
    spec = SimpleNamespace(name="shop.__main__")
    assert define(main_function(__file__="/x/__main__.py", __spec__=spec)).name == "shop.add"
    assert define(main_function()).name == "__main__.add"


@pytest.mark.parametrize(
    ("options", "option", "message"),
    [
        ({"version": 0}, "version", "version=0 is not usable"),
        ({"queue": "a b"}, "queue", "queue name 'a b' is not usable"),
        ({"priority": 0}, "priority", "priority=0"),
        ({"retry": -1}, "max_retries", "must be a whole number, 0 or more"),
        ({"retry": "often"}, "retry", "retry='often' is not a retry policy"),
        ({"timeout": 0}, "timeout", "timeout=0 must be longer than nothing"),
        ({"timeout": -5}, "timeout", "timeout=-5"),
        ({"timeout": float("nan")}, "timeout", "timeout=nan is not a duration"),
        ({"max_heartbeat_interval": 0}, "max_heartbeat_interval", "must be longer"),
        ({"on_shutdown": "panic"}, "on_shutdown", "use one of resubmit, stop, continue"),
        ({"on_crash": "ignore"}, "on_crash", "use one of retry, stall"),
        ({"max_crashes": 0}, "max_crashes", "max_crashes=0"),
        ({"at_most_once": "yes"}, "at_most_once", "give True or False"),
        ({"executor": "fiber"}, "executor", "use one of process, thread, async"),
        ({"executor": "async"}, "executor", "is a def and cannot run on the async executor"),
        ({"max_concurrent": 0}, "max_concurrent", "max_concurrent=0"),
        ({"unique": True}, "unique", r"give Unique\(…\)"),
        ({"dead_letter": 0}, "dead_letter", "give True or False"),
        ({"good_for": 0}, "good_for", "must be longer than nothing"),
        ({"tags": "abc"}, "tags", "give a list of strings"),
        ({"limit": 3}, "limit", "give Limit"),
        ({"concurrency_key": "x"}, "concurrency_key", "it names no parameter"),
        ({"prioritty": 5}, "prioritty", "'prioritty' is not an option of a task"),
    ],
)
def test_bad_options_are_named(options: TaskOptions, option: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        define(add, **options)
    assert caught.value.option == option


@pytest.mark.parametrize("name", ["", "a b", "x" * 256])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="task name"):
        define(add, name)


@pytest.mark.parametrize("executor", ["process", "thread"])
def test_an_async_def_cannot_run_elsewhere(executor: Any) -> None:
    with pytest.raises(ConfigError, match=r"is an async def .* or make it a def that calls"):
        define(fetch, executor=executor)


@pytest.mark.parametrize(
    "thing", [len, int, functools.partial(add, 1), object(), SimpleNamespace.__init__]
)
def test_only_functions_are_tasks(thing: Any) -> None:
    with pytest.raises(ConfigError, match="is not a function"):
        define(thing)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ConfigError, match=r"task name '.*<lambda>' is not usable"):
        define(lambda: None)
    assert define(lambda: None, "nothing").name == "nothing"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "thread"}, "only executor='process' can promise it"),
        ({"retry": 3}, "retry=3: leave out retry"),
        ({"on_crash": "retry"}, "on_crash='retry': leave it out, or use 'stall'"),
        ({"on_shutdown": "resubmit"}, "on_shutdown='resubmit': leave it out"),
    ],
)
def test_at_most_once_contradicts_running_again(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        define(add, at_most_once=True, **options)


def test_at_most_once_alone_is_fine() -> None:
    choices: list[dict[str, Any]] = [
        {},
        {"retry": 0},
        {"on_crash": "stall"},
        {"on_shutdown": "stop"},
    ]
    for options in choices:
        assert define(add, at_most_once=True, **options).policy.at_most_once
    with pytest.raises(ConfigError, match="the async executor"):
        define(fetch, at_most_once=True)


def test_decorated_functions_keep_their_signature() -> None:
    @functools.wraps(add)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return add(*args, **kwargs)

    task = define(wrapper)
    assert task.name == f"{__name__}.add"
    assert task.signature.decode("[1,2]", "{}") == ([1, 2], {})
