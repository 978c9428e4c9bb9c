"""A task as its users hold it: a function that can be sent.

Owns the typed surface of sending. `P` are the parameters of the task's function and `R_co`
is the value its handle gives, so a type checker sees a wrong argument of `send` where it is
written. Sending is `dispatch`'s work; a plain call runs the function here and now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, cast

from holdfast.client.call import Call
from holdfast.client.handle import TaskHandle
from holdfast.client.sending.call import Form
from holdfast.client.sending.dispatch import Dispatch, ManyArguments
from holdfast.client.sending.send_options import PLAIN, CallOptions, SendOptions, choose, put_off
from holdfast.client.sending.task_step import TaskStepForm
from holdfast.core.errors import ConfigError
from holdfast.core.hooks import TaskHooks
from holdfast.core.moment import When
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.workflows.stepable import Stepable, StepForm

if TYPE_CHECKING:
    from holdfast.core.schedules.definition import ScheduledCall

__all__ = ["Task", "TaskFunction"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
C_co = TypeVar("C_co", covariant=True)


class Task(Stepable[P, R_co]):
    """A task that can be sent; `options` makes one that is sent differently.

    add.send(1, 2)
    add.options(queue="fast", priority=1).send(1, 2)
    """

    def __init__(
        self, definition: TaskDefinition, dispatch: Dispatch, choice: SendOptions = PLAIN
    ) -> None:
        self._definition = definition
        self._dispatch = dispatch
        self._choice = choice
        self._form = Form.of(definition, choice)

    @property
    def name(self) -> str:
        """The name it is stored under."""
        return self._definition.name

    @property
    def version(self) -> int:
        """Its version; workers know a task by name and version."""
        return self._definition.version

    @property
    def queue(self) -> str:
        """The queue it is sent to."""
        return self._choice.queue or self._definition.queue

    @property
    def priority(self) -> int:
        """Its priority, 1 (first) to 100 (last)."""
        return self._choice.priority or self._definition.priority

    @property
    def definition(self) -> TaskDefinition:
        """Everything that was said when it was defined."""
        return self._definition

    @property
    def hooks(self) -> TaskHooks:
        """Functions to be called around this task's code: `@resize.hooks.on_failure`."""
        return self._definition.hooks

    def options(self, **options: Unpack[CallOptions]) -> Task[P, R_co]:
        """The same task with other options for its sends: queue, priority, delay, run_at,
        good_until, good_for, unique, id, tags."""
        return Task(self._definition, self._dispatch, choose(self._choice, **options))

    def send(self, /, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R_co]:
        """Send one call. When this returns, the task is durable."""
        return self._dispatch.send(self._form, args, kwargs)

    async def asend(self, /, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R_co]:
        """Send one call. When this returns, the task is durable."""
        return await self._dispatch.asend(self._form, args, kwargs)

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]:
        """A call that is not sent, for `then`, `group` and schedules."""
        return Call(self, args, kwargs)

    def schedule(self, when: When, /, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R_co]:
        """Send one call to be run later: in seconds, after a timedelta, or at an aware datetime."""
        form = Form.of(self._definition, put_off(self._choice, when))
        return self._dispatch.send(form, args, kwargs)

    async def aschedule(self, when: When, /, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R_co]:
        """Send one call to be run later: in seconds, after a timedelta, or at an aware datetime."""
        form = Form.of(self._definition, put_off(self._choice, when))
        return await self._dispatch.asend(form, args, kwargs)

    def send_many(self, calls: Iterable[ManyArguments], /) -> list[TaskHandle[R_co]]:
        """Send many calls in one transaction: all of them, or none.

        Each is a tuple of positional arguments, or a dict of named ones.
        """
        prepared = self._dispatch.prepare_many(self._form, calls)
        return cast("list[TaskHandle[R_co]]", self._dispatch.send_all(prepared))

    async def asend_many(self, calls: Iterable[ManyArguments], /) -> list[TaskHandle[R_co]]:
        """Send many calls in one transaction: all of them, or none."""
        prepared = self._dispatch.prepare_many(self._form, calls)
        return cast("list[TaskHandle[R_co]]", await self._dispatch.asend_all(prepared))

    def __step_form__(self) -> StepForm:
        definition = self._definition
        return TaskStepForm(
            self._form,
            self._dispatch,
            definition.name,
            step_name=definition.function.__name__,
            signature=definition.signature,
        )

    def __check_call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._form.check_call(args, kwargs, self._dispatch.access.config.max_payload)

    def __scheduled_call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ScheduledCall:
        from holdfast.core.schedules.definition import ScheduledCall

        choice = self._choice
        run_at = None if choice.due is None else choice.due.run_at
        for option, given, instead in (
            ("id", choice.id, "each tick sends a task of its own"),
            ("run_at", run_at, "give delay"),
            ("good_until", choice.good_until, "give good_for"),
        ):
            if given is not None:
                raise ConfigError(
                    f"{option} is not for a schedule (of task {self.name!r}): {instead}",
                    option=option,
                )
        limit = self._dispatch.access.config.max_payload
        return ScheduledCall.of(self._form.fill(args, kwargs, limit).submission)

    def __repr__(self) -> str:
        return f"<Task {self.name} version {self.version}>"


class TaskFunction(Task[P, R_co], Generic[P, R_co, C_co]):
    """A task that was made from a function, and can still be called as one.

    `C_co` is what the plain call returns: of an `async def`, a coroutine that gives an `R_co`.
    """

    def __init__(
        self, definition: TaskDefinition, dispatch: Dispatch, function: Callable[P, C_co]
    ) -> None:
        super().__init__(definition, dispatch)
        self._function = function
        update_wrapper(cast("Callable[P, C_co]", self), function)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> C_co:
        return self._function(*args, **kwargs)
