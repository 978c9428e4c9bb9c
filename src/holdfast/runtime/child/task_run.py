"""One run of one task's code, from stored arguments to an outcome.

Owns what every kind of child has in common: decoding, calling, encoding, and the naming of
what happened. Whatever the code does (returns what cannot be stored, calls `sys.exit`, raises
something whose `str` raises) comes out as a `Verdict`; only `EndRun` passes through, which is
our own way of ending code.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from holdfast.core import outcome
from holdfast.core.decide import decide
from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import PayloadError
from holdfast.core.hooks import Hook, TaskEvent
from holdfast.core.identity import running
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Why
from holdfast.core.payload.failure import describe, encode_error, unstorable
from holdfast.core.result import TaskError, TaskResult
from holdfast.core.signals import Abort, RetryLater, Snooze
from holdfast.runtime.child.context import TaskContext
from holdfast.runtime.child.end_run import EndRun
from holdfast.runtime.child.hooks import hooks_of
from holdfast.runtime.wire.messages import Job, Outcome

Kind: TypeAlias = Literal[
    "returned", "failed", "retry", "snooze", "abort", "cancelled", "committed", "interrupted"
]


UNKNOWN: Final = float("inf")
"""The mean of a task that has not run here yet: it may be long."""


@dataclass(slots=True, eq=False)
class Plan:
    """All that running one task needs, prepared once for each child."""

    definition: TaskDefinition
    limit: int
    """The largest result, in bytes."""
    hooks: Mapping[str, Sequence[Hook]] | None
    is_captured: bool = field(init=False)
    mean_ns: float = UNKNOWN
    """How long its runs take here."""

    def __post_init__(self) -> None:
        self.is_captured = self.definition.policy.capture_output

    def learn(self, run_ns: int) -> None:
        """One run took so long."""
        mean = self.mean_ns
        self.mean_ns = run_ns if mean is UNKNOWN else mean + (run_ns - mean) / 8


class Verdict:
    """What became of a run."""

    __slots__ = (
        "delay_us",
        "error",
        "exception",
        "kind",
        "listed",
        "result",
        "stack",
        "value",
        "why",
    )

    def __init__(
        self,
        kind: Kind,
        *,
        result: str | None = None,
        value: Any = None,
        error: TaskError | None = None,
        exception: BaseException | None = None,
        listed: bool = False,
        delay_us: int | None = None,
        why: Why | None = None,
        stack: str | None = None,
    ) -> None:
        self.kind: Kind = kind
        self.result = result
        self.value = value
        self.error = error
        self.exception = exception
        self.listed = listed
        self.delay_us = delay_us
        self.why: Why | None = why
        self.stack = stack
        """Where the code was when it was told to end."""

    def outcome(
        self,
        slot: int,
        limit: int,
        run_ns: int,
        cpu_time_us: int | None = None,
        peak_memory_kb: int | None = None,
    ) -> Outcome:
        """What the supervisor is told."""
        return Outcome(
            slot,
            self.kind,
            self.result,
            None if self.error is None else _encoded(self.error, limit),
            self.listed,
            self.delay_us,
            run_ns // 1000,
            cpu_time_us,
            peak_memory_kb,
        )


def ended(why: Why, stack: str | None = None) -> Verdict:
    """The code was ended on our wish."""
    return Verdict("cancelled", why=why, stack=stack)


def interrupted() -> Verdict:
    """The code was ended by a neighbour in its process, which had no right to."""
    return Verdict("interrupted")


def perform(plan: Plan, job: Job, context: TaskContext, call_hooks: CallHooks) -> Verdict:
    """Run the code of a task that is a plain function or a generator, in a fresh context."""
    running.set(context)
    definition = plan.definition
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}
    try:
        args, kwargs = definition.signature.decode(job.args, job.kwargs)
    except PayloadError as error:
        verdict = misfit(error)
    except EndRun:
        raise
    except BaseException as error:  # noqa: BLE001 - a type of the author's may raise anything
        verdict = raised(plan, error)
    else:
        if plan.hooks is not None:
            before(plan, job, args, kwargs, call_hooks)
        try:
            value = definition.function(*args, **kwargs)
            if definition.signature.streams:
                value = _drain(value, context)
        except EndRun:
            raise
        except BaseException as error:  # noqa: BLE001 - the code may raise anything
            verdict = raised(plan, error)
        else:
            verdict = returned(plan, context, value)
    if plan.hooks is not None:
        after(plan, job, args, kwargs, verdict, call_hooks)
    return verdict


def _drain(lines: Generator[Any, Any, Any], context: TaskContext) -> Any:
    while True:
        try:
            line = next(lines)
        except StopIteration as end:
            return end.value
        context.put_out(line)


async def adrain(lines: AsyncGenerator[Any, Any], context: TaskContext) -> None:
    """Let an async generator stream its output; it has no value to return."""
    async for line in lines:
        context.put_out(line)


def returned(plan: Plan, context: TaskContext, value: Any) -> Verdict:
    """The code has returned."""
    if context.completed:
        return Verdict("committed", value=value)
    if isinstance(value, TaskResult):
        if value.is_err:
            error = value.err_value
            retry = plan.definition.policy.retry
            listed = retry is not None and retry.lists_code(str(error.error_code))
            return _checked(Verdict("failed", error=error, listed=listed), plan.limit)
        value = value.ok_value
    try:
        result = plan.definition.signature.encode_result(value, plan.limit)
    except PayloadError as problem:
        error = unstorable(problem)
        retry = plan.definition.policy.retry
        listed = retry is not None and retry.lists_code(str(error.error_code))
        return Verdict("failed", error=error, listed=listed, exception=problem)
    except EndRun:
        raise
    except BaseException as problem:  # noqa: BLE001 - a type of the author's may raise anything
        return raised(plan, problem)
    return Verdict("returned", result=result, value=value)


def raised(plan: Plan, error: BaseException) -> Verdict:
    """The code has raised."""
    try:
        error.__traceback__ = _users_own(error.__traceback__)
        match error:
            case Snooze():
                return Verdict("snooze", delay_us=error.delay_us, exception=error)
            case RetryLater():
                told = describe(error)
                return Verdict("retry", error=told, delay_us=error.delay_us, exception=error)
            case Abort():
                return Verdict("abort", error=describe(error), exception=error)
        told = describe(error)
        retry = plan.definition.policy.retry
        listed = retry is not None and retry.lists_exception(error, str(told.error_code))
        return Verdict("failed", error=told, listed=listed, exception=error)
    except EndRun:
        raise
    except BaseException:  # noqa: BLE001 - out of memory, or an exception that resists
        told = TaskError.ours(
            ErrorCode.UNHANDLED_EXCEPTION,
            "the code raised an exception that could not be described",
            exception=type(error).__qualname__,
        )
        return Verdict("failed", error=told)


def misfit(error: PayloadError) -> Verdict:
    """What was stored does not fit the function."""
    return Verdict(
        "failed",
        error=TaskError.ours(ErrorCode.ARGUMENTS_INVALID, str(error)),
        exception=error,
    )


def _checked(verdict: Verdict, limit: int) -> Verdict:
    """An error of the author's, if what he attached can be stored."""
    assert verdict.error is not None
    try:
        encode_error(verdict.error, limit)
    except PayloadError as problem:
        told = unstorable(problem)
        message = f"the error {verdict.error.error_code} cannot be stored: {problem}"
        verdict.error = TaskError.ours(ErrorCode(told.error_code), message)
        verdict.listed = False
    return verdict


def _encoded(error: TaskError, limit: int) -> str:
    # Descriptions are bounded in characters, which may be more bytes than a small limit.
    return encode_error(error, max(limit, _LARGEST_DESCRIPTION))


_LARGEST_DESCRIPTION: Final = 1_048_576


def _users_own(trace: TracebackType | None) -> TracebackType | None:
    """Without our own frames at the outer end."""
    link = trace
    while link is not None and link.tb_frame.f_code.co_filename in _OUR_FILES:
        link = link.tb_next
    return link


_OUR_FILES: Final = {__file__}
"""Files whose frames around a task's code explain nothing; children add their own."""


def hide(file: str) -> None:
    """Leave the frames of this file out of tracebacks."""
    _OUR_FILES.add(file)


CallHooks: TypeAlias = Callable[[Sequence[Hook], TaskEvent], None]


def before(
    plan: Plan, job: Job, args: Sequence[Any], kwargs: Mapping[str, Any], call: CallHooks
) -> None:
    """Call the hooks before the code."""
    functions = plan.hooks.get("before_start") if plan.hooks is not None else None
    if functions:
        call(functions, event(job, "before_start", args=tuple(args), kwargs=kwargs))


def after(
    plan: Plan,
    job: Job,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    verdict: Verdict,
    call: CallHooks,
) -> None:
    """Call the hooks after the code."""
    for functions, told in afterwards(plan, job, args, kwargs, verdict):
        call(functions, told)


def afterwards(
    plan: Plan, job: Job, args: Sequence[Any], kwargs: Mapping[str, Any], verdict: Verdict
) -> list[tuple[Sequence[Hook], TaskEvent]]:
    """Which hooks to call after the code, and what to tell them.

    What the row will come to is decided by the supervisor; here it is foreseen, by the same
    function. Only a cancel request that is on its way can make the two differ.
    """
    if plan.hooks is None or verdict.why == "lost":
        # Without its claim, whatever hooks there are belong to another run.
        return []
    policy = Policy.decode(job.task_options)
    met = ending_of(verdict, policy)
    change = decide(_Counted(job.retry_count, policy.max_retries), met, policy, lambda: 0.5)
    error = verdict.error or change.error
    delay = None if change.delay_us is None else change.delay_us / 1e6
    return [
        (
            functions,
            event(
                job,
                hook,
                args=tuple(args),
                kwargs=kwargs,
                result=verdict.value,
                error=error,
                exception=verdict.exception,
                delay=delay,
            ),
        )
        for hook in hooks_of(change)
        if (functions := plan.hooks.get(hook))
    ]


def event(job: Job, hook: str, **told: Any) -> TaskEvent:
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


def ending_of(verdict: Verdict, policy: Policy) -> outcome.Outcome:
    """What became of a run, as `decide` understands it."""
    told = verdict.error or TaskError.ours(ErrorCode.UNHANDLED_EXCEPTION, "")
    match verdict.kind:
        case "returned" | "committed":
            return outcome.Returned(verdict.result or "null")
        case "failed":
            return outcome.Failed(told, verdict.listed)
        case "retry":
            return outcome.RetryAsked(told, verdict.delay_us)
        case "snooze":
            return outcome.SnoozeAsked(verdict.delay_us or 0)
        case "abort":
            return outcome.AbortAsked(told)
        case "cancelled":
            return outcome.ended_because(verdict.why or "cancel", policy, verdict.stack)
        case "interrupted":
            return outcome.Interrupted(outcome.NEIGHBOUR)
