"""The function that builds a workflow, as its users hold it.

Owns `WorkflowFunction`. It is a task too, whose code builds and hands over: that is how it can be
a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, cast

from holdfast.client.call import Call
from holdfast.client.registry import is_builder
from holdfast.client.sending.call import Form
from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.sending.send_options import PLAIN
from holdfast.client.sending.task_step import TaskStepForm
from holdfast.client.workflow import (
    Workflow,
    WorkflowChoice,
    WorkflowOptions,
    around,
    astart_prepared,
    built,
    choose,
    start_prepared,
)
from holdfast.client.workflow_handle import WorkflowHandle
from holdfast.core.errors import ConfigError, UnknownTask
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.payload.codec import encode_arguments
from holdfast.core.workflows.stepable import Stepable, StepForm

if TYPE_CHECKING:
    from holdfast.core.schedules.definition import ScheduledCall

__all__ = ["WorkflowFunction", "workflow_named"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class WorkflowFunction(Stepable[P, R_co]):
    """A function that builds a workflow; `send` builds one and starts it."""

    def __init__(
        self,
        definition: TaskDefinition,
        builder: Callable[Concatenate[Workflow, P], R_co],
        dispatch: Dispatch,
        choice: WorkflowChoice,
    ) -> None:
        self._definition = definition
        self._builder = builder
        self._dispatch = dispatch
        self._choice = choice
        update_wrapper(cast("Callable[P, R_co]", self), builder)

    @property
    def name(self) -> str:
        """The name it is stored under."""
        return self._definition.name

    @property
    def version(self) -> int:
        """Its version."""
        return self._definition.version

    def options(self, **options: Unpack[WorkflowOptions]) -> WorkflowFunction[P, R_co]:
        """The same workflow with other options: id, run_at, unique, deadline, tags."""
        choice = choose(self._choice, options)
        return WorkflowFunction(self._definition, self._builder, self._dispatch, choice)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> WorkflowHandle[R_co]:
        """Build the graph and start it. When this returns, the whole is durable."""
        return self._start(self.build(*args, **kwargs))

    def _start(self, wf: Workflow) -> WorkflowHandle[R_co]:
        return start_prepared(self._dispatch, wf._prepared(self._choice))

    async def asend(self, *args: P.args, **kwargs: P.kwargs) -> WorkflowHandle[R_co]:
        """Build the graph and start it. When this returns, the whole is durable."""
        return await self._astart(self.build(*args, **kwargs))

    async def _astart(self, wf: Workflow) -> WorkflowHandle[R_co]:
        return await astart_prepared(self._dispatch, wf._prepared(self._choice))

    def send_plain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> WorkflowHandle[R_co]:
        """The same with arguments as JSON has them: each becomes what its annotation says."""
        return self._start(self._build_plain(args, kwargs))

    async def asend_plain(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> WorkflowHandle[R_co]:
        """The same with arguments as JSON has them; the graph is built in a thread."""
        import asyncio

        return await self._astart(await asyncio.to_thread(self._build_plain, args, kwargs))

    def call_plain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call[R_co]:
        """A call that is not sent, with arguments as JSON has them."""
        given, named = self._read_plain(args, kwargs)
        return Call(self, given, named)

    def _build_plain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Workflow:
        given, named = self._read_plain(args, kwargs)
        return built(self._definition, self._builder, self._choice, given, named, self._limit)

    def _read_plain(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        texts = encode_arguments(args, kwargs, self._limit)[:2]
        return self._definition.signature.decode(*texts)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]:
        """A call that is not sent, for `then`, `group` and schedules."""
        return Call(self, args, kwargs)

    def build(self, *args: P.args, **kwargs: P.kwargs) -> Workflow:
        """Build the graph without starting it: to look at it, or to test it."""
        return built(self._definition, self._builder, self._choice, args, kwargs, self._limit)

    def __step_form__(self) -> StepForm:
        if self._choice.unique is not None or self._choice.id is not None:
            raise ConfigError(
                f"workflow {self.name!r} has an id or is unique, and a sub-workflow is neither: "
                "give them to the whole",
                option="id",
            )
        return TaskStepForm(
            Form.of(self._definition, PLAIN),
            self._dispatch,
            self.name,
            step_name=self._builder.__name__,
            signature=self._definition.signature,
            hidden="workflow",
        )

    def __check_call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        Form.of(self._definition, PLAIN).check_call(args, kwargs, self._limit)

    def __scheduled_call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ScheduledCall:
        """A whole with one step, which builds the graph when its tick has come."""
        from holdfast.core.schedules.definition import ScheduledCall, ScheduledWorkflow

        for option, given in (("id", self._choice.id), ("run_at", self._choice.run_at)):
            if given is not None:
                raise ConfigError(
                    f"{option} is not for a schedule (of workflow {self.name!r}): each tick starts "
                    "a workflow of its own",
                    option=option,
                )
        plain = replace(self._choice, unique=None, deadline_us=None)
        plan = around(
            WorkflowFunction(self._definition, self._builder, self._dispatch, plain),
            self._choice,
            args,
            kwargs,
        )
        step = plan.steps[0]
        return ScheduledCall.of(
            step.task,
            ScheduledWorkflow(
                step.name,
                plan.on_failure,
                plan.deadline_us,
                plan.unique_key,
                plan.on_conflict,
                plan.tags,
                plan.arguments,
                plan.returns,
                plan.digest,
            ),
        )

    @property
    def _limit(self) -> int:
        return self._dispatch.access.config.max_payload

    def __repr__(self) -> str:
        return f"<WorkflowFunction {self.name} version {self.version}>"


def workflow_named(
    dispatch: Dispatch, name: str, version: int | None = None
) -> WorkflowFunction[..., Any]:
    """The workflow of this name whose code is here; None: its newest version."""
    known = {task.name for task in dispatch.registry if is_builder(task)}
    found = dispatch.registry.find(name, version)
    if found is None or not is_builder(found):
        raise UnknownTask(name, version, known=known, kind="workflow")
    made: WorkflowFunction[..., Any] = found.function.__dict__["workflow"]
    return WorkflowFunction(found, made._builder, dispatch, made._choice)
