"""What is done to a whole workflow, a part at a time.

Owns the programs: generators that yield operations and get their answers, so that one body serves
sync and async. The first operation says what is to become of the whole, and is recorded; those
behind it do it to the steps in batches. If this program ends in between, workers go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from holdfast.client.access import Access
from holdfast.client.acting import Effect, recorded, who_acts
from holdfast.core.errors import HoldfastError, IllegalTransition, TaskNotFound
from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.lifecycle import WorkflowVerb
from holdfast.core.workflows.records import WorkflowRecord
from holdfast.store.op import Op, reads, writes
from holdfast.store.op import Steps as OpSteps
from holdfast.store.verbs import dependents, resubmits, steering, workflows

__all__ = [
    "Program",
    "aperform",
    "cancel",
    "delete",
    "one",
    "pause",
    "perform",
    "resubmit",
    "resume",
]

T = TypeVar("T")
Program: TypeAlias = Generator[Callable[[], Op[Any]], Any, T]

_MOST_BATCHES: Final = 100_000
_ENDED_BADLY: Final = (WorkflowStatus.FAILED, WorkflowStatus.CANCELLED)


def perform(access: Access, program: Program[T]) -> T:
    """Do it, and return its answer."""
    try:
        make = next(program)
        while True:
            try:
                answer = access.run(make)
            except HoldfastError as error:
                make = program.throw(error)
            else:
                make = program.send(answer)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]


async def aperform(access: Access, program: Program[T]) -> T:
    """Do it without blocking the event loop, and return its answer."""
    ended, make = _next(lambda: next(program))
    while make is not None:
        try:
            answer = await access.arun(make)
        except HoldfastError as error:
            ended, make = _next(partial(program.throw, error))
        else:
            ended, make = _next(partial(program.send, answer))
    return ended  # type: ignore[no-any-return]


def _next(step: Callable[[], Callable[[], Op[Any]]]) -> tuple[Any, Callable[[], Op[Any]] | None]:
    """What a program asks next, or else its answer: a coroutine must not see a StopIteration."""
    try:
        return None, step()
    except StopIteration as ended:
        return ended.value, None


@reads
def one(workflow_id: bytes) -> OpSteps[WorkflowRecord]:
    """A workflow; `TaskNotFound` if there is none."""
    found = yield from workflows.read([workflow_id])
    if workflow_id not in found:
        raise TaskNotFound(workflow_id, noun="workflow")
    return found[workflow_id]


def cancel(
    workflow_id: bytes, *, cleanup: bool = True, by: str | None = None
) -> Program[WorkflowStatus]:
    """Let a whole wind down; the status it has then. One that has ended is left as it is."""
    who = who_acts(by)

    @writes
    def said() -> OpSteps[bool]:
        yield from one(workflow_id)
        return (yield from steering.cancel(workflow_id, by=who, cleanup=cleanup))

    if (yield _recorded(WorkflowVerb.CANCEL, said, workflow_id, by=who)):
        yield from _to_the_end(partial(steering.stop_some, workflow_id))
    whole: WorkflowRecord = yield partial(one, workflow_id)
    return whole.status


def pause(workflow_id: bytes, *, by: str | None = None) -> Program[WorkflowStatus]:
    """Hold what has not begun; raises unless the whole runs, or is paused."""
    who = who_acts(by)

    @writes
    def said() -> OpSteps[list[bytes]]:
        whole = yield from one(workflow_id)
        paused = yield from steering.pause(workflow_id, by=who)
        if workflow_id not in paused and whole.status is not WorkflowStatus.PAUSED:
            raise _refusal(whole, WorkflowVerb.PAUSE)
        return paused

    for part in (yield _recorded(WorkflowVerb.PAUSE, said, workflow_id, by=who)):
        yield from _to_the_end(partial(dependents.hold, part))
    whole: WorkflowRecord = yield partial(one, workflow_id)
    return whole.status


def resume(workflow_id: bytes) -> Program[WorkflowStatus]:
    """Undo a pause; raises if there is none. A failure that had caused it is accepted."""

    @writes
    def said() -> OpSteps[list[bytes]]:
        whole = yield from one(workflow_id)
        resumed = yield from steering.resume(workflow_id)
        if workflow_id not in resumed:
            raise _refusal(whole, WorkflowVerb.RESUME)
        return resumed

    for part in (yield _recorded(WorkflowVerb.RESUME, said, workflow_id)):
        yield from _to_the_end(partial(steering.release_some, part))
    whole: WorkflowRecord = yield partial(one, workflow_id)
    return whole.status


def resubmit(workflow_id: bytes, *, fresh: bool = False) -> Program[WorkflowStatus]:
    """Let every step run again that ended badly, and what was skipped below; raises if the whole
    has completed, or winds down."""

    @writes
    def said() -> OpSteps[list[bytes]]:
        whole = yield from one(workflow_id)
        begun = yield from resubmits.begin(workflow_id, fresh=fresh)
        if not begun:
            raise _refusal(whole, WorkflowVerb.RESUBMIT)
        return begun

    begun: list[bytes] = yield _recorded(WorkflowVerb.RESUBMIT, said, workflow_id)
    for part in begun:
        yield from _to_the_end(partial(resubmits.go_on, part))
    for part in begun:
        yield from _to_the_end(partial(steering.release_some, part))
    whole: WorkflowRecord = yield partial(one, workflow_id)
    return whole.status


def delete(workflow_id: bytes) -> Program[bool]:
    """Remove a whole that has ended, with all its steps and parts; False if it is not there.

    Raises if it lives, or is a part of another one.
    """

    @writes
    def first() -> OpSteps[int]:
        removed = yield from steering.delete(workflow_id)
        if not removed:
            found = yield from workflows.read([workflow_id])
            for whole in found.values():
                raise _refusal(whole, WorkflowVerb.DELETE)
        return removed

    if not (yield _recorded(WorkflowVerb.DELETE, first, workflow_id)):
        return False
    yield from _to_the_end(partial(steering.delete, workflow_id))
    return True


def _to_the_end(some: Callable[[], Op[int]]) -> Program[None]:
    for _ in range(_MOST_BATCHES):
        if not (yield some):
            return


def _refusal(whole: WorkflowRecord, verb: WorkflowVerb) -> IllegalTransition:
    why: str | None = None
    if whole.stopping is not None and not whole.status.is_terminal:
        why = f"it is winding down ({whole.stopping}); wait until it has ended"
    elif verb is WorkflowVerb.RESUBMIT and whole.parent_id and whole.status in _ENDED_BADLY:
        why = (
            f"it is a part of workflow {UUID(bytes=whole.parent_id)}, which has completed or is "
            "winding down"
        )
    elif verb is WorkflowVerb.DELETE and whole.parent_id and whole.status.is_terminal:
        why = f"it is a part of workflow {UUID(bytes=whole.parent_id)}; delete that"
    return IllegalTransition(whole.id, verb, whole.status, noun="workflow", why=why)


def _recorded(
    verb: WorkflowVerb, make: Callable[[], Op[T]], workflow_id: bytes, *, by: str | None = None
) -> Callable[[], Op[T]]:
    def effect(done: T) -> Effect:
        count = 1 if done else 0
        if isinstance(done, Iterable):
            parts = [UUID(bytes=part) for part in done if part != workflow_id]
            detail = {"parts": [str(part) for part in parts[:100]]} if parts else None
            return Effect(count, f"workflow {UUID(bytes=workflow_id)}", detail)
        return Effect(count, f"workflow {UUID(bytes=workflow_id)}")

    return recorded(verb, make, effect, by=by)
