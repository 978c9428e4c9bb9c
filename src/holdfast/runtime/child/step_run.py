"""A step of a workflow in a child: the values that it takes, and the steps that it adds.

Owns what a run has more to do if its task is a step. Values are read here, just before the code
runs, because what is stored is a reference. What goes wrong with them is an outcome: a value that
is gone is not there at the next try either, and a store that cannot be asked is no fault of the
task's.
"""

from __future__ import annotations

import time
from typing import Any

from holdfast.core.digest import hex_digest
from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import PayloadError, StoreError
from holdfast.core.identity import new_id
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.outcome import Failed, HandedOver, Interrupted, Reported, Returned
from holdfast.core.payload.codec import split_array, to_json
from holdfast.core.records import Submission
from holdfast.core.result import TaskError
from holdfast.core.workflows.inputs import (
    Missing,
    fill_template,
    read_inputs,
    template_fills,
)
from holdfast.core.workflows.plan import AddedPlan, StepPlan
from holdfast.runtime.wire.messages import Job
from holdfast.store.protocol import Store
from holdfast.store.verbs import step_results


def arguments(store: Store, job: Job) -> tuple[str, str] | Reported:
    """The arguments of a step, complete; or what became of it without them."""
    scope_id = job.scope_id
    if job.inputs is None or scope_id is None:
        return job.args, job.kwargs
    fills = read_inputs(job.inputs).fills
    try:
        return store.attempt(
            lambda: step_results.arguments(scope_id, job.id, job.args, job.kwargs, fills)
        )
    except Missing as missing:
        return Failed(TaskError.ours(ErrorCode.UPSTREAM_MISSING, str(missing)))
    except StoreError as error:
        return Interrupted(f"the values that it takes could not be read ({error})")


def too_large(size: int, limit: int) -> Failed:
    """The outcome of a step that would be given too much."""
    message = (
        f"the arguments take {size:,} bytes with the values of other steps, over the limit of "
        f"{limit:,} bytes: return references to the data, or raise max_payload"
    )
    return Failed(TaskError.ours(ErrorCode.PAYLOAD_TOO_LARGE, message))


def mapped(job: Job, definition: TaskDefinition) -> Reported | None:
    """What becomes of a step that maps its task over a list; None if it is none of those."""
    settings = None if job.inputs is None else read_inputs(job.inputs).map
    if settings is None:
        return None
    first, *rest = split_array(job.args)
    try:
        items = split_array(bytes(first).decode())
    except PayloadError as error:
        message = f"step {settings['name']!r} maps over a value that is no list: {error}"
        return Failed(TaskError.ours(ErrorCode.ARGUMENTS_INVALID, message))
    if len(items) > settings["most"]:
        message = (
            f"the list has {len(items):,} items, and a workflow at most {settings['most']:,} "
            "steps: map over parts of it, or raise max_steps"
        )
        return Failed(TaskError.ours(ErrorCode.RESULT_INVALID, message))
    steps = tuple(
        StepPlan(
            f"{settings['name']}[{place}]",
            _submission(job, definition, settings, to_json([item, *rest])),
            hidden=settings["hidden"],
        )
        for place, item in enumerate(items)
    )
    returns = to_json([None, [[[], ["results", list(range(len(steps))), []]]]])
    return handed_over(AddedPlan(steps=steps, returns=returns))


def _submission(
    job: Job, definition: TaskDefinition, settings: dict[str, Any] | Any, args: str
) -> Submission:
    key = settings["key"]
    if key is None and definition.key_template is not None:
        positional, named = definition.signature.decode(args, job.kwargs)
        key = definition.key_template.fill(positional, named)
    return Submission(
        new_id(),
        job.name,
        job.version,
        job.queue,
        settings["priority"],
        args,
        job.kwargs,
        hex_digest(f"{job.name} {args} {job.kwargs}"),
        time.time_ns() // 1_000,
        task_options=job.task_options,
        tags=settings["tags"],
        good_until=settings["good_until"],
        good_for_us=settings["good_for_us"],
        max_retries=settings["max_retries"],
        parent_id=job.id,
        root_id=job.root_id,
        trace_context=job.trace_context,
        concurrency_key=key,
    )


def handed_over(added: AddedPlan) -> Reported:
    """The outcome of a run that adds steps; without any it returns its value itself."""
    if added.steps:
        return HandedOver(added.encode())
    if added.returns is None:
        return Returned("null")

    def nothing(fill: Any) -> Any:
        from holdfast.core.payload.codec import Raw

        return Raw(b"[]")

    assert all(not fill.steps for fill in template_fills(added.returns))
    return Returned(fill_template(added.returns, nothing))
