"""resubmit, of the steps of workflows: those that ended badly, and what was skipped below them.

Owns what a resubmit is to a graph. Every edge to a step that is to run again is judged anew, by how
its parent stands then: open if that will still end, otherwise satisfied or not. A step that would
need more than is open stays as it is.

A page of steps, in the order in which they were built, is one transaction, so parents come before
their children. The workflow keeps how far that has come (`go_on`); until all of it has been looked
at, nothing of it finishes and nothing settles: a step that runs again may end before those below it
have been opened. Whoever asked goes on with it, and any worker if that one does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.core.errors import UniqueConflict, UnreadableRow
from holdfast.core.identity import as_text
from holdfast.core.options.unique import key_of
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import At, Channel, Hint, Ints, Statement, Steps, Uuids, writes
from holdfast.store.verbs import step_counts
from holdfast.store.verbs.dependents import count, is_satisfied, resolve, resume_down
from holdfast.store.verbs.reopened_edges import refuse, reopen
from holdfast.store.verbs.returned_steps import restrain

PAGE = 100
"""Steps that one transaction looks at."""
_AT_ONCE = 3
"""Pages below a step that belong to the transaction in which it is resubmitted."""
_OPEN, _VAIN, _SATISFIED = range(3)


class ResubmitChoice(msgspec.Struct, frozen=True, array_like=True):
    """How steps run again."""

    keep_retries: bool = False
    fresh: bool = False
    good_until: int | None = None
    run_at: int | None = None

    def parked(self) -> str:
        """What a step is parked with until all that it added runs again."""
        return f"again {msgspec.json.encode(self).decode()}"

    @classmethod
    def of(cls, parked: str) -> ResubmitChoice:
        """What a step was parked with; the plain choice if somebody spoilt it."""
        try:
            return msgspec.json.decode(parked.partition(" ")[2], type=cls)
        except msgspec.MsgspecError:
            return cls()


class _EndedStep(NamedTuple):
    """A row of `ended_steps`, as it stands there."""

    id: Any
    scope_id: Any
    number: Any
    workflow_id: Any
    status: Any
    deps_needed: Any
    deps_open: Any
    handed_over: Any


class _Edge(NamedTuple):
    """A row of `edges_above`, as it stands there."""

    child_id: Any
    parent_id: Any
    on: Any
    resolved: Any
    satisfied: Any
    kind: Any
    """What the parent is: "task", "pause", "error gate", "end gate"."""
    status: Any


class _Place(NamedTuple):
    """Up to which step a resubmit has come."""

    scope_id: bytes | None = None
    number: int | None = None


class _Page(NamedTuple):
    """What became of some steps."""

    again: list[bytes]
    workflows: set[bytes]


# The whole.


@writes
def begin(workflow_id: bytes, *, fresh: bool = False) -> Steps[list[bytes]]:
    """Say that a workflow, and its parts, are to run again; which. `go_on` with each of them.

    None if the whole has completed, or is winding down. `UniqueConflict` if another one has its
    unique key by now.
    """
    # One that ends, or is stopped, at this moment has done so before it is judged.
    yield Statement("lock_family", {"id": workflow_id})
    found = yield Statement("begin_resubmit", {"id": workflow_id, "fresh": fresh})
    begun = sorted(rows.uuids(found))
    if begun:
        yield from resume_down(workflow_id)
    lost = (yield Statement("lost_key", {"id": workflow_id})) if workflow_id in begun else ()
    if lost:
        name, slot = rows.texts(lost[0])
        (holder, *_) = yield Statement("existing_workflow", {"id": bytes(16), "slot": slot})
        named = f"workflow:{name}"
        raise UniqueConflict(
            rows.uuid(holder[0]), name=name, key=key_of(named, slot), noun="workflow"
        )
    return begun


@writes
def go_on(workflow_id: bytes, *, page: int = PAGE) -> Steps[int]:
    """Look at the next steps of a workflow that is being resubmitted; at how many. None: all."""
    found = yield Statement("resubmitting", {"id": workflow_id})
    if not found:
        return 0
    mode, fresh, scope_id, number, since, stopping = found[0]
    if type(since) is not int:
        key, column = as_text(workflow_id), "resubmitted_at"
        raise UnreadableRow("holdfast_workflows", key, column, "is missing: resubmit it again")
    here = _Place(rows.optional_uuid(scope_id), number)
    at = {
        "id": workflow_id,
        "since": At(since),
        "from_scope": here.scope_id,
        "from_number": here.number,
    }
    adder = yield from _adder_with_more(workflow_id)
    if adder is not None:
        return 1 + (yield from _again_below(adder, workflow_id, 0 if stopping else page))
    # Who winds it down cancels what comes back.
    select = _candidates(workflow_id, here, page, before=since if mode == "bad" else None)
    steps: Sequence[Any] = () if stopping else (yield select)
    if steps:
        done = yield from _again(
            [*rows.uuids(steps)], ResubmitChoice(fresh=bool(fresh)), still=select
        )
        yield from _mark(done.workflows - {workflow_id}, fresh=bool(fresh))
        last = {"scope_id": rows.uuid(steps[-1][1]), "number": steps[-1][2]}
        yield Statement("note_resubmitted", {**at, **last})
        return len(steps)
    # While the resubmit lasts nothing is finished. An end that closes a scope at this moment would
    # still see that it lasts, and we not see what it closed: so one of us waits for the other.
    yield Statement("lock_scopes", {"id": workflow_id})
    if (yield Statement("end_resubmit", at)):
        yield from resolve((yield from step_counts.finish_closed(workflow_id)))
    return 0


class _ParkedAdder(NamedTuple):
    id: bytes
    parked: str


def _adder_with_more(workflow_id: bytes) -> Steps[_ParkedAdder | None]:
    """A step that had handed over to many, of which not all that have to run again."""
    found = yield Statement("parked_adders", {"workflow_id": workflow_id})
    ids, texts = [*rows.uuids(found)], [*rows.texts(row[1] for row in found)]
    return _ParkedAdder(ids[0], texts[0]) if ids and texts else None


def _again_below(adder: _ParkedAdder, workflow_id: bytes, page: int) -> Steps[int]:
    """Let some of what it had added run again; how many were looked at. Fewer than `page`: all."""
    choice = ResubmitChoice.of(adder.parked)
    select = Statement("added_again", {"id": adder.id, "batch": page})
    ids = [*rows.uuids((yield select))]
    if ids:
        done = yield from _again(ids, choice, still=select)
        deeper = Uuids(sorted({*ids}.intersection(done.again)))
        yield Statement("park_added", {"ids": deeper, "why": adder.parked})
        yield from _mark(done.workflows - {workflow_id}, fresh=choice.fresh)
    if len(ids) < page or not page:
        yield Statement("unpark", {"id": adder.id, "why": adder.parked})
    return len(ids)


def _candidates(
    workflow_id: bytes, after: _Place, page: int, *, before: int | None = None
) -> Statement:
    return Statement(
        "resubmittable_steps",
        {
            "id": workflow_id,
            "bad": before is not None,
            "before": None if before is None else At(before),
            "scope_id": after.scope_id,
            "number": after.number,
            "batch": page,
        },
    )


def _mark(workflow_ids: Iterable[bytes], *, fresh: bool) -> Steps[None]:
    ids = Uuids(sorted(workflow_ids))
    if ids:
        yield Statement("go_on_below", {"ids": ids, "fresh": fresh})


# Single steps.


def steps(ids: Sequence[bytes], choice: ResubmitChoice) -> Steps[set[bytes]]:
    """Let these steps run again, and what was skipped below them; which of them do.

    One that handed over does not run again: what it added and ended badly does. A step whose
    parents have ended so that it could never run is an `UpstreamEnded`.
    """
    wanted, unexamined = yield from _with_added(ids)
    done = yield from _again(wanted, choice, strict=set(ids))
    below = ResubmitChoice(choice.keep_retries, choice.fresh)
    unfinished: set[bytes] = set()
    left = Uuids(sorted(unexamined.intersection(done.again)))
    if left:
        yield Statement("park_added", {"ids": left, "why": choice.parked()})
        homes = yield Statement("step_homes", {"ids": left})
        unfinished |= {*rows.uuids(homes)}
    for workflow_id in sorted(done.workflows - unfinished):
        unfinished |= yield from _below(workflow_id, below)
    for workflow_id in sorted(done.workflows - unfinished):
        yield from resolve((yield from step_counts.finish_closed(workflow_id)))
    yield from _mark(unfinished, fresh=choice.fresh)
    return {id for id in ids if id in done.again}


def _with_added(ids: Sequence[bytes]) -> Steps[tuple[list[bytes], set[bytes]]]:
    """These with what they added and ended badly; and those of which there is more than that."""
    wanted = dict.fromkeys(ids)
    new = [*wanted]
    while new:
        scopes = Uuids(sorted(new))
        added = yield Statement("added_steps", {"scopes": scopes, "bad": True, "batch": PAGE})
        if len(added) == PAGE:
            return [*wanted], set(new)
        new = [id for id in rows.uuids(added) if id not in wanted]
        wanted |= dict.fromkeys(new)
    return [*wanted], set()


def _below(workflow_id: bytes, choice: ResubmitChoice) -> Steps[set[bytes]]:
    """Follow a resubmit down, as far as one transaction goes; the workflows with more to do."""
    place, unfinished = _Place(), set[bytes]()
    for _ in range(_AT_ONCE):
        found = yield _candidates(workflow_id, place, PAGE)
        if not found:
            return unfinished
        done = yield from _again([*rows.uuids(found)], choice)
        unfinished |= done.workflows - {workflow_id}
        if len(found) < PAGE:
            return unfinished
        place = _Place(rows.uuid(found[-1][1]), found[-1][2])
    return unfinished | {workflow_id}


# A page of steps.


def _again(
    ids: Sequence[bytes],
    choice: ResubmitChoice,
    *,
    still: Statement | None = None,
    strict: set[bytes] | None = None,
) -> Steps[_Page]:
    """Let those of these steps run again that can, and the steps that handed over to them.

    `still`: finds them anew once they are locked. `strict`: a refusal of one of these is an error.
    """
    above = yield Statement("step_relatives", {"ids": Uuids(sorted(ids))})
    yield Statement("lock_tasks", {"ids": Uuids(sorted({*ids, *rows.uuids(above)}))})
    if still is not None:
        # No others: neither they nor their parents are locked.
        ids = [*{*ids}.intersection(rows.uuids((yield still)))]
    found = yield Statement("ended_steps", {"ids": Uuids(sorted(ids))})
    candidates = [step for step in map(_EndedStep._make, found) if rows.is_uuid(step.id)]
    ids = Uuids(sorted(rows.uuid(step.id) for step in candidates))
    # Before anything is judged: whoever ends something of these scopes has ended it, or waits. So
    # none of them completes without what runs again, and no gate opens unseen.
    yield (
        Statement("lock_children", {"ids": ids}),
        Statement("lock_places", {"ids": ids}),
        Statement("lock_homes", {"ids": ids}),
    )
    closed = set(rows.uuids((yield Statement("closed_steps", {"ids": ids}))))
    candidates = [step for step in candidates if rows.uuid(step.id) not in closed]
    if not candidates:
        return _Page([], set())
    edges = yield Statement(
        "edges_above", {"children": Uuids(sorted(rows.uuid(step.id) for step in candidates))}
    )
    plan = _Judgement(candidates, map(_Edge._make, edges))
    plan.judge()
    if strict is not None and plan.stuck & strict:
        yield from _rewrite(plan.changes(plan.stuck))
        yield from refuse(plan.stuck & strict)
    if not plan.again:
        return _Page([], set())
    yield from _rewrite(plan.changes(plan.again))
    again = Uuids(sorted(plan.again))
    yield from count(plan.deltas())
    counted = yield from step_counts.places(again)
    if choice.fresh:
        yield Statement("delete_checkpoints", {"ids": again})
    yield from reopen(again)
    done = yield Statement(
        "resubmit",
        {
            "ids": again,
            "keep_retries": choice.keep_retries,
            "good_until": None if choice.good_until is None else At(choice.good_until),
            "run_at": None if choice.run_at is None else At(choice.run_at),
        },
    )
    ready = (queue for _, status, queue in done if status == TaskStatus.PENDING)
    queues = set(rows.texts(ready))
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))
    yield from step_counts.reopened(counted)
    yield from restrain([*rows.uuids(done)])
    wholes = {rows.uuid(s.workflow_id) for s in candidates if rows.uuid(s.id) in plan.again}
    return _Page(again, wholes)


def _rewrite(changes: Sequence[tuple[bytes, bytes, int]]) -> Steps[None]:
    if changes:
        yield Statement(
            "rewrite_edges",
            {
                "parents": Uuids(parent for parent, _, _ in changes),
                "children": Uuids(child for _, child, _ in changes),
                "states": Ints(state for _, _, state in changes),
            },
        )


class _Judgement:
    """Which steps can run again, and how their edges stand then."""

    def __init__(self, candidates: Sequence[_EndedStep], edges: Iterable[_Edge]) -> None:
        self._steps = {rows.uuid(step.id): step for step in candidates}
        self._edges: defaultdict[bytes, list[_Edge]] = defaultdict(list)
        for edge in edges:
            child = rows.uuid(edge.child_id)
            if not self._steps[child].handed_over:
                self._edges[child].append(edge)
        self.again: set[bytes] = set()

    @property
    def stuck(self) -> set[bytes]:
        return self._steps.keys() - self.again

    def judge(self) -> None:
        """Look at all of them until nothing changes: they mostly stand in their order."""
        while True:
            able = {id for id in self._steps if id not in self.again and self._accept(id)}
            if not able:
                return

    def deltas(self) -> dict[bytes, tuple[int, int]]:
        """What is added to what those that can run have open, and need."""
        found: dict[bytes, tuple[int, int]] = {}
        for id in self.again:
            open_, needed = self._counts(id)
            step = self._steps[id]
            if (open_, needed) != (step.deps_open, step.deps_needed):
                found[id] = open_ - step.deps_open, needed - step.deps_needed
        return found

    def changes(self, ids: Iterable[bytes]) -> list[tuple[bytes, bytes, int]]:
        """(parent, child, state) of the edges that do not stand so by now."""
        found: list[tuple[bytes, bytes, int]] = []
        for id in sorted(ids):
            for edge in self._edges[id]:
                was = _OPEN
                if edge.resolved:
                    was = _SATISFIED if edge.satisfied else _VAIN
                state = self._state(edge)
                if state != was and rows.is_uuid(edge.parent_id):
                    found.append((rows.uuid(edge.parent_id), id, state))
        return found

    def _accept(self, id: bytes) -> bool:
        open_, needed = self._counts(id)
        able = needed <= open_ or bool(self._steps[id].handed_over)
        if able:
            # At once: it is a parent of those that follow.
            self.again.add(id)
        return able

    def _counts(self, id: bytes) -> tuple[int, int]:
        step = self._steps[id]
        if step.handed_over:
            # Its code has run: how its parents stand is nothing to it any more.
            return step.deps_open, step.deps_needed
        states = [self._state(edge) for edge in self._edges[id]]
        met = sum(bool(edge.resolved and edge.satisfied) for edge in self._edges[id])
        needed: int = step.deps_needed + met - states.count(_SATISFIED)
        return states.count(_OPEN), needed

    def _state(self, edge: _Edge) -> int:
        if edge.kind == "pause":
            # It may have ended while it was held, and the pause be over. If not, it is held anew.
            return _SATISFIED
        if not edge.resolved:
            # Nobody has told it of that end yet, and somebody will.
            return _OPEN
        if edge.kind in ("error gate", "end gate"):
            # Whether it opens again is known when all steps have been looked at.
            return _OPEN
        if not rows.is_uuid(edge.parent_id) or not rows.is_status(edge.status):
            return _SATISFIED if edge.satisfied else _VAIN
        status = TaskStatus(edge.status)
        if rows.uuid(edge.parent_id) in self.again or not status.is_terminal:
            return _OPEN
        return _SATISFIED if is_satisfied(edge.on, status) else _VAIN
