"""A task whose code is elsewhere, by its name: what `app.named(…)` gives.

Owns what can be said of it: it can be sent, called and be a step; its worker checks the arguments,
and knows its retries, time limits and other rules.
"""

from __future__ import annotations

from typing import Any, NoReturn, Unpack

from holdfast.client.handle import TaskHandle
from holdfast.client.sending.call import Form
from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.sending.send_options import PLAIN, CallOptions, SendOptions, choose, put_off
from holdfast.client.sending.task_step import TaskStepForm
from holdfast.client.task import Task
from holdfast.core.errors import ConfigError
from holdfast.core.moment import When
from holdfast.core.workflows.stepable import StepForm

__all__ = ["NamedTask"]


class NamedTask(Task[..., Any]):
    """A task that is known by its name and version only."""

    def __init__(
        self, name: str, version: int, dispatch: Dispatch, choice: SendOptions = PLAIN
    ) -> None:
        self._form = Form.named(name, version, choice)
        self._name, self._version = name, version
        self._dispatch = dispatch
        self._choice = choice

    @property
    def name(self) -> str:
        """The name it is stored under."""
        return self._name

    @property
    def version(self) -> int:
        """Its version; workers know a task by name and version."""
        return self._version

    @property
    def queue(self) -> str:
        """The queue it is sent to."""
        return self._choice.queue or "default"

    @property
    def priority(self) -> int:
        """Its priority, 1 (first) to 100 (last)."""
        return self._choice.priority or 50

    @property
    def definition(self) -> NoReturn:
        """There is none: the code is elsewhere."""
        raise self._elsewhere()

    @property
    def hooks(self) -> NoReturn:
        """There are none: the code is elsewhere."""
        raise self._elsewhere()

    def options(self, **options: Unpack[CallOptions]) -> NamedTask:
        """The same task with other options for its sends."""
        choice = choose(self._choice, **options)
        return NamedTask(self._name, self._version, self._dispatch, choice)

    def schedule(self, when: When, /, *args: Any, **kwargs: Any) -> TaskHandle[Any]:
        """Send one call to be run later: in seconds, after a timedelta, or at an aware datetime."""
        return self._dispatch.send(self._put_off(when), args, kwargs)

    async def aschedule(self, when: When, /, *args: Any, **kwargs: Any) -> TaskHandle[Any]:
        """Send one call to be run later: in seconds, after a timedelta, or at an aware datetime."""
        return await self._dispatch.asend(self._put_off(when), args, kwargs)

    def _put_off(self, when: When) -> Form:
        return Form.named(self._name, self._version, put_off(self._choice, when))

    def __step_form__(self) -> StepForm:
        return TaskStepForm(
            self._form,
            self._dispatch,
            self._name,
            step_name=self._name.rpartition(".")[2],
            signature=None,
        )

    def _elsewhere(self) -> ConfigError:
        return ConfigError(
            f"task {self._name!r} is known here by its name only: its definition is where its "
            "code is"
        )
