"""`@app.schedule(…)`, and the schedules that an app declares.

Owns their names, each of which is given once. What is declared here is brought into force by
workers; declaring writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, overload

from holdfast.client.call import Call
from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.workflows.stepable import Stepable

if TYPE_CHECKING:
    # Most programs that import an app declare no schedule, and need no cron.
    from holdfast.core.schedules.definition import (
        ScheduledCall,
        ScheduleDefinition,
        ScheduleOptions,
    )
    from holdfast.core.schedules.timing import When

__all__ = ["ScheduleDecorator"]


class Sendable(Protocol):
    """What can be sent without arguments."""

    def send(self) -> object: ...


N = TypeVar("N", bound=Sendable)


class ScheduleDecorator:
    """Declares schedules.

    @app.schedule("30 2 * * *", tz="Europe/Berlin")
    @app.task
    def rollup() -> int: ...

    app.schedule("0 3 * * *", load.call("us"), name="load-us", missed="all")
    """

    def __init__(self) -> None:
        self._declared: dict[str, Callable[[], ScheduleDefinition]] = {}

    @overload
    def __call__(
        self, when: When, /, *, name: str | None = None, **options: Unpack[ScheduleOptions]
    ) -> Callable[[N], N]: ...

    @overload
    def __call__(
        self, when: When, call: Call[Any], /, *, name: str, **options: Unpack[ScheduleOptions]
    ) -> None: ...

    def __call__(
        self,
        when: Any,
        call: Any = None,
        /,
        *,
        name: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Any:
        if call is None:
            return self._decorate(when, name, options)
        if not isinstance(call, Call):
            raise ConfigError(
                f"app.schedule({when!r:.100}, {call!r:.100}) is not usable: give task.call(…), or "
                "write @app.schedule(…) above @app.task",
                option="call",
            )
        if name is None:
            raise ConfigError(
                f"the schedule of {call!r} has no name: give name=…, by which it is found",
                option="name",
            )
        self._add(name, when, call.__scheduled__, options, at_once=True)
        return None

    def _decorate(
        self, when: When, name: str | None, options: ScheduleOptions
    ) -> Callable[[Any], Any]:
        def decorate(subject: Any) -> Any:
            if not isinstance(subject, Stepable):
                raise ConfigError(
                    f"@app.schedule is on {subject!r:.100}, which is no task: put it above "
                    "@app.task or @app.workflow",
                    option="name",
                )
            task: Any = subject
            self._add(
                task.name if name is None else name,
                when,
                lambda: _without_arguments(task),
                options,
                at_once=is_resolved(task),
            )
            return subject

        return decorate

    def _add(
        self,
        name: str,
        when: When,
        call: Callable[[], ScheduledCall],
        options: ScheduleOptions,
        *,
        at_once: bool,
    ) -> None:
        from holdfast.core.schedules.definition import ScheduledCall, define

        # Without the call, if a type that it needs is defined further below.
        checked = call() if at_once else ScheduledCall("t", 1, "q", 50, "[]", "{}", "")
        define(name, when, checked, options)
        if name in self._declared:
            raise ConfigError(
                f"two schedules are named {name!r}: give one of them another name", option="name"
            )
        self._declared[name] = lambda: define(name, when, call(), options)

    def definitions(self) -> Sequence[ScheduleDefinition]:
        """Every schedule that was declared; `ConfigError` if the call of one is not usable."""
        return [make() for make in self._declared.values()]


def is_resolved(task: Any) -> bool:
    """Whether the annotations of a task have a meaning yet; of one by name, there are none."""
    signature = task.__step_form__().signature
    return signature is None or bool(signature.resolved)


def _without_arguments(task: Any) -> ScheduledCall:
    try:
        return task.__scheduled_call__((), {})  # type: ignore[no-any-return]
    except PayloadError as error:
        called = task.__step_form__().step_name
        raise ConfigError(
            f"{error}: a schedule gives none. Write app.schedule(…, {called}.call(…), name=…), or "
            "give its parameters defaults",
            option="name",
        ) from error
