"""The decorator `@app.task`: bare, with a name, with options.

Owns its types, and nothing else: what a task's handle gives is read off the function's
return annotation here for type checkers, and in `core.payload.signature` at run time.

    def f() -> int                          TaskHandle[int]
    def f() -> TaskResult[int, TaskError]   TaskHandle[int]
    async def f() -> int                    TaskHandle[int], also with a TaskResult
    def f() -> Generator[str, None, int]    TaskHandle[int]: what it returns in the end
    def f() -> Iterator[str]                TaskHandle[Any]: the annotation does not say
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.task import TaskFunction
from holdfast.core.errors import ConfigError
from holdfast.core.options.definition import TaskOptions, define
from holdfast.core.result import TaskError, TaskResult

__all__ = ["TaskDecorator"]

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=TaskError)
Y = TypeVar("Y")
S = TypeVar("S")


class NamedOptions(TaskOptions, total=False):
    """The same with the name among them: `@app.task(name="resize", queue="images")`."""

    name: str | None


class TaskDecorator:
    """Makes tasks of functions.

    @app.task
    def add(a: int, b: int) -> int: ...

    @app.task("resize", version=2, queue="images", retry=3)
    def resize(path: Path, width: int = 640) -> TaskResult[str, TaskError]: ...
    """

    def __init__(
        self,
        dispatch: Dispatch,
        default_timeout: float | None,
        name: str | None = None,
        options: TaskOptions | None = None,
    ) -> None:
        self._dispatch = dispatch
        self._default_timeout = default_timeout
        self._name = name
        self._options: TaskOptions = options or {}

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, TaskResult[R, E]]], /
    ) -> TaskFunction[P, R, Coroutine[Any, Any, TaskResult[R, E]]]: ...

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> TaskFunction[P, R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[P, Generator[Y, S, TaskResult[R, E]]], /
    ) -> TaskFunction[P, R, Generator[Y, S, TaskResult[R, E]]]: ...

    @overload
    def __call__(
        self, function: Callable[P, Generator[Y, S, R]], /
    ) -> TaskFunction[P, R, Generator[Y, S, R]]: ...

    @overload
    def __call__(
        self, function: Callable[P, Iterator[Y]], /
    ) -> TaskFunction[P, Any, Iterator[Y]]: ...

    @overload
    def __call__(
        self, function: Callable[P, AsyncIterator[Y]], /
    ) -> TaskFunction[P, None, AsyncIterator[Y]]: ...

    @overload
    def __call__(
        self, function: Callable[P, TaskResult[R, E]], /
    ) -> TaskFunction[P, R, TaskResult[R, E]]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, R, R]: ...

    @overload
    def __call__(self, /, **options: Unpack[NamedOptions]) -> TaskDecorator: ...

    @overload
    def __call__(self, name: str | None, /, **options: Unpack[TaskOptions]) -> TaskDecorator: ...

    def __call__(
        self, subject: Any = None, /, *, name: str | None = None, **options: Unpack[TaskOptions]
    ) -> Any:
        if callable(subject) and name is None and not options:
            return self._make(subject)
        if subject is not None and not isinstance(subject, str):
            raise ConfigError(
                f"@app.task takes a name and options, not {subject!r:.100}: "
                'write @app.task, @app.task("name") or @app.task(queue="images")',
                option="name",
            )
        if subject is not None and name is not None:
            raise ConfigError(
                f"@app.task was given two names, {subject!r} and name={name!r}: leave out one",
                option="name",
            )
        chosen = name if subject is None else subject
        return TaskDecorator(self._dispatch, self._default_timeout, chosen, options)

    def _make(self, function: Callable[P, Any]) -> TaskFunction[P, Any, Any]:
        definition = define(
            function, self._name, default_timeout=self._default_timeout, **self._options
        )
        self._dispatch.registry.add(definition)
        return TaskFunction(definition, self._dispatch, function)
