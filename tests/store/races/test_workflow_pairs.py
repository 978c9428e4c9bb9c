"""Any two things that happen to a workflow, in every order of their steps: nothing hangs.

Two transactions under READ COMMITTED can each miss what the other changes. So two of all that may
happen at the same time (an end, a verb of an operator, what a worker does for wholes) are played in
every order; then the rest of the workflow runs, with nothing but what workers do by themselves.
All of it has to end, its counts have to agree, and it has to end as one after the other would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import pytest

from holdfast.core.decide import decide
from holdfast.core.errors import UpstreamEnded
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Failed, HandedOver, Outcome
from holdfast.core.records import ClaimedTask
from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.plan import AddedPlan, StepEdge, StepPlan, SubWorkflow, WorkflowPlan
from holdfast.core.workflows.records import WorkflowFilter
from holdfast.runtime.workflow_steering import WorkflowSteering
from holdfast.store.op import Op
from holdfast.store.verbs import (
    cancel,
    dependents,
    finish,
    leases,
    operate,
    resubmits,
    steering,
    step_audit,
    workflows,
)
from tests.store.races.actor import Hand
from tests.store.races.stage import Ended, Scene, Stage
from tests.support.stores import Lab
from tests.support.verbs import BOOM, PID, WORKER
from tests.support.workflows import begin, pause, plan_of, step, stop

ROUNDS = 60
TABLES = ("workflows", "scopes", "step_counts")


@dataclass
class Play:
    """A workflow as it stands, and what is known of its steps by their names."""

    plan: WorkflowPlan
    ids: dict[str, bytes]
    runs: dict[str, ClaimedTask] = field(default_factory=dict)

    @property
    def id(self) -> bytes:
        return self.plan.id


Act: TypeAlias = "Callable[[Hand, Play], object]"


def named(name: str, *parents: int | StepEdge, **fields: Any) -> StepPlan:
    """A step in a queue of its own."""
    return step(*parents, name=name, task={"queue_name": name}, **fields)


def play(lab: Lab, *steps: StepPlan, **fields: Any) -> Play:
    plan = plan_of(*steps, **fields)
    begin(lab, plan)
    return Play(plan, {step.name: step.task.id for step in steps})


def runs(lab: Lab, here: Play, *names: str) -> None:
    for name in names:
        here.runs[name] = lab.run_again(here.ids[name], name)


def done(lab: Lab, here: Play, *names: str) -> None:
    for name in names:
        lab.complete(lab.run_again(here.ids[name], name))


def failed(lab: Lab, here: Play, *names: str) -> None:
    for name in names:
        lab.end(lab.run_again(here.ids[name], name), Failed(BOOM))


def added(lab: Lab, here: Play, adder: str, *steps: StepPlan, **fields: Any) -> None:
    plan = AddedPlan(steps=steps, **fields)
    lab.end(lab.run_again(here.ids[adder], adder), HandedOver(plan.encode()))
    here.ids |= {step.name: step.task.id for step in steps}


# What may happen.

AGAIN = ("a", "join", "x", "z", "adder", "spare", "tell", "clean")
CANCELLED = ("join", "undo", "tell", "adder", "x")


def completes(name: str) -> Act:
    def act(hand: Hand, here: Play) -> object:
        run = here.runs[name]
        done = finish.Completion(run.key, run.token, "1", PID, in_workflow=True)
        return hand.attempt(lambda: finish.complete([done]))[run.key].answer

    return act


def ends(name: str, outcome: Outcome) -> Act:
    def act(hand: Hand, here: Play) -> object:
        run = here.runs[name]
        change = decide(hand.task(run.id), outcome, Policy(), lambda: 1.0)
        end = finish.RunChange(run.key, run.token, change, PID, WORKER)
        return hand.attempt(lambda: finish.end([end]))[run.key].answer

    return act


def fails(name: str) -> Act:
    return ends(name, Failed(BOOM))


def hands(name: str, *names: str, part: bool = False) -> Act:
    def act(hand: Hand, here: Play) -> object:
        workflow = SubWorkflow(name="part") if part else None
        plan = AddedPlan(steps=tuple(named(one) for one in names), workflow=workflow)
        return ends(name, HandedOver(plan.encode()))(hand, here)

    return act


def again(*names: str) -> Act:
    def act(hand: Hand, here: Play) -> object:
        try:
            return hand.attempt(lambda: operate.resubmit([here.ids[name] for name in names]))
        except UpstreamEnded:
            return "refused"

    return act


def cancels(name: str) -> Act:
    return lambda hand, here: hand.attempt(lambda: cancel.cancel([here.ids[name]]))


def whole(verb: Callable[..., Op[Any]], *, part: str | None = None, **options: Any) -> Act:
    def act(hand: Hand, here: Play) -> object:
        id = here.id if part is None else here.ids[part]
        return hand.attempt(partial(verb, id, **options))

    return act


def resumes(hand: Hand, here: Play) -> None:
    """The program of an operator."""
    for one in hand.attempt(lambda: steering.resume(here.id)):
        while hand.attempt(partial(steering.release_some, one)):
            pass


ACTS: dict[str, Act] = {
    "a completes": completes("a"),
    "a fails": fails("a"),
    "b completes": completes("b"),
    "b fails": fails("b"),
    "y completes": completes("y"),
    "y fails": fails("y"),
    "last completes": completes("last"),
    "body completes": completes("body"),
    "body fails": fails("body"),
    "adds steps": hands("adder", "x", "y"),
    "adds a part": hands("adder", "x", "y", part=True),
    **{f"{name} again": again(name) for name in AGAIN},
    **{f"{name} cancelled": cancels(name) for name in CANCELLED},
    "pause": whole(steering.pause, by="ada"),
    "resumes": resumes,
    "hold": whole(dependents.hold),
    "resume": whole(steering.resume),
    "release": whole(steering.release_some),
    "cancel": whole(steering.cancel),
    "stop": whole(steering.stop_some),
    "resubmit": whole(resubmits.begin),
    "go on": whole(resubmits.go_on),
    "go on by 1": whole(resubmits.go_on, page=1),
    "part paused": whole(steering.pause, part="adder", by="ada"),
    "part stopped": whole(steering.stop_some, part="adder"),
    "part again": whole(resubmits.begin, part="adder"),
    "part goes on": whole(resubmits.go_on, part="adder"),
}
GRADUAL = {"resumes", "cancel"}
"""What takes effect a part at a time, between which others may come: several transactions, or parts
that hear of it later. The others are one, and what follows of itself, workers do."""


# How a workflow may stand.


def _both_run(policy: str) -> Callable[[Lab], Play]:
    def build(lab: Lab) -> Play:
        here = play(
            lab,
            named("a"),
            named("b"),
            named("join", 0, 1),
            named("any", 0, 1, needed=1),
            named("undo", StepEdge(0, "failure"), handler=True, required=False),
            named("tell", tail="error", handler=True),
            named("clean", tail="ended", handler=True, cleanup=True),
            on_failure=policy,
        )
        runs(lab, here, "a", "b")
        return here

    return build


def _one_failed(policy: str) -> Callable[[Lab], Play]:
    def build(lab: Lab) -> Play:
        here = _both_run(policy)(lab)
        lab.end(here.runs["a"], Failed(BOOM))
        return here

    return build


def _resubmitting(policy: str) -> Callable[[Lab], Play]:
    def build(lab: Lab) -> Play:
        here = _one_failed(policy)(lab)
        lab.clock.advance(1)
        lab.run(resubmits.begin(here.id))
        return here

    return build


def _paused(lab: Lab) -> Play:
    here = _both_run("continue")(lab)
    pause(lab, here.id)
    return here


def _winding_down(lab: Lab) -> Play:
    here = _both_run("continue")(lab)
    lab.run(steering.cancel(here.id))
    return here


def _adder_runs(lab: Lab) -> Play:
    here = play(lab, named("adder"), named("other"), named("join", 0, 1))
    runs(lab, here, "adder")
    return here


def _adder_runs_in_a_paused_one(lab: Lab) -> Play:
    here = _adder_runs(lab)
    pause(lab, here.id)
    return here


def _part(failing: bool, resubmitting: bool = False) -> Callable[[Lab], Play]:
    def build(lab: Lab) -> Play:
        here = play(lab, named("adder"), named("other"), named("join", 0, 1))
        done(lab, here, "other")
        added(
            lab,
            here,
            "adder",
            named("x"),
            named("y"),
            named("z", 0, 1),
            workflow=SubWorkflow(name="part", on_failure="fail_fast"),
        )
        if failing:
            failed(lab, here, "x")
        else:
            done(lab, here, "x")
        if resubmitting:
            runs(lab, here, "y")
            stop(lab, here.ids["adder"])
            lab.end(here.runs["y"], Failed(BOOM))
            lab.clock.advance(1)
            lab.run(resubmits.begin(here.id))
            return here
        runs(lab, here, "y")
        return here

    return build


def _steps_added(failing: bool) -> Callable[[Lab], Play]:
    def build(lab: Lab) -> Play:
        here = play(lab, named("adder"), named("other"), named("join", 0, 1))
        done(lab, here, "other")
        added(lab, here, "adder", named("x"), named("y"))
        if failing:
            failed(lab, here, "x")
        else:
            done(lab, here, "x")
        runs(lab, here, "y")
        return here

    return build


def _last_of_all(lab: Lab) -> Play:
    here = play(lab, named("last"), named("spare", required=False))
    failed(lab, here, "spare")
    runs(lab, here, "last")
    return here


def _tail_again(lab: Lab) -> Play:
    """The last of the body runs again, while steps of the tail stand as they ended before."""
    here = play(
        lab,
        named("body"),
        named("tell", tail="error", handler=True),
        named("more", tail="error", handler=True),
        named("clean", tail="ended", handler=True, cleanup=True),
        named("tidy", tail="ended", handler=True, cleanup=True),
    )
    failed(lab, here, "body", "tell", "clean")
    lab.clock.advance(1)
    lab.run(operate.resubmit([here.ids["body"]]))
    runs(lab, here, "body")
    return here


def _paused_at_a_failure(lab: Lab) -> Play:
    here = _both_run("pause")(lab)
    lab.end(here.runs["a"], Failed(BOOM))
    while lab.run(dependents.hold(here.id)):
        pass
    return here


START: dict[str, tuple[Callable[[Lab], Play], str]] = {
    **{
        f"both run, {policy}": (
            _both_run(policy),
            "a fails, b completes, b fails, join cancelled, pause, cancel",
        )
        for policy in ("continue", "fail_fast", "pause")
    },
    "one failed": (
        _one_failed("continue"),
        "b completes, b fails, a again, join again, undo cancelled, pause, cancel, resubmit",
    ),
    "one failed fast": (
        _one_failed("fail_fast"),
        "b completes, b fails, a again, stop, cancel, join cancelled",
    ),
    "being resubmitted": (
        _resubmitting("continue"),
        "go on, go on by 1, b completes, b fails, a again, join again, join cancelled, cancel",
    ),
    "paused at a failure, being resubmitted": (
        _resubmitting("pause"),
        "go on, release, b completes, b fails, a again, cancel, pause",
    ),
    "paused": (
        _paused,
        "a completes, a fails, b completes, join cancelled, resume, cancel, stop, hold, resubmit",
    ),
    "winding down": (_winding_down, "stop, a completes, a fails, b fails, resubmit, pause"),
    "paused at a failure": (
        _paused_at_a_failure,
        "b completes, b fails, a again, resume, resumes, release, cancel, hold, resubmit",
    ),
    "adder runs": (
        _adder_runs,
        "adds steps, adds a part, pause, cancel, resubmit, adder cancelled",
    ),
    "adder runs, paused": (
        _adder_runs_in_a_paused_one,
        "adds steps, adds a part, resume, cancel, resubmit",
    ),
    "a part, one done": (
        _part(False),
        "y completes, y fails, pause, cancel, resubmit, adder cancelled, part paused",
    ),
    "a part, one failed": (
        _part(True),
        "y completes, y fails, part stopped, x again, cancel, resubmit, part again",
    ),
    "a part, being resubmitted": (
        _part(True, resubmitting=True),
        "go on, part goes on, x again, z again, adder again, cancel, adder cancelled",
    ),
    "steps added, one done": (
        _steps_added(False),
        "y completes, y fails, pause, cancel, adder cancelled",
    ),
    "steps added, one failed": (
        _steps_added(True),
        "y completes, y fails, x again, cancel, resubmit, adder cancelled",
    ),
    "the last of all": (_last_of_all, "last completes, spare again, cancel, resubmit"),
    "a tail again": (
        _tail_again,
        "body completes, body fails, tell again, clean again, cancel, resubmit",
    ),
}
PAIRS = [
    pytest.param(state, first, second, id=f"{state}: {first} × {second}")
    for state, (_, acts) in START.items()
    for first, second in combinations_with_replacement(acts.split(", "), 2)
]


@pytest.mark.slow
@pytest.mark.parametrize(("state", "first", "second"), PAIRS)
def test_whatever_meets_all_of_it_ends(stage: Stage, state: str, first: str, second: str) -> None:
    here: list[Play] = []

    def scene(lab: Lab) -> Scene:
        lab_is_empty(stage)
        here[:] = [START[state][0](lab)]
        (it,) = here
        return {
            "one": lambda hand: ACTS[first](hand, it),
            "other": lambda hand: ACTS[second](hand, it),
        }

    def outcome(ended: Ended) -> object:
        try:
            return run_to_the_end(stage.lab, here[0], parts="part paused" in (first, second))
        except AssertionError as error:
            error.add_note(f"order of steps: {'; '.join(ended.order)}")
            raise

    serial = [outcome(ended) for ended in stage.every_order(scene, switches=0)]
    for ended in stage.every_order(scene, switches=1):
        found = outcome(ended)
        if not {first, second} & GRADUAL:
            assert found in serial, (found, serial, ended.order)


def lab_is_empty(stage: Stage) -> None:
    stage.empty(*TABLES)


def run_to_the_end(lab: Lab, here: Play, *, parts: bool) -> object:
    """Let workers do the rest by themselves, resume what is paused; how all of it ended."""
    steering_ = WorkflowSteering(lab.store, lambda: 0.0)
    left: list[ClaimedTask] = list(here.runs.values())
    for _ in range(ROUNDS):
        lab.clock.advance(1)
        steering_.round()
        for task in left:
            # What runs still ends well, unless it has ended.
            lab.complete(task)
        left = some_steps(lab)
        found = lab.run(workflows.find(WorkflowFilter(), limit=50)).workflows
        if not left and all(one.status.is_terminal for one in found):
            break
        if not left:
            for one in found:
                # Its parts follow it.
                if one.status is WorkflowStatus.PAUSED and (one.parent_id is None or parts):
                    lab.run(steering.resume(one.id))
    return check(lab, here)


def some_steps(lab: Lab) -> list[ClaimedTask]:
    found = lab.sql("SELECT DISTINCT queue_name FROM holdfast_tasks WHERE status = 'PENDING'")
    tasks: list[ClaimedTask] = []
    for (queue,) in sorted(found):
        tasks += lab.claim(queue=str(queue)).tasks
    if tasks:
        lab.start(*tasks)
    return tasks


def check(lab: Lab, here: Play) -> object:
    found = lab.run(workflows.find(WorkflowFilter(), limit=50)).workflows
    tasks = lab.sql("SELECT step_name, status, attempt FROM holdfast_tasks ORDER BY step_name")
    shown = lab.sql(
        "SELECT step_name, status, deps_open, deps_needed, parked, handed_over "
        "FROM holdfast_tasks ORDER BY step_name"
    )
    stands = [(one.name, one.status, one.stopping) for one in found]
    assert all(one.status.is_terminal for one in found), (stands, shown)
    assert not [
        task for task in tasks if task[1] in ("WAITING", "PENDING", "RUNNING", "SCHEDULED")
    ], shown
    assert lab.run(step_audit.look()).scopes == []
    open_ = lab.sql(
        "SELECT scope_id, part, open, bad FROM holdfast_step_counts WHERE open <> 0 OR bad < 0"
    )
    assert open_ == []
    assert not lab.run(leases.suspects()).keys
    return sorted((one.name, one.status) for one in found), [tuple(task) for task in tasks]
