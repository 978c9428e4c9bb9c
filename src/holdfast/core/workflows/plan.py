"""A workflow as it is sent: its steps, what each waits for, and what the whole is told.

Owns the shapes that the builder makes and the store writes; both sides keep to this page.

The builder promises:

*   Steps stand in the order in which they were built. An edge names an *earlier* step of the same
    plan by its index, so there are no cycles; one edge for each parent.
*   `StepPlan.task` is a complete `Submission`, as `submit` takes it, with an id of its own. Its
    `workflow_id`, `depends_on`, `deps_needed`, `unique_key` and `unique_slot` are left alone: the
    store fills them in. `run_at` and `delay_us` are the step's own, counted as `unblock` says.
*   A value that another step gives is not in `args` or `kwargs`: what stands there is replaced as
    `inputs` says, in the builder's own format. It names steps by their index in the same plan.
*   `handler` and `cleanup` are told, because `.outcome` and `.ended` are both "always" here.
*   Names are unique in a plan, the whole is within its limit of steps, and every text can be
    stored (no NUL, no lone surrogates).

The store promises:

*   `start` writes a `WorkflowPlan` in one transaction, and `hand_over` an `AddedPlan` in the
    transaction that ends the adder's run, or not at all.
*   A step is the task `StepPlan.task.id`, and found again by its *scope* and its index there
    (`tasks.scope_id`, `tasks.step_number`). The scope is the workflow's id, or that of the step
    that handed over. `inputs` is stored as it came and is in the claimed task (`ClaimedTask`).
*   Results are never copied. A step that handed over is COMPLETED without a `result`: its value
    is read from the `returns` of its scope, as that of the whole is.
*   `wf.error` is the error of the step that `scopes.error_id` names: the first bad ending. It is
    written in the transaction that releases the steps of the tail which wait for it.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from holdfast.core.errors import PayloadError
from holdfast.core.records import On, Submission

__all__ = [
    "AddedPlan",
    "OnFailure",
    "StepEdge",
    "StepPlan",
    "SubWorkflow",
    "Tail",
    "WorkflowPlan",
]

OnFailure: TypeAlias = Literal["continue", "fail_fast", "pause"]
"""What the first bad ending does to the whole."""
Tail: TypeAlias = Literal["error", "ended", "below"]
"""What releases a step of the tail: the first bad ending of the body (`wf.error`), the body's end
(`wf.ended`); "below": its edges alone, which come from steps of the tail."""

_Index: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Duration: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]


class StepEdge(Struct, frozen=True, array_like=True):
    """A dependency of a step: the index of an earlier step of the same plan."""

    parent: _Index
    on: On = "success"


class StepPlan(Struct, frozen=True, array_like=True):
    """One step to be submitted."""

    name: str
    task: Submission
    edges: tuple[StepEdge, ...] = ()
    needed: _Index | None = None
    """How many edges must be satisfied: None all, 1 for `any_of`, n for `at_least(n)`."""
    required: bool = True
    """False: `optional`, or taken only by `any_of`, `at_least`, `.outcome`."""
    tail: Tail | None = None
    """A step of the tail may have edges, too; they may come from the body only if it waits for
    `wf.error` or `wf.ended` itself."""
    handler: bool = False
    """It has a `.failed`, `.error`, `.outcome` or `.ended` edge, or hangs below one; every step of
    the tail is one."""
    cleanup: bool = False
    """The same for `.ended` alone, `wf.ended` included."""
    hidden: str | None = None
    """What a step that the user has not written is for: "map", "workflow"."""
    inputs: str | None = None
    """Which of its arguments other steps give, in the builder's own format."""


class WorkflowPlan(Struct, frozen=True, array_like=True, kw_only=True):
    """A workflow to be started, complete and already checked."""

    id: bytes
    name: str
    steps: tuple[StepPlan, ...]
    version: int = 1
    on_failure: OnFailure = "continue"
    deadline_us: _Duration | None = None
    """Counted from `run_at`, or from the start."""
    run_at: int | None = None
    """Steps that wait for nothing are SCHEDULED until then."""
    unique_key: str | None = None
    """The slot (`options.unique.slot`), held until the whole has ended."""
    on_conflict: Literal["return", "raise"] = "return"
    tags: str | None = None
    arguments: str | None = None
    """JSON text, for people to read."""
    digest: str
    """Of the content. The same id with another digest is a `PayloadMismatch`."""
    returns: str | None = None
    """What the whole returns, as a template of results, in the builder's own format."""
    sent_at: int = 0
    parent_id: bytes | None = None
    """The task that sent it."""
    root_id: bytes | None = None
    trace_context: str | None = None


class SubWorkflow(Struct, frozen=True, array_like=True, kw_only=True):
    """A step that hands over to a workflow with a row of its own. Its id is that of the step."""

    name: str
    version: int = 1
    on_failure: OnFailure = "continue"
    deadline_us: _Duration | None = None
    tags: str | None = None
    arguments: str | None = None


class AddedPlan(Struct, frozen=True, array_like=True, kw_only=True):
    """What a running step adds and hands over to: it ends when these have ended.

    Edges name steps of this plan only. The steps belong to the adder's workflow; with `workflow`
    they are that of a sub-workflow. No steps at all is an ordinary completion: the child
    returns the value itself then.
    """

    steps: tuple[StepPlan, ...]
    returns: str | None = None
    workflow: SubWorkflow | None = None

    def encode(self) -> bytes:
        """As it crosses from a child to its supervisor, which does not believe it unseen."""
        return _encoder.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> AddedPlan:
        """Raises `PayloadError` for what is none."""
        try:
            plan = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise PayloadError(f"the added steps cannot be read: {error}") from None
        wrong = plan._wrong()
        if wrong is not None:
            raise PayloadError(f"the added steps cannot be stored: {wrong}")
        return plan

    def _wrong(self) -> str | None:
        if not self.steps:
            return "there are none"
        if len({step.task.id for step in self.steps}) != len(self.steps):
            return "two have the same id"
        for number, step in enumerate(self.steps):
            parents = [edge.parent for edge in step.edges]
            if any(parent >= number for parent in parents) or len({*parents}) != len(parents):
                return (
                    f"step {step.name!r:.100} waits for itself, for a later one, or for one twice"
                )
            if step.needed is not None and not 1 <= step.needed <= len(parents):
                return f"step {step.name!r:.100} needs {step.needed} of {len(parents)} steps"
            if len(step.task.id) != _ID_SIZE:
                return f"step {step.name!r:.100} has no id"
        return None


_ID_SIZE = 16
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AddedPlan)
