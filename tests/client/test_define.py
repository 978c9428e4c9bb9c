"""Defining tasks: the three forms of the decorator, and what is refused where it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ConfigError, Holdfast, Retry, Task, TaskError, TaskResult, Unique


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Holdfast]:
    with Holdfast(f"sqlite:///{tmp_path / 'tasks.db'}") as app:
        yield app


def test_bare(app: Holdfast) -> None:
    @app.task
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    assert isinstance(add, Task)
    assert add(1, 2) == 3
    assert add.name == f"{__name__}.test_bare.add"
    assert (add.version, add.queue, add.priority) == (1, "default", 50)
    assert (getattr(add, "__name__", None), add.__doc__) == ("add", "Add.")


def test_named_and_with_options(app: Holdfast) -> None:
    @app.task("resize", version=2, queue="images", priority=10, retry=Retry(3), timeout=60)
    def resize(path: Path, width: int = 640) -> TaskResult[str, TaskError]:
        return TaskResult(ok=f"{path}-{width}")

    assert (resize.name, resize.version, resize.queue, resize.priority) == (
        "resize",
        2,
        "images",
        10,
    )
    assert resize.definition.policy.timeout == 60
    assert resize.definition.policy.max_retries == 3
    assert resize(Path("a")).ok == "a-640"


def test_the_name_may_be_given_by_keyword(app: Holdfast) -> None:
    @app.task(name="resize", queue="images")
    def resize() -> None: ...

    @app.task(name=None)
    def other() -> None: ...

    assert (resize.name, resize.queue) == ("resize", "images")
    assert other.name.endswith(".other")
    with pytest.raises(ConfigError, match=r"two names, 'a' and name='b'"):
        app.task("a", name="b")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="takes a name and options"):
        app.task(lambda: None, name="b")  # type: ignore[call-overload]


def test_options_without_a_name(app: Holdfast) -> None:
    @app.task(queue="images")
    def resize() -> None: ...

    @app.task()
    def other() -> None: ...

    assert resize.queue == "images"
    assert other.queue == "default"


def test_a_plain_call_of_an_async_task_is_a_coroutine(app: Holdfast) -> None:
    @app.task
    async def fetch(url: str) -> str:
        return url.upper()

    assert asyncio.run(fetch("a")) == "A"


def test_the_apps_default_timeout_is_the_tasks(tmp_path: Path) -> None:
    with Holdfast(f"sqlite:///{tmp_path / 'tasks.db'}", default_timeout=None) as app:

        @app.task
        def patient() -> None: ...

        @app.task(timeout=5)
        def hasty() -> None: ...

    assert patient.definition.policy.timeout is None
    assert hasty.definition.policy.timeout == 5


def test_defining_opens_nothing(tmp_path: Path) -> None:
    app = Holdfast(f"sqlite:///{tmp_path / 'absent' / 'tasks.db'}")

    @app.task
    def add(a: int) -> int:
        return a

    assert list(tmp_path.iterdir()) == []
    app.close()


def test_a_second_version_is_another_task(app: Holdfast) -> None:
    @app.task("f")
    def old() -> None: ...

    @app.task("f", version=2)
    def new() -> None: ...

    found = app.tasks.find("f")
    assert found is not None
    assert found.function.__name__ == "new"
    assert len(app.tasks) == 2


def test_a_name_and_version_mean_one_function(app: Holdfast) -> None:
    @app.task("f")
    def one() -> None: ...

    with pytest.raises(ConfigError, match=r"'f' version 1 is defined twice, by .*one .*by .*two"):

        @app.task("f")
        def two() -> None: ...


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"priority": 0}, "priority=0"),
        ({"priority": 101}, "priority=101"),
        ({"priority": 5.0}, "priority=5.0"),
        ({"queue": ""}, "queue name ''"),
        ({"queue": "a b"}, "queue name 'a b'"),
        ({"queue": "q" * 101}, "1 to 100 of the characters"),
        ({"version": 0}, "version=0"),
        ({"retry": -1}, "max_retries"),
        ({"timeout": 0}, "timeout=0"),
        ({"executor": "async"}, "async executor"),
        ({"executor": "rocket"}, "executor='rocket'"),
        ({"on_crash": "shrug"}, "on_crash='shrug'"),
        ({"at_most_once": True, "retry": 3}, "at_most_once"),
        ({"unique": True}, r"unique=True .* Unique"),
        ({"tags": "one"}, "tags='one'"),
        ({"priorty": 5}, "'priorty' is not an option"),
    ],
)
def test_a_bad_option_fails_at_decoration(
    app: Holdfast, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):

        @app.task(**options)
        def task() -> None: ...

    assert len(app.tasks) == 0


@pytest.mark.parametrize("name", ["", "a b", "ä", "n" * 256, 'a"b', "a/b"])
def test_a_bad_name_fails_at_decoration(app: Holdfast, name: str) -> None:
    with pytest.raises(ConfigError, match="1 to 255 of the characters"):

        @app.task(name)
        def task() -> None: ...


def test_what_is_no_function_is_refused(app: Holdfast) -> None:
    with pytest.raises(ConfigError, match="not a function"):
        app.task(Retry)
    with pytest.raises(ConfigError, match=r"takes a name and options"):
        app.task(5)  # type: ignore[call-overload]


def test_options_of_a_send_are_checked_when_they_are_given(app: Holdfast) -> None:
    @app.task
    def add(a: int) -> int:
        return a

    fast = add.options(queue="fast", priority=1, tags=["x"])
    assert (fast.queue, fast.priority) == ("fast", 1)
    assert add.queue == "default"
    assert fast.options(priority=2).queue == "fast"
    with pytest.raises(ConfigError, match="not an option of a send"):
        add.options(colour="red")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="delay or run_at"):
        add.options(delay=1, run_at=None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"give Unique\(…\) or None"):
        add.options(unique="key")  # type: ignore[arg-type]
    assert add.options(unique=Unique("k")).name == add.name
