"""Calls that were not sent, and what can be put together of them: `then`, `chain`, `group`.

Owns the short way to a workflow: a plan is a line of calls, each of which takes the value of the
one before it. Nothing is stored until it is sent; then it is a workflow like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from holdfast.client.workflow import Workflow, WorkflowOptions
from holdfast.client.workflow_handle import WorkflowHandle
from holdfast.core.errors import ConfigError
from holdfast.core.workflows.step import Step
from holdfast.core.workflows.stepable import Stepable

if TYPE_CHECKING:
    from holdfast.core.schedules.definition import ScheduledCall

__all__ = ["Call", "CallPlan", "Takes", "chain", "group"]

Q = ParamSpec("Q")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")
R = TypeVar("R")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)
A_contra = TypeVar("A_contra", contravariant=True)


class _Link(NamedTuple):
    """One call of a plan, or a group of plans at its beginning."""

    task: Stepable[..., Any] | None = None
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}
    takes_value: bool = False
    """Whether the value of what stands before comes first among its arguments."""
    plans: Sequence[CallPlan[Any]] = ()


class _Laid(NamedTuple):
    """What has become steps: which were the last, and what they give."""

    last: list[Step[Any]]
    value: Any


class CallPlan(Generic[R_co]):
    """Calls put together and not sent: what `then`, `chain` and `group` make."""

    __slots__ = ("_before", "_link")

    def __init__(self, link: _Link, before: CallPlan[Any] | None = None) -> None:
        self._link = link
        self._before = before

    @overload
    def then(self, call: Call[S], /) -> CallPlan[S]: ...
    @overload
    def then(
        self, task: Stepable[Concatenate[R_co, Q], S], /, *args: Q.args, **kwargs: Q.kwargs
    ) -> CallPlan[S]: ...
    def then(self, task: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The same, and then this task, whose first argument is the value so far.

        A complete call, `notify.call("done")`, ignores the value.
        """
        if isinstance(task, Call):
            if args or kwargs:
                raise ConfigError(
                    f"then({task!r}, …) has arguments beside those of the call: give the task and "
                    "its arguments, or the complete call"
                )
            return CallPlan(task._link, self)
        if not isinstance(task, Stepable):
            raise ConfigError(
                f"then({task!r:.100}) is not usable: give a task, a workflow, or a call of one"
            )
        return CallPlan(_Link(task, args, kwargs, takes_value=True), self)

    def send(self, **options: Unpack[WorkflowOptions]) -> WorkflowHandle[R_co]:
        """Start it as a workflow. When this returns, the whole is durable."""
        wf, value = self._laid()
        return cast("WorkflowHandle[R_co]", wf.send(returns=value, **options))

    async def asend(self, **options: Unpack[WorkflowOptions]) -> WorkflowHandle[R_co]:
        """Start it as a workflow. When this returns, the whole is durable."""
        wf, value = self._laid()
        return cast("WorkflowHandle[R_co]", await wf.asend(returns=value, **options))

    def build(self) -> Workflow:
        """The workflow that `send` would start, to look at it or to test it."""
        return self._laid()[0]

    def to_mermaid(self) -> str:
        """The graph as the text of a Mermaid flowchart."""
        return self.build().to_mermaid()

    def _laid(self) -> tuple[Workflow, Any]:
        task = self._link.task
        wf = Workflow("group" if task is None else task.__step_form__().task_name)
        return wf, self._lay(wf).value

    def _lay(self, wf: Workflow) -> _Laid:
        """Add its steps to a workflow."""
        line: list[_Link] = []
        plan: CallPlan[Any] | None = self
        while plan is not None:
            line.append(plan._link)
            plan = plan._before
        laid = _Laid([], None)
        for link in reversed(line):
            laid = _add(wf, link, laid)
        return laid

    def __repr__(self) -> str:
        return f"<CallPlan {self.build()!r}>"


class Call(CallPlan[R_co]):
    """One call of one task, complete and not sent.

    add.call(1, 2).then(double).send()
    """

    __slots__ = ()

    def __init__(
        self, task: Stepable[..., R_co], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        super().__init__(_Link(task, args, kwargs))
        # Now, so that whatever is wrong with the arguments is said where they stand. Which options
        # it may have depends on what becomes of it: a step, or what a schedule sends.
        task.__check_call__(args, kwargs)

    def __scheduled__(self) -> ScheduledCall:
        """As each tick of a schedule sends it; for Holdfast's own use."""
        return self.task.__scheduled_call__(self._link.args, self._link.kwargs)

    @property
    def task(self) -> Stepable[..., R_co]:
        """The task or the workflow that it calls."""
        return cast("Stepable[..., R_co]", self._link.task)

    def __repr__(self) -> str:
        return f"<Call {self.task.name}>"


def _add(wf: Workflow, link: _Link, before: _Laid) -> _Laid:
    if link.task is None:
        parts = [plan._lay(wf) for plan in link.plans]
        last = [step for part in parts for step in part.last]
        return _Laid(last, [part.value for part in parts])
    if link.takes_value:
        step = wf.step(link.task, before.value, *link.args, **link.kwargs)
    elif before.last:
        step = wf.options(after=before.last).step(link.task, *link.args, **link.kwargs)
    else:
        step = wf.step(link.task, *link.args, **link.kwargs)
    return _Laid([step], step.result)


class Takes(Protocol[A_contra, R_co]):
    """A task or workflow that can be called with one argument: the value of the one before it."""

    def call(self, value: A_contra, /) -> Call[R_co]: ...


@overload
def chain(first: CallPlan[A], /) -> CallPlan[A]: ...
@overload
def chain(first: CallPlan[A], a: Takes[A, B], /) -> CallPlan[B]: ...
@overload
def chain(first: CallPlan[A], a: Takes[A, B], b: Takes[B, C], /) -> CallPlan[C]: ...
@overload
def chain(first: CallPlan[A], a: Takes[A, B], b: Takes[B, C], c: Takes[C, D], /) -> CallPlan[D]: ...
@overload
def chain(
    first: CallPlan[A], a: Takes[A, B], b: Takes[B, C], c: Takes[C, D], d: Takes[D, E], /
) -> CallPlan[E]: ...
@overload
def chain(
    first: CallPlan[A],
    a: Takes[A, B],
    b: Takes[B, C],
    c: Takes[C, D],
    d: Takes[D, E],
    e: Takes[E, F],
    /,
) -> CallPlan[F]: ...
@overload
def chain(
    first: CallPlan[A],
    a: Takes[A, B],
    b: Takes[B, C],
    c: Takes[C, D],
    d: Takes[D, E],
    e: Takes[E, F],
    f: Takes[F, G],
    /,
) -> CallPlan[G]: ...
@overload
def chain(
    first: CallPlan[A],
    a: Takes[A, B],
    b: Takes[B, C],
    c: Takes[C, D],
    d: Takes[D, E],
    e: Takes[E, F],
    f: Takes[F, G],
    g: Takes[G, H],
    /,
) -> CallPlan[H]: ...


def chain(first: Any, /, *tasks: Any) -> Any:
    """One after the other, each with the value of the one before it: the same as `then`.

    chain(add.call(1, 2), double, show).send()
    """
    if not isinstance(first, CallPlan):
        raise ConfigError(
            f"chain({first!r:.100}, …) does not begin with a call: write chain(task.call(…), …)"
        )
    plan = first
    for task in tasks:
        plan = plan.then(task)
    return plan


def group(plans: Iterable[CallPlan[R]], /) -> CallPlan[list[R]]:
    """All of these side by side; its value is the list of theirs, in their order.

    group(add.call(i, i) for i in range(9)).then(total).send()
    """
    if isinstance(plans, CallPlan) or not isinstance(plans, Iterable):
        raise ConfigError(f"group({plans!r:.100}) is not usable: give a list of calls")
    given: list[Any] = list(plans)
    odd = next((plan for plan in given if not isinstance(plan, CallPlan)), None)
    if odd is not None:
        raise ConfigError(f"group takes calls, not {odd!r:.100}: write task.call(…)")
    return CallPlan(_Link(plans=given))
