"""A workflow that was started, seen from outside.

Owns the public face of one whole: where it stands, its end, its steps, its chart. Every method
that may block has an async twin. A handle caches nothing but the id.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast, overload
from uuid import UUID

from holdfast.client import workflow_verbs
from holdfast.client.access import Access
from holdfast.client.awaited import Awaited
from holdfast.client.handle import Decode, TaskHandle, decoder_of_list
from holdfast.client.info import error_of
from holdfast.client.wait import Deadline, adoze, aended, doze, ended
from holdfast.client.workflow_info import WorkflowInfo
from holdfast.client.workflow_questions import (
    WorkflowWhy,
    all_steps,
    chart_of,
    explain,
    unattended,
)
from holdfast.client.workflow_steps import first_bad, step_named
from holdfast.client.workflow_verbs import aperform, one, perform
from holdfast.core.errors import (
    ConfigError,
    PayloadError,
    TaskCancelled,
    TaskFailed,
    TaskNotCompleted,
)
from holdfast.core.payload.codec import decoder, from_json, unsupported
from holdfast.core.result import TaskError, TaskResult
from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.inputs import Missing
from holdfast.core.workflows.records import StepRecord
from holdfast.core.workflows.step import Step, Steps
from holdfast.store.op import Steps as OpSteps
from holdfast.store.op import reads
from holdfast.store.verbs import step_results, workflows

__all__ = ["WORKFLOWS", "WorkflowHandle"]

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

WORKFLOWS: Final[Awaited[WorkflowStatus]] = Awaited(
    "workflow", workflows.endings, workflows.statuses, unattended
)
_LOOK: Final = 0.25
"""How often `follow` looks for changes that are not the end, in seconds."""
DecoderOf = Callable[[str], Decode | None]
"""How the results of a task of this name are read."""


class WorkflowHandle(Generic[R_co]):
    """One workflow that was started; `R` is what it returns.

    handle = nightly.send(day)
    handle.get(timeout=600)
    """

    __slots__ = ("_access", "_decode", "_decoder_of", "_id", "created")

    def __init__(
        self,
        access: Access,
        workflow_id: bytes,
        *,
        created: bool,
        decode: Decode | None,
        decoder_of: DecoderOf,
    ) -> None:
        self._access = access
        self._id = workflow_id
        self._decode = decode
        self._decoder_of = decoder_of
        self.created = created
        """False if the send met a workflow that existed."""

    @property
    def id(self) -> UUID:
        """The workflow's id."""
        return UUID(bytes=self._id)

    def status(self) -> WorkflowStatus:
        """Where the whole stands."""
        return self.info().status

    async def astatus(self) -> WorkflowStatus:
        """Where the whole stands."""
        return (await self.ainfo()).status

    def info(self) -> WorkflowInfo:
        """Everything that is stored about it, but its steps."""
        return WorkflowInfo.of(self._access.run(partial(one, self._id)))

    async def ainfo(self) -> WorkflowInfo:
        """Everything that is stored about it, but its steps."""
        return WorkflowInfo.of(await self._access.arun(partial(one, self._id)))

    def wait(self, timeout: float | None = None) -> WorkflowStatus:
        """Sleep until the whole has ended, and say how; `WaitTimeout` after `timeout` seconds."""
        ((_, status),) = ended(self._access, [self._id], timeout, WORKFLOWS)
        return status

    async def await_(self, timeout: float | None = None) -> WorkflowStatus:
        """Sleep until the whole has ended, and say how; `WaitTimeout` after `timeout` seconds."""
        news = aended(self._access, [self._id], timeout, WORKFLOWS)
        ((_, status),) = [each async for each in news]
        return status

    def get(self, timeout: float | None = None) -> R_co:
        """Wait for the value of the whole; raises `TaskFailed` or `TaskCancelled` without one."""
        self.wait(timeout)
        return cast("R_co", self._value(self._access.run_own(partial(_ending, self._id))))

    async def aget(self, timeout: float | None = None) -> R_co:
        """Wait for the value of the whole; raises `TaskFailed` or `TaskCancelled` without one."""
        await self.await_(timeout)
        return cast("R_co", self._value(await self._access.arun_own(partial(_ending, self._id))))

    def outcome(self, timeout: float | None = None) -> TaskResult[R_co, TaskError]:
        """Wait for the value or the first error; never raises for a failure of its steps."""
        try:
            return TaskResult(ok=self.get(timeout))
        except TaskNotCompleted as error:
            return TaskResult(err=error.error or TaskError("NO_VALUE", str(error)))

    async def aoutcome(self, timeout: float | None = None) -> TaskResult[R_co, TaskError]:
        """Wait for the value or the first error; never raises for a failure of its steps."""
        try:
            return TaskResult(ok=await self.aget(timeout))
        except TaskNotCompleted as error:
            return TaskResult(err=error.error or TaskError("NO_VALUE", str(error)))

    @overload
    def step(self, step: Step[T], /) -> TaskHandle[T]: ...
    @overload
    def step(self, step: str, /) -> TaskHandle[Any]: ...
    def step(self, step: Any, /) -> Any:
        """The handle of one step, by its name or by what `wf.step` gave; of one within the part
        that a step is, by both names: "nightly/load"."""
        return self._handle(self._access.run(partial(step_named, self._id, _named(step))))

    @overload
    async def astep(self, step: Step[T], /) -> TaskHandle[T]: ...
    @overload
    async def astep(self, step: str, /) -> TaskHandle[Any]: ...
    async def astep(self, step: Any, /) -> Any:
        """The handle of one step, by its name or by what `wf.step` gave; of one within the part
        that a step is, by both names: "nightly/load"."""
        return self._handle(await self._access.arun(partial(step_named, self._id, _named(step))))

    @overload
    def steps(self, /) -> list[TaskHandle[Any]]: ...
    @overload
    def steps(self, steps: Steps[T], /) -> list[TaskHandle[T]]: ...
    def steps(self, steps: Any = None, /) -> Any:
        """The handles of all steps, or of those of a map."""
        return self._handles(self._access.run(partial(all_steps, self._id)), steps)

    @overload
    async def asteps(self, /) -> list[TaskHandle[Any]]: ...
    @overload
    async def asteps(self, steps: Steps[T], /) -> list[TaskHandle[T]]: ...
    async def asteps(self, steps: Any = None, /) -> Any:
        """The handles of all steps, or of those of a map."""
        return self._handles(await self._access.arun(partial(all_steps, self._id)), steps)

    def cancel(self, *, cleanup: bool = True) -> WorkflowStatus:
        """Cancel what has not ended, running steps included; the status it has then.

        Steps that wait for an end (`.ended`, `wf.ended`) still run, unless `cleanup` is False.
        """
        return perform(self._access, workflow_verbs.cancel(self._id, cleanup=cleanup))

    async def acancel(self, *, cleanup: bool = True) -> WorkflowStatus:
        """Cancel what has not ended, running steps included; the status it has then."""
        return await aperform(self._access, workflow_verbs.cancel(self._id, cleanup=cleanup))

    def pause(self) -> WorkflowStatus:
        """Hold what has not begun, until `resume`; what runs goes on. The status it has then."""
        return perform(self._access, workflow_verbs.pause(self._id))

    async def apause(self) -> WorkflowStatus:
        """Hold what has not begun, until `resume`; what runs goes on. The status it has then."""
        return await aperform(self._access, workflow_verbs.pause(self._id))

    def resume(self) -> WorkflowStatus:
        """Undo a pause; a failure that had caused it is accepted. The status it has then."""
        return perform(self._access, workflow_verbs.resume(self._id))

    async def aresume(self) -> WorkflowStatus:
        """Undo a pause; a failure that had caused it is accepted. The status it has then."""
        return await aperform(self._access, workflow_verbs.resume(self._id))

    def resubmit(self, *, fresh: bool = False) -> WorkflowStatus:
        """Run every step again that ended badly, and what was skipped below it.

        Steps that have completed stay as they are, handlers among them. `fresh` drops checkpoints.
        """
        return perform(self._access, workflow_verbs.resubmit(self._id, fresh=fresh))

    async def aresubmit(self, *, fresh: bool = False) -> WorkflowStatus:
        """Run every step again that ended badly, and what was skipped below it."""
        return await aperform(self._access, workflow_verbs.resubmit(self._id, fresh=fresh))

    def why(self) -> WorkflowWhy:
        """What the whole waits for, or how it ended, in sentences."""
        return self._access.run(partial(explain, self._id))

    async def awhy(self) -> WorkflowWhy:
        """What the whole waits for, or how it ended, in sentences."""
        return await self._access.arun(partial(explain, self._id))

    def follow(self, timeout: float | None = None) -> Iterator[WorkflowInfo]:
        """The whole now and after every change that can be seen, until it has ended."""
        deadline, last = Deadline(timeout), None
        while True:
            info = self.info()
            if info != last:
                last = info
                yield info
            if info.status.is_terminal:
                return
            if deadline.has_passed:
                raise deadline.error(self._id, info.status, WORKFLOWS)
            doze(self._access, self._id, deadline.within(_LOOK), WORKFLOWS)

    async def afollow(self, timeout: float | None = None) -> AsyncIterator[WorkflowInfo]:
        """The whole now and after every change that can be seen, until it has ended."""

        deadline, last = Deadline(timeout), None
        while True:
            info = await self.ainfo()
            if info != last:
                last = info
                yield info
            if info.status.is_terminal:
                return
            if deadline.has_passed:
                raise deadline.error(self._id, info.status, WORKFLOWS)
            await adoze(self._access, self._id, deadline.within(_LOOK), WORKFLOWS)

    def to_mermaid(self) -> str:
        """The graph with the state of each step, as the text of a Mermaid flowchart."""
        return self._access.run(partial(chart_of, self._id))

    async def ato_mermaid(self) -> str:
        """The graph with the state of each step, as the text of a Mermaid flowchart."""
        return await self._access.arun(partial(chart_of, self._id))

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.aget().__await__()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WorkflowHandle):
            return NotImplemented
        return self._id == other._id and self._access is other._access

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<WorkflowHandle {self.id}>"

    def _value(self, ending: str | TaskNotCompleted) -> Any:
        if isinstance(ending, TaskNotCompleted):
            raise ending
        return (self._decode or from_json)(ending)

    def _handle(self, record: StepRecord) -> TaskHandle[Any]:
        decode = self._decoder_of(record.task_name)
        if record.hidden == "map" and decode is not None:
            decode = decoder_of_list(decode)
        return TaskHandle(self._access, record.id, created=False, decode=decode)

    def _handles(self, found: list[StepRecord], steps: Any) -> list[TaskHandle[Any]]:
        if isinstance(steps, Steps):
            own = {step.number: step for step in found if step.scope_id == self._id}
            if steps.is_known:
                return [self._handle(own[number]) for number in steps.indexes()]
            (whole,) = steps.indexes()
            found = [step for step in found if step.scope_id == own[whole].id]
        return [self._handle(step) for step in found]


def decoder_of_kind(kind: Any) -> Decode | None:
    """Reads values of a type that a workflow returns."""
    return None if kind is Any or unsupported(kind) else decoder(kind)


def _named(step: Any) -> str:
    if isinstance(step, Step):
        return step.name
    if isinstance(step, str):
        return step
    raise ConfigError(f"{step!r:.100} is no step: give its name, or what wf.step(…) gave")


@reads
def _ending(workflow_id: bytes) -> OpSteps[str | TaskNotCompleted]:
    """The value of a whole that has ended, or what is raised instead."""
    whole = yield from one(workflow_id)
    if whole.status is WorkflowStatus.COMPLETED:
        try:
            return (yield from step_results.result(workflow_id))
        except Missing as missing:
            raise PayloadError(
                f"the value of workflow {UUID(bytes=workflow_id)} is gone: {missing}"
            ) from None
    kind = TaskFailed if whole.status is WorkflowStatus.FAILED else TaskCancelled
    found = yield from first_bad(workflow_id)
    if found is None:
        return kind(workflow_id, name=whole.name, noun="workflow")
    step, bad = found
    return kind(workflow_id, error_of(bad.result), name=whole.name, noun="workflow", step=step)
