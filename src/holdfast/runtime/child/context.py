"""The running task, as its own code sees it.

Owns `current_task()` and everything a task can say or do about itself. It holds no
connection: what it says goes to the supervisor as notes, what it stores goes through the
store it is given, and `complete_in` uses the connection of the code.
"""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from holdfast.core.errors import ClaimLost, ConfigError
from holdfast.core.identity import Lineage, running
from holdfast.core.moment import from_us
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Why
from holdfast.core.payload import codec
from holdfast.core.text import clean
from holdfast.runtime.wire.messages import Job, Note

if TYPE_CHECKING:
    from holdfast.core.options.definition import TaskDefinition
    from holdfast.core.records import Landing
    from holdfast.core.workflows.builder import StepBuilder
    from holdfast.runtime.child.checkpoint import Checkpoints
    from holdfast.runtime.child.stdio import TaskOutput
    from holdfast.store.callers.home import Home
    from holdfast.store.op import Key, Op
    from holdfast.store.protocol import Store

__all__ = ["TaskContext", "current_task"]

P = ParamSpec("P")
T = TypeVar("T")

_LONGEST_MESSAGE: Final = 1_000
_LONGEST_STAGE: Final = 100
_LARGEST_META: Final = 65_536


class EndRun(BaseException):
    """Raised inside a task's code to end it; no `except Exception` stops it."""

    def __init__(self, why: Why = "cancel") -> None:
        super().__init__(why)
        self.why: Why = why


class Host(Protocol):
    """The child that a task runs in, as far as its context needs it."""

    @property
    def store(self) -> Store: ...

    @property
    def home(self) -> Home: ...

    @property
    def max_payload(self) -> int: ...

    def note(self, note: Note, /) -> None: ...

    def waits(self, slot: int, waiting: bool, /) -> None: ...


def current_task() -> TaskContext:
    """The task whose code this is."""
    found = running.get()
    if isinstance(found, TaskContext):
        return found
    raise ConfigError(
        "current_task() was called outside a task's code: call it in the task's function, or in "
        "what that calls; a thread started there has to be given the task, or "
        "contextvars.copy_context()"
    )


def current_slot() -> int:
    """The slot of the task whose code this is; 0: of none."""
    found = running.get()
    return found.slot if isinstance(found, TaskContext) else 0


class TaskContext:
    """One run of one task."""

    __slots__ = (
        "_begun_ns",
        "_checkpoints",
        "_definition",
        "_host",
        "_job",
        "_stopping",
        "added_steps",
        "completed",
        "output",
    )

    def __init__(self, host: Host, definition: TaskDefinition, job: Job, begun_ns: int) -> None:
        self._host = host
        self._definition = definition
        self._job = job
        self._begun_ns = begun_ns
        self._stopping = False
        self._checkpoints: Checkpoints | None = None
        self.added_steps: StepBuilder | None = None
        """The steps that the code adds to its workflow, once it has asked for that."""
        self.completed = False
        """Whether `complete_in` has been called."""
        self.output: TaskOutput | None = None
        """Where its output goes, in children that run several tasks at a time."""

    def waits(self, waiting: bool, /) -> None:
        """The code does nothing but wait for other tasks, or no longer; said by the wait itself."""
        self._host.waits(self._job.slot, waiting)

    @property
    def slot(self) -> int:
        """What the supervisor calls this run; for the child's own use."""
        return self._job.slot

    @property
    def id(self) -> UUID:
        """The task's id."""
        return UUID(bytes=self._job.id)

    @property
    def name(self) -> str:
        """The name it is stored under."""
        return self._job.name

    @property
    def version(self) -> int:
        """The version of the task that was sent."""
        return self._job.version

    @property
    def attempt(self) -> int:
        """Which start of the task this is, from 1 on."""
        return self._job.attempt

    @property
    def tick(self) -> datetime | None:
        """The moment this run stands for, of a task that a schedule has sent; None of others."""
        tick = self._job.schedule_tick
        try:
            return None if tick is None else from_us(tick)
        except OverflowError:
            # Written by hand.
            return None

    @property
    def retry_count(self) -> int:
        """How many retries have been spent."""
        return self._job.retry_count

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._job.queue

    @property
    def deadline(self) -> datetime | None:
        """When `timeout` will end this run, by this machine's clock; None: never."""
        timeout = Policy.decode(self._job.task_options).timeout
        if timeout is None:
            return None
        since = (time.monotonic_ns() - self._begun_ns) / 1e9
        return datetime.fromtimestamp(time.time() - since + timeout, UTC)

    @property
    def workflow(self) -> StepBuilder:
        """Adds steps to the workflow that this task is a step of.

        They are stored with its completion, or not at all. Return what they will give:
        `return wf.map(transform, pieces).result`. The task ends when they have.
        """
        if self.added_steps is None:
            if self._job.workflow_id is None:
                raise ConfigError(
                    f"task {self.name!r} is not a step of a workflow, so it cannot add steps: "
                    "send it as one, with wf.step(…)"
                )
            from holdfast.core.workflows.builder import StepBuilder

            self.added_steps = StepBuilder(self._job.name, noun="task")
        return self.added_steps

    @property
    def store(self) -> Store:
        """The store of its worker; for the child's own use."""
        return self._host.store

    @property
    def cancel_requested(self) -> bool:
        """Whether this run is to end: finish early if you can, it will be ended soon."""
        return self._stopping

    @property
    def lineage(self) -> Lineage:
        """What tasks that are sent from here note as their parent."""
        job = self._job
        return Lineage(job.id, job.root_id or job.id, job.trace_context)

    def stop(self) -> None:
        """Let `cancel_requested` be True from now on; for the child's own use."""
        self._stopping = True

    def set_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far it is; shown live. Call it as often as you like."""
        plain: dict[str, Any] = {"done": _number(done, "done")}
        if total is not None:
            plain["total"] = _number(total, "total")
        if message is not None:
            plain["message"] = clean(str(message), _LONGEST_MESSAGE)
        self._host.note(Note(self._job.slot, progress=codec.to_json(plain)))

    def update(self, stage: str | None = None, meta: Any = None) -> None:
        """Name the stage it has come to, with any data that belongs to it."""
        if not _is_stage(stage):
            raise ConfigError(
                f"stage={stage!r:.200} is not usable: give a text of at most "
                f"{_LONGEST_STAGE} characters",
                option="stage",
            )
        if stage is None and meta is None:
            return
        text = None if meta is None else codec.encode_value(meta, _LARGEST_META, name="meta")
        self._host.note(
            Note(
                self._job.slot,
                stage=None if stage is None else clean(stage, _LONGEST_STAGE),
                meta=text,
            )
        )

    def heartbeat(self) -> None:
        """Give a sign of life, for a task with `max_heartbeat_interval`."""
        self._host.note(Note(self._job.slot, heartbeat=True))

    def put_out(self, line: object) -> None:
        """Append what a generator yielded to the task's output; for the child's own use."""
        if line is None:
            return
        text = line.decode(errors="replace") if isinstance(line, bytes) else str(line)
        text = clean(text, self._host.max_payload)
        self._host.note(Note(self._job.slot, output=text if text.endswith("\n") else f"{text}\n"))

    def checkpoint(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a step once for all attempts: its value is stored, and a retry gets it from there.

        The step may run again if the process dies after it and before its value is stored.
        The value is given back as it was stored, decoded by the function's return annotation.
        """
        points = self._points()
        found = points.find(name, function)
        if found is not None:
            value: T = found.value
            return value
        return points.keep(name, function, function(*args, **kwargs))

    @overload
    async def acheckpoint(
        self,
        name: str,
        function: Callable[P, Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T: ...

    @overload
    async def acheckpoint(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...

    async def acheckpoint(
        self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """The same for `async def` tasks; the step may be a coroutine function or a plain one."""
        import asyncio

        points = self._points()
        found = await asyncio.to_thread(points.find, name, function)
        if found is not None:
            return found.value
        value = function(*args, **kwargs)
        if inspect.isawaitable(value):
            value = await value
        return await asyncio.to_thread(points.keep, name, function, value)

    def complete_in(self, connection: Any, value: Any = None) -> None:
        """Complete this task with `value` in the transaction of your own connection.

        The task's effects and its end commit together, or not at all. You commit; then return
        from the task. Whatever the function returns after that is ignored.
        """
        op = self._completion(value)
        self._note_landing(self._host.home.adopt(connection).run(op))

    async def acomplete_in(self, connection: Any, value: Any = None) -> None:
        """The same on an async connection."""
        op = self._completion(value)
        self._note_landing(await self._host.home.adopt(connection).arun(op))

    def _points(self) -> Checkpoints:
        if self._checkpoints is None:
            from holdfast.runtime.child.checkpoint import Checkpoints

            self._checkpoints = Checkpoints(self._host.store, self._job, self._host.max_payload)
        return self._checkpoints

    def _completion(self, value: Any) -> Op[dict[Key, Landing]]:
        from holdfast.store.verbs.finish import Completion, complete

        if self.completed:
            raise ConfigError("complete_in was called before in this run: a task completes once")
        job = self._job
        result = self._definition.signature.encode_result(value, self._host.max_payload)
        return complete(
            [
                Completion(
                    job.key,
                    job.token,
                    result,
                    os.getpid(),
                    in_workflow=job.workflow_id is not None,
                )
            ]
        )

    def _note_landing(self, landings: dict[Key, Landing]) -> None:
        from holdfast.core.records import Answer

        if landings[self._job.key].answer is not Answer.LANDED:
            raise ClaimLost(self._job.id, "complete")
        self.completed = True

    def __repr__(self) -> str:
        return f"<TaskContext {self.name} {self.id} attempt {self.attempt}>"


def _number(value: object, name: str) -> float:
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    raise ConfigError(f"{name}={value!r:.100} is not usable: give a finite number", option=name)


def _is_stage(value: object) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST_STAGE)
