"""Starting a workflow: one transaction for all of it, whatever the network does in between.

Owns the plan of a whole as it is sent, its digest, and what a sender gets back. The id and the
digest make it safe to repeat, as with a task (`call`).
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any, Final

from msgspec.structs import replace

from holdfast.client.access import Access, Again
from holdfast.core.digest import hex_digest
from holdfast.core.errors import PayloadMismatch, StoreUnavailable, UniqueConflict
from holdfast.core.options.unique import key_of
from holdfast.core.payload.codec import to_json
from holdfast.core.records import SubmitAnswer, Submitted
from holdfast.core.tracing import SendTrace, Tracing
from holdfast.core.workflows.plan import StepPlan, WorkflowPlan
from holdfast.store.op import Op, Steps, writes
from holdfast.store.verbs import workflows

__all__ = ["astart", "digest_of", "start"]

_MOST_TRIES: Final = 20
_PAUSE: Final = 0.1


def digest_of(steps: tuple[StepPlan, ...], *said: Any) -> str:
    """By which the store knows two sends of a workflow for the same."""
    told = [
        (step.name, step.task.enqueue_sha, step.inputs, step.needed, step.required, step.tail,
         [(edge.parent, edge.on) for edge in step.edges], step.task.concurrency_key)
        for step in steps
    ]  # fmt: skip
    return hex_digest(to_json((told, said)))


def start(access: Access, plan: WorkflowPlan, tracing: Tracing | None) -> Submitted:
    """Start a workflow; what there is now."""
    if tracing is None:
        return _start_now(access, plan)
    with _watched(tracing, plan) as span:
        answer = _start_now(access, _carrying(span.context, plan))
        span.sent([answer.id])
        return answer


async def astart(access: Access, plan: WorkflowPlan, tracing: Tracing | None) -> Submitted:
    """Start a workflow; what there is now."""
    if tracing is None:
        return await _astart_now(access, plan)
    with _watched(tracing, plan) as span:
        answer = await _astart_now(access, _carrying(span.context, plan))
        span.sent([answer.id])
        return answer


def _watched(tracing: Tracing, plan: WorkflowPlan) -> AbstractContextManager[SendTrace]:
    queue = plan.steps[0].task.queue_name if plan.steps else "default"
    return tracing.send(queue, plan.name, 1)


def _carrying(context: str | None, plan: WorkflowPlan) -> WorkflowPlan:
    """The same with this context in the whole and in each step: no part of its digest."""
    if context is None:
        return plan
    steps = tuple(
        replace(step, task=step.task._replace(trace_context=context)) for step in plan.steps
    )
    return replace(plan, steps=steps, trace_context=context)


def _start_now(access: Access, plan: WorkflowPlan) -> Submitted:
    deadline = time.monotonic() + access.config.send_timeout
    tries = 0
    while True:
        try:
            return _checked(plan, access.run(lambda: _start(plan)))
        except (Again, StoreUnavailable) as error:
            tries += 1
            _check_patience(access, error, tries, deadline)
        time.sleep(_PAUSE)


async def _astart_now(access: Access, plan: WorkflowPlan) -> Submitted:
    import asyncio

    deadline = time.monotonic() + access.config.send_timeout
    tries = 0
    while True:
        try:
            return _checked(plan, await access.arun(lambda: _start(plan)))
        except (Again, StoreUnavailable) as error:
            tries += 1
            _check_patience(access, error, tries, deadline)
        await asyncio.sleep(_PAUSE)


def _check_patience(
    access: Access, error: Again | StoreUnavailable, tries: int, deadline: float
) -> None:
    if isinstance(error, Again):
        if tries >= _MOST_TRIES:
            raise StoreUnavailable(
                "the holder of the workflow's unique key ended again and again while this was "
                "being sent: send again"
            ) from None
    elif access.bound() is not None or time.monotonic() >= deadline:
        raise error


def _start(plan: WorkflowPlan) -> Op[Submitted]:
    return _one(plan)


@writes
def _one(plan: WorkflowPlan) -> Steps[Submitted]:
    answer = yield from workflows.start(plan)
    if answer.answer is SubmitAnswer.AGAIN:
        raise Again
    return answer


def _checked(plan: WorkflowPlan, answer: Submitted) -> Submitted:
    if answer.answer is SubmitAnswer.MISMATCH:
        raise PayloadMismatch(answer.id, noun="workflow")
    if answer.answer is SubmitAnswer.CONFLICT:
        key = None
        if plan.unique_key is not None:
            key = key_of(f"workflow:{plan.name}", plan.unique_key)
        raise UniqueConflict(answer.id, name=plan.name, key=key, noun="workflow")
    return answer
