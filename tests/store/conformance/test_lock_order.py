"""What a transaction about a workflow locks, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.outcome import CancelAcknowledged, Failed
from holdfast.store.op import Op, Statement, Steps
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import BOOM
from tests.support.workflows import begin, plan_of, step

_ORDER = (
    {
        "lock_tasks",
        "complete",
        "end",
        "resolve_edges",
        "count_edges",
        "unblock",
        "skip",
        "resubmit",
    },
    {"count_steps", "lock_places"},
    {"close_parts", "lock_homes", "forget_errors"},
    {"finish_workflow", "stop_workflow", "reopen_workflow", "pause_workflow"},
)
"""Tasks, count rows, scopes, workflow rows: what each of these statements locks."""


@on_each_engine
@pytest.mark.parametrize("policy", ["continue", "fail_fast", "pause"])
@pytest.mark.parametrize("what", ["completes", "fails", "is cancelled"])
def test_who_ends_a_step_locks_tasks_then_counts_then_the_whole(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, policy: str, what: str
) -> None:
    """So that two who end steps never wait for each other in a ring."""
    plan = plan_of(step(), step(0), step(1), on_failure=policy)
    first, *_ = begin(lab, plan)
    asked: list[str] = []
    run = lab.store.run

    def noted(op: Op[Any]) -> Any:
        def steps() -> Steps[Any]:
            inner, answer = iter(op), None
            while True:
                try:
                    statement = inner.send(answer)
                except StopIteration as end:
                    return end.value
                some = [statement] if isinstance(statement, Statement) else statement
                asked.extend(one.name for one in some)
                answer = yield statement

        return run(Op(steps(), op.mode, op.name))

    task = lab.run_again(first)
    monkeypatch.setattr(lab.store, "run", noted)
    if what == "completes":
        lab.complete(task)
    elif what == "fails":
        lab.end(task, Failed(BOOM))
    else:
        lab.cancel(first)
        asked.clear()
        lab.end(task, CancelAcknowledged())
    ranks = [rank for name in asked for rank, names in enumerate(_ORDER) if name in names]
    assert len(set(ranks)) >= 2
    assert ranks == sorted(ranks), asked
