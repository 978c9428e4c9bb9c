"""One run of one task's code, from stored arguments to an outcome.

Owns what every kind of child has in common: decoding, calling, encoding, and the naming of
what happened. Whatever the code does (returns what cannot be stored, calls `sys.exit`, raises
something whose `str` raises) comes out as an `Outcome`; only `EndRun` passes through, which is
our own way of ending code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from holdfast.core.decide import decide
from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import PayloadError
from holdfast.core.hooks import Hook, TaskEvent, hooks_after
from holdfast.core.identity import running
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import (
    LOST_LEASE,
    AbortAsked,
    Failed,
    Reported,
    RetryAsked,
    Returned,
    SnoozeAsked,
    Why,
    ended_because,
)
from holdfast.core.payload.failure import (
    as_plain,
    describe,
    encode_error,
    unstorable,
    users_own,
    without_secrets,
)
from holdfast.core.result import TaskError, TaskResult
from holdfast.core.signals import Abort, RetryLater, Snooze
from holdfast.core.tracing import RunFacts, Tracing
from holdfast.core.workflows.builder import StepBuilder
from holdfast.runtime.child import hooks, step_run
from holdfast.runtime.child.context import EndRun, TaskContext
from holdfast.runtime.child.hooks import HookCall
from holdfast.runtime.wire.messages import Job, RunReport

CallHooks: TypeAlias = Callable[[Iterable[HookCall]], None]

UNKNOWN: Final = float("inf")
"""The mean of a task that has not run here yet: it may be long."""


@dataclass(slots=True, eq=False)
class TaskPlan:
    """All that running one task needs, prepared once for each child."""

    definition: TaskDefinition
    limit: int
    """The largest result, in bytes."""
    hooks: Mapping[str, Sequence[Hook]] | None
    tracing: Tracing | None = None
    """Who watches its runs, if somebody does."""
    is_captured: bool = field(init=False)
    mean_ns: float = UNKNOWN
    """How long its runs take here."""

    def __post_init__(self) -> None:
        self.is_captured = self.definition.policy.capture_output

    def learn(self, run_ns: int) -> None:
        """One run took so long."""
        mean = self.mean_ns
        self.mean_ns = run_ns if mean is UNKNOWN else mean + (run_ns - mean) / 8


class TaskRun:
    """One run: `perform` or `aperform` gives it its outcome, and calls the hooks around it."""

    __slots__ = ("context", "exception", "job", "outcome", "plan", "value")

    def __init__(self, plan: TaskPlan, job: Job, context: TaskContext) -> None:
        self.plan = plan
        self.job = job
        self.context = context
        self.outcome: Reported
        self.value: Any = None
        """What the code returned, for hooks."""
        self.exception: BaseException | None = None
        """What the code raised, for hooks."""

    def perform(self, call: CallHooks) -> None:
        """Run the code of a task that is a plain function or a generator, in a fresh context."""
        running.set(self.context)
        tracing = self.plan.tracing
        if tracing is None:
            self._perform(call)
            return
        with tracing.process(_facts(self.job)) as span:
            self._perform(call)
            span.ended(*_ending(self.outcome))

    def _perform(self, call: CallHooks) -> None:
        plan, job = self.plan, self.job
        definition = plan.definition
        args: Sequence[Any] = ()
        kwargs: Mapping[str, Any] = {}
        try:
            if job.inputs is not None and not self._take(
                step_run.arguments(self.context.store, job)
            ):
                return
            args, kwargs = definition.signature.decode(self.job.args, self.job.kwargs)
        except PayloadError as error:
            self._misfit(error)
        except EndRun:
            raise
        except BaseException as error:  # noqa: BLE001 - a type of the author's may raise anything
            self.raised(error)
        else:
            if plan.hooks is not None:
                call(self._before(args, kwargs))
            try:
                value = definition.function(*args, **kwargs)
                if definition.signature.streams:
                    value = self._drain(value)
            except EndRun:
                raise
            except BaseException as error:  # noqa: BLE001 - the code may raise anything
                self.raised(error)
            else:
                self._returned(value)
        if plan.hooks is not None:
            self.after(call, args, kwargs)

    async def aperform(self) -> None:
        """Run the code of an `async def` task, in a fresh context and inside the event loop."""
        running.set(self.context)
        tracing = self.plan.tracing
        if tracing is None:
            await self._aperform()
            return
        with tracing.process(_facts(self.job)) as span:
            await self._aperform()
            span.ended(*_ending(self.outcome))

    async def _aperform(self) -> None:
        plan, job = self.plan, self.job
        args: Sequence[Any] = ()
        kwargs: Mapping[str, Any] = {}
        try:
            if job.inputs is not None:
                import asyncio

                asked = asyncio.to_thread(step_run.arguments, self.context.store, job)
                if not self._take(await asked):
                    return
            args, kwargs = plan.definition.signature.decode(self.job.args, self.job.kwargs)
        except PayloadError as error:
            self._misfit(error)
        except BaseException as error:  # noqa: BLE001 - a type of the author's may raise anything
            self.raised(error)
        else:
            await self._acall(args, kwargs)
        self.code_ended()
        if plan.hooks is not None:
            await hooks.acall(self._after(args, kwargs))

    async def _acall(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        definition = self.plan.definition
        value: Any = None
        try:
            if self.plan.hooks is not None:
                await hooks.acall(self._before(args, kwargs))
            if definition.signature.streams:
                async for line in definition.function(*args, **kwargs):
                    self.context.put_out(line)
            else:
                value = await definition.function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - the code may raise anything
            if not self.was_ended(error):
                self.raised(error)
        else:
            self._returned(value)

    def _take(self, given: tuple[str, str] | Reported) -> bool:
        """Take the arguments that other steps gave; False if that is the outcome already."""
        if isinstance(given, tuple):
            plan, (args, kwargs) = self.plan, given
            if len(args) + len(kwargs) > plan.limit:
                given = step_run.too_large(len(args) + len(kwargs), plan.limit)
            else:
                self.job = msgspec.structs.replace(self.job, args=args, kwargs=kwargs)
                added = step_run.mapped(self.job, plan.definition)
                if added is None:
                    return True
                given = added
        self.outcome = given
        return False

    def was_ended(self, error: BaseException) -> bool:
        """Whether a coroutine raised this because somebody else ended it; then it is the outcome.

        For a child that ends coroutines to override, like the next one.
        """
        return False

    def code_ended(self) -> None:
        """The coroutine's code has ended; its hooks come next."""

    def after(
        self, call: CallHooks, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}
    ) -> None:
        """Call the hooks after the code."""
        call(self._after(args, kwargs))

    def ended(self, why: Why, stack: str | None = None) -> None:
        """The worker has ended the code; `stack` is where it was then."""
        self.outcome = ended_because(why, Policy.decode(self.job.task_options), stack)
        self.value = self.exception = None

    def raised(self, error: BaseException) -> None:
        """The code has raised."""
        self.value, self.exception = None, error
        try:
            error.__traceback__ = users_own(error.__traceback__, _OUR_FILES.__contains__)
            match error:
                case Snooze():
                    self.outcome = SnoozeAsked(error.delay_us)
                case RetryLater():
                    self.outcome = RetryAsked(self._told(error), error.delay_us)
                case Abort():
                    self.outcome = AbortAsked(self._told(error))
                case _:
                    told = self._told(error)
                    retry = self.plan.definition.policy.retry
                    listed = retry is not None and retry.lists_exception(
                        error, str(told.error_code)
                    )
                    self.outcome = Failed(told, listed)
        except EndRun:
            raise
        except BaseException:  # noqa: BLE001 - out of memory, or it cannot be described
            self.exception = None
            self.outcome = Failed(
                TaskError.ours(
                    ErrorCode.UNHANDLED_EXCEPTION,
                    "the code raised an exception that could not be described",
                    exception=type(error).__qualname__,
                )
            )

    def _told(self, error: BaseException) -> TaskError:
        """What is stored of an exception; a secret among the arguments is no part of it."""
        return without_secrets(describe(error), (self.job.args, self.job.kwargs))

    def report(
        self, run_ns: int, cpu_time_us: int | None = None, peak_memory_kb: int | None = None
    ) -> RunReport:
        """What the supervisor is told."""
        outcome = self.outcome
        if isinstance(outcome, Failed) and outcome.error.data is not None:
            # What the author attached travels as the plain data that it is stored as.
            outcome = Failed(as_plain(outcome.error), outcome.listed)
        return RunReport(
            self.job.slot,
            outcome,
            run_ns // 1000,
            cpu_time_us,
            peak_memory_kb,
            self.context.completed and isinstance(outcome, Returned),
        )

    def _returned(self, value: Any) -> None:
        """The code has returned."""
        plan = self.plan
        if self.context.completed:
            self.outcome, self.value = Returned("null"), value
            return
        if isinstance(value, TaskResult):
            if value.is_err:
                # Steps that it was about to add are not stored.
                self._returned_error(value.err_value)
                return
            value = value.ok_value
        adds = value if isinstance(value, StepBuilder) else self.context.added_steps
        if adds is not None:
            self._hand_over(adds, value)
            return
        try:
            result = plan.definition.signature.encode_result(value, plan.limit)
        except PayloadError as problem:
            error = unstorable(problem)
            self.outcome, self.exception = Failed(error, self._lists(error)), problem
        except EndRun:
            raise
        except BaseException as problem:  # noqa: BLE001 - a type of the author's may raise anything
            self.raised(problem)
        else:
            self.outcome, self.value = Returned(result), value

    def _hand_over(self, adds: StepBuilder, value: Any) -> None:
        """The code leaves its value to steps that it adds."""
        plan = self.plan
        try:
            kind = plan.definition.signature.result_kind
            added = (
                adds.as_part(plan.limit, is_whole=self.job.schedule_tick is not None)
                if adds is value
                else adds.added(value, kind, limit=plan.limit)
            )
            self.outcome = step_run.handed_over(added)
        except EndRun:
            raise
        except BaseException as problem:  # noqa: BLE001 - a type of the author's may raise anything
            self.raised(problem)

    def _returned_error(self, error: TaskError) -> None:
        """The code has returned an error, which counts if what is attached to it can be stored."""
        try:
            encode_error(error, self.plan.limit)
        except PayloadError as problem:
            message = f"the error {error.error_code} cannot be stored: {problem}"
            code = ErrorCode(unstorable(problem).error_code)
            self.outcome = Failed(TaskError.ours(code, message))
        else:
            clean = without_secrets(error, (self.job.args, self.job.kwargs))
            self.outcome = Failed(clean, self._lists(error))

    def _misfit(self, error: PayloadError) -> None:
        """What was stored does not fit the function."""
        self.outcome = Failed(TaskError.ours(ErrorCode.ARGUMENTS_INVALID, str(error)))
        self.exception = error

    def _lists(self, error: TaskError) -> bool:
        retry = self.plan.definition.policy.retry
        return retry is not None and retry.lists_code(str(error.error_code))

    def _drain(self, lines: Generator[Any, Any, Any]) -> Any:
        while True:
            try:
                line = next(lines)
            except StopIteration as end:
                return end.value
            self.context.put_out(line)

    def _before(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[HookCall]:
        functions = self.plan.hooks.get("before_start") if self.plan.hooks is not None else None
        if not functions:
            return []
        return [(functions, event_of(self.job, "before_start", args=tuple(args), kwargs=kwargs))]

    def _after(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[HookCall]:
        """Which hooks to call after the code, and what to tell them.

        What the row will come to is decided by the supervisor; here it is foreseen, by the same
        function. Only a cancel request that is on its way can make the two differ.
        """
        plan, job, outcome = self.plan, self.job, self.outcome
        if plan.hooks is None or outcome == LOST_LEASE:
            # Without its claim, whatever hooks there are belong to another run.
            return []
        policy = Policy.decode(job.task_options)
        counted = _Counted(job.retry_count, policy.max_retries, workflow_id=job.workflow_id)
        change = decide(counted, outcome, policy, lambda: 0.5)
        told: dict[str, Any] = {
            "args": tuple(args),
            "kwargs": kwargs,
            "result": self.value,
            "error": getattr(outcome, "error", change.error),
            "exception": self.exception,
            "delay": None if change.delay_us is None else change.delay_us / 1e6,
        }
        return [
            (functions, event_of(job, hook, **told))
            for hook in hooks_after(change.verb, change.target)
            if (functions := plan.hooks.get(hook))
        ]


def _facts(job: Job) -> RunFacts:
    return RunFacts(
        job.id, job.name, job.version, job.queue, job.attempt, job.workflow_id, job.trace_context
    )


def _ending(outcome: Reported) -> tuple[str, TaskError | None]:
    """What is told of an outcome: a word for it, and its error."""
    return _WORDS.get(type(outcome), "ended"), getattr(outcome, "error", None)


_WORDS: Final[Mapping[type, str]] = {
    Returned: "completed",
    Failed: "failed",
    RetryAsked: "retry_asked",
    SnoozeAsked: "snoozed",
    AbortAsked: "aborted",
}


def event_of(job: Job, hook: str, **told: Any) -> TaskEvent:
    """What a hook is told about a job."""
    return TaskEvent(
        hook=hook,
        name=job.name,
        version=job.version,
        id=UUID(bytes=job.id),
        attempt=job.attempt,
        queue=job.queue,
        **told,
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    retry_count: int
    max_retries: int
    crash_count: int = 0
    workflow_id: bytes | None = None


_OUR_FILES: Final = {__file__}
"""Files whose frames around a task's code explain nothing; children add their own."""


def hide(file: str) -> None:
    """Leave the frames of this file out of tracebacks."""
    _OUR_FILES.add(file)
