"""A workflow as its users hold it: a graph to be sent, and what is said of the whole.

Owns `Workflow` and its options. The graph itself is put together in `core.workflows`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import (
    Any,
    Final,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    overload,
)
from uuid import UUID

from msgspec.structs import replace as replace_step

from holdfast.client.handle import Decode
from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.sending.start import astart, digest_of, start
from holdfast.client.workflow_handle import WorkflowHandle, decoder_of_kind
from holdfast.core.errors import ConfigError, HoldfastError
from holdfast.core.identity import as_bytes, current, new_id
from holdfast.core.moment import Span, instant_us
from holdfast.core.options import checks
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.options.unique import Unique, slot
from holdfast.core.payload.codec import Raw, encode_arguments, to_json
from holdfast.core.records import SubmitAnswer, Submitted
from holdfast.core.workflows.builder import MOST_STEPS, StepBuilder
from holdfast.core.workflows.mermaid import chart_of_plan
from holdfast.core.workflows.placeholder import reference_of
from holdfast.core.workflows.plan import AddedPlan, OnFailure, SubWorkflow, WorkflowPlan
from holdfast.core.workflows.step import Step, Steps
from holdfast.core.workflows.stepable import Stepable

__all__ = ["Workflow", "WorkflowChoice", "WorkflowOptions"]

T = TypeVar("T")

_POLICIES: Final[tuple[OnFailure, ...]] = get_args(OnFailure)
_CONFLICTS: Final = ("return", "raise")


class WorkflowOptions(TypedDict, total=False):
    """The keywords of `nightly.options(…)`, and of `wf.send(…)`."""

    id: UUID | str
    """The id of the whole: sending it again under the same id is one workflow, not two."""
    run_at: datetime
    """Not before this moment, which has a time zone."""
    unique: Unique | None
    """At most one live workflow per key."""
    deadline: Span | None
    """How long the whole may take; then what is left of it is cancelled."""
    tags: Iterable[str]
    """Words to find it by."""


@dataclass(frozen=True, slots=True)
class WorkflowChoice:
    """What is said of one workflow, checked. None: as its definition says."""

    on_failure: OnFailure = "continue"
    deadline_us: int | None = None
    version: int = 1
    tags: tuple[str, ...] = ()
    unique: Unique | None = None
    max_steps: int = MOST_STEPS
    id: bytes | None = None
    run_at: int | None = None


def choose(base: WorkflowChoice, options: WorkflowOptions) -> WorkflowChoice:
    """`base`, with these options changed."""
    unknown = options.keys() - WorkflowOptions.__annotations__
    if unknown:
        names = ", ".join(sorted(WorkflowOptions.__annotations__))
        raise ConfigError(
            f"{min(unknown)!r} is not an option of a workflow: use {names}", option=min(unknown)
        )
    chosen: dict[str, Any] = {}
    if "id" in options:
        chosen["id"] = as_bytes(options["id"])
    if "run_at" in options:
        chosen["run_at"] = instant_us(options["run_at"], option="run_at")
    if "unique" in options:
        chosen["unique"] = unique_of(options["unique"])
    if "deadline" in options:
        chosen["deadline_us"] = deadline_of(options["deadline"])
    if "tags" in options:
        chosen["tags"] = checks.tags(options["tags"])
    return replace(base, **chosen)


def deadline_of(deadline: Span | None) -> int | None:
    """A deadline in microseconds."""
    return None if deadline is None else checks.positive_us(deadline, "deadline")


def unique_of(unique: object) -> Unique | None:
    """What a workflow can keep of `Unique`."""
    if unique is None:
        return None
    if not isinstance(unique, Unique):
        raise ConfigError(f"unique={unique!r:.100} is not usable: give Unique(…)", option="unique")
    if unique.period is not None or unique.until != "ended" or unique.on_conflict not in _CONFLICTS:
        raise ConfigError(
            f"{unique!r} is not for a workflow: it holds its key until the whole has ended, and "
            'a send that meets it can "return" it or "raise"; for one in each period give '
            "an id made of the period",
            option="unique",
        )
    return unique


class Workflow(StepBuilder):
    """A graph of steps.

    wf = Workflow("adhoc", on_failure="pause")
    raw = wf.step(extract, day)
    wf.step(load, raw.result)
    """

    def __init__(
        self,
        name: str,
        *,
        on_failure: OnFailure = "continue",
        deadline: Span | None = None,
        version: int = 1,
        tags: Iterable[str] = (),
        max_steps: int = MOST_STEPS,
    ) -> None:
        super().__init__(name, max_steps=max_steps)
        self._choice = WorkflowChoice(
            on_failure=checks.choice(on_failure, _POLICIES, "on_failure"),
            deadline_us=deadline_of(deadline),
            version=checks.at_least(1, version, "version"),
            tags=checks.tags(tags),
            max_steps=max_steps,
        )
        self._promised: Any = Any
        self._value: Any = None
        self._arguments: tuple[str, str] | None = None
        self._unanswered: WorkflowPlan | None = None
        """What was sent last, if nobody knows whether it arrived."""
        self._is_sent = False

    @overload
    def send(self, **options: Unpack[WorkflowOptions]) -> WorkflowHandle[None]: ...
    @overload
    def send(
        self, *, returns: Step[T], **options: Unpack[WorkflowOptions]
    ) -> WorkflowHandle[T]: ...
    @overload
    def send(self, *, returns: T, **options: Unpack[WorkflowOptions]) -> WorkflowHandle[T]: ...
    def send(self, *, returns: Any = None, **options: Unpack[WorkflowOptions]) -> Any:
        """Start it. When this returns, the whole is durable.

        Sending it again starts another one, unless it has an `id`. Again after an error that left
        open whether it had arrived: then it is the same one.
        """
        prepared = self._prepared(choose(self._choice, options), returns)
        return self._started(start_prepared(self._app(), prepared))

    @overload
    async def asend(self, **options: Unpack[WorkflowOptions]) -> WorkflowHandle[None]: ...
    @overload
    async def asend(
        self, *, returns: Step[T], **options: Unpack[WorkflowOptions]
    ) -> WorkflowHandle[T]: ...
    @overload
    async def asend(
        self, *, returns: T, **options: Unpack[WorkflowOptions]
    ) -> WorkflowHandle[T]: ...
    async def asend(self, *, returns: Any = None, **options: Unpack[WorkflowOptions]) -> Any:
        """Start it. When this returns, the whole is durable."""
        prepared = self._prepared(choose(self._choice, options), returns)
        return self._started(await astart_prepared(self._app(), prepared))

    def _started(self, handle: WorkflowHandle[Any]) -> WorkflowHandle[Any]:
        self._unanswered, self._is_sent = None, True
        return handle

    def _prepared(self, choice: WorkflowChoice, returns: Any = None) -> PreparedWorkflow:
        """Ready to be sent, with what is said when it is sent."""
        if returns is not None:
            self._value = returns.result if isinstance(returns, Step | Steps) else returns
            reference = reference_of(self._value)
            self._promised = Any if reference is None else reference.value
        plan = self._plan(choice)
        last = self._unanswered
        if last is not None and choice.id is None and last.digest == plan.digest:
            plan = last
        elif self._is_sent:
            # The steps of the one before keep their ids.
            steps = tuple(replace_step(s, task=s.task._replace(id=new_id())) for s in plan.steps)
            plan = replace_step(plan, steps=steps)
        self._unanswered = plan
        return PreparedWorkflow(plan, self._promised, choice.id is not None)

    def _app(self) -> Dispatch:
        if not isinstance(self._home, Dispatch):
            raise ConfigError(
                f"the workflow {self.name!r} has no steps: add some before it is sent"
            )
        return self._home

    def _plan(self, choice: WorkflowChoice) -> WorkflowPlan:
        limit = self._app().access.config.max_payload
        returns = self.returns(self._value, self._promised, limit=limit)
        steps = self.plan()
        tags = to_json(choice.tags) if choice.tags else None
        unique = choice.unique
        held = None
        if unique is not None:
            args, kwargs = self._arguments or ("[]", "{}")
            held = slot(f"workflow:{self.name}", args, kwargs, unique.key)
        lineage = current()
        return WorkflowPlan(
            id=choice.id or new_id(),
            name=self.name,
            steps=steps,
            version=choice.version,
            on_failure=choice.on_failure,
            deadline_us=choice.deadline_us,
            run_at=choice.run_at,
            unique_key=held,
            on_conflict="return" if unique is None or unique.on_conflict == "return" else "raise",
            tags=tags,
            arguments=self._told(),
            digest=digest_of(
                steps,
                self.name,
                choice.version,
                choice.on_failure,
                choice.deadline_us,
                choice.run_at,
                held,
                tags,
                returns,
            ),
            returns=returns,
            sent_at=time.time_ns() // 1_000,
            parent_id=None if lineage is None else lineage.task_id,
            root_id=None if lineage is None else lineage.root_id,
            trace_context=None if lineage is None else lineage.trace_context,
        )

    def _told(self) -> str | None:
        """Its arguments, for people to read."""
        if self._arguments is None:
            return None
        args, kwargs = self._arguments
        return to_json({"args": Raw(args.encode()), "kwargs": Raw(kwargs.encode())})

    def as_part(self, limit: int, *, is_whole: bool = False) -> AddedPlan:
        part = None if is_whole else sub_workflow(self, self._told())
        return self.added(self._value, self._promised, limit=limit, workflow=part)

    def to_mermaid(self) -> str:
        """The graph as the text of a Mermaid flowchart."""
        return chart_of_plan(self.plan())

    def __repr__(self) -> str:
        return f"<Workflow {self.name}: {len(self.steps)} steps>"


@dataclass(frozen=True, slots=True)
class PreparedWorkflow:
    """A workflow ready to be sent; `error.call` of a send that failed."""

    plan: WorkflowPlan
    promised: Any
    """The type of its value."""
    has_id: bool
    """Whether its sender chose its id."""

    def handle(self, dispatch: Dispatch, answer: Submitted) -> WorkflowHandle[Any]:
        """The handle of what there is now."""
        again = answer.answer is not SubmitAnswer.CREATED
        lost = again and answer.id == self.plan.id and not self.has_id
        decode = decoder_of_kind(self.promised)
        return workflow_handle(dispatch, answer.id, created=not again or lost, decode=decode)


def start_prepared(dispatch: Dispatch, sent: PreparedWorkflow) -> WorkflowHandle[Any]:
    """Start it; also one of which nobody knows whether it was started."""
    try:
        return sent.handle(dispatch, start(dispatch.access, sent.plan, dispatch.tracing))
    except HoldfastError as error:
        error.call = sent
        raise


async def astart_prepared(dispatch: Dispatch, sent: PreparedWorkflow) -> WorkflowHandle[Any]:
    """Start it; also one of which nobody knows whether it was started."""
    try:
        return sent.handle(dispatch, await astart(dispatch.access, sent.plan, dispatch.tracing))
    except HoldfastError as error:
        error.call = sent
        raise


def built(
    definition: TaskDefinition,
    builder: Callable[..., Any],
    choice: WorkflowChoice,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    limit: int,
) -> Workflow:
    """A graph as its function builds it, which keeps what it promises to return."""
    signature = definition.signature
    encoded = encode_arguments(args, kwargs, limit)
    signature.check(*encoded[:2])
    wf = Workflow(definition.name, max_steps=choice.max_steps)
    wf._choice = choice
    wf._arguments = encoded[:2]
    wf._value = builder(wf, *args, **kwargs)
    wf._promised = signature.result_kind
    wf.returns(wf._value, wf._promised, limit=limit)
    return wf


def around(
    task: Stepable[..., Any],
    choice: WorkflowChoice,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> WorkflowPlan:
    """A whole with one step, which is a workflow itself, and whose value is that of the whole."""
    form = task.__step_form__()
    wf = Workflow(form.task_name)
    wf._choice = choice
    step = wf.step(task, *args, **kwargs)
    wf._arguments = encode_arguments(args, kwargs, wf._app().access.config.max_payload)[:2]
    wf._value, wf._promised = step.result, form.result_kind
    return wf._plan(choice)


def workflow_handle(
    dispatch: Dispatch, workflow_id: bytes, *, created: bool, decode: Decode | None
) -> WorkflowHandle[Any]:
    """The handle of a workflow of this app."""

    def decoder_of(task_name: str) -> Decode | None:
        known = dispatch.registry.find(task_name)
        return None if known is None else known.signature.decode_result

    return WorkflowHandle(
        dispatch.access, workflow_id, created=created, decode=decode, decoder_of=decoder_of
    )


def sub_workflow(wf: Workflow, arguments: str | None) -> SubWorkflow:
    """What is said of a workflow that a step hands over to."""
    choice = wf._choice
    return SubWorkflow(
        name=wf.name,
        version=choice.version,
        on_failure=choice.on_failure,
        deadline_us=choice.deadline_us,
        tags=to_json(choice.tags) if choice.tags else None,
        arguments=arguments,
    )
