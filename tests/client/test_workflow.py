"""Building a workflow: the plan that comes out, and every mistake refused on its line."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pytest

from holdfast import (
    ConfigError,
    Holdfast,
    PayloadError,
    Retry,
    TaskError,
    TaskResult,
    Unique,
    Workflow,
    any_of,
    at_least,
)
from holdfast.core.workflows.plan import StepPlan

app = Holdfast("sqlite:///:memory:")


@dataclass
class Raw:
    rows: list[int]
    source: str


@app.task
def extract(day: date) -> Raw:
    return Raw([1], "x")


@app.task(retry=Retry(3), queue="maps", tags=["t"])
def transform(row: int, factor: int = 2) -> str:
    return str(row * factor)


@app.task
def load(parts: list[str], source: str = "") -> int:
    return len(parts)


@app.task
def double(a: int) -> int:
    return 2 * a


@app.task
def alert(error: TaskError, channel: str = "ops") -> None:
    pass


@app.task
def one(result: TaskResult[Raw, TaskError]) -> int:
    return 1


@app.task
def settle(results: list[TaskResult[str, TaskError]]) -> int:
    return 1


@app.task
def clean() -> None:
    pass


@app.task(concurrency_key="{tenant}")
def sync(tenant: str) -> None:
    pass


@app.task
def free(anything: Any, **others: Any) -> Any:
    return anything


@app.workflow("nightly", on_failure="fail_fast", deadline=timedelta(hours=1), version=2)
def nightly(wf: Workflow, day: date, factor: int = 2) -> int:
    raw = wf.step(extract, day)
    parts = wf.map(transform, [1, 2], factor)
    return wf.step(load, parts.result, source=raw.result.source).result


DAY = date(2026, 1, 1)


@pytest.fixture
def wf() -> Workflow:
    return Workflow("w")


def inputs(step: StepPlan) -> Any:
    return None if step.inputs is None else json.loads(step.inputs)


def edges(step: StepPlan) -> list[tuple[int, str]]:
    return [(edge.parent, edge.on) for edge in step.edges]


def test_a_workflow_becomes_a_plan() -> None:
    raw, first, second, loaded = nightly.build(DAY, factor=3).plan()
    assert [raw.name, first.name, second.name, loaded.name] == [
        "extract",
        "transform[0]",
        "transform[1]",
        "load",
    ]
    assert raw.task.args == '["2026-01-01"]'
    assert (first.task.args, first.task.queue_name, first.task.max_retries) == ("[1,3]", "maps", 3)
    assert (loaded.task.args, loaded.task.kwargs) == ("[null]", '{"source":null}')
    assert edges(loaded) == [(0, "success"), (1, "success"), (2, "success")]
    assert inputs(loaded) == [
        [[0], ["results", [1, 2], []]],
        [["source"], ["result", [0], ["source"]]],
    ]
    assert raw.inputs is None
    assert loaded.needed is None
    assert all(step.required and not step.handler for step in (raw, first, second, loaded))
    assert len({step.task.id for step in (raw, first, second, loaded)}) == 4


def test_values_inside_lists_and_dicts(wf: Workflow) -> None:
    raw = wf.step(extract, DAY)
    wf.step(load, ["a", wf.step(transform, raw.result.rows[0]).result])
    wf.step(free, {"x": [raw.result.rows, 3], "y": (raw.result.source, 1)}, other=raw.result)
    plan = wf.plan()
    assert inputs(plan[1]) == [[[0], ["result", [0], ["rows", 0]]]]
    assert plan[2].task.args == '[["a",null]]'
    assert inputs(plan[2]) == [[[0, 1], ["result", [1], []]]]
    assert plan[3].task.args == '[{"x":[null,3],"y":[null,1]}]'
    assert [where for where, _ in inputs(plan[3])] == [[0, "x", 0], [0, "y", 0], ["other"]]


def test_the_kinds_of_edges(wf: Workflow) -> None:
    raw = wf.step(extract, DAY)
    wf.step(alert, raw.error)
    wf.step(one, raw.outcome)
    wf.options(after=raw).step(clean)
    wf.options(after=[raw.failed]).step(clean)
    wf.options(after=[raw.ended], name="last").step(clean)
    wf.options(after=[wf.steps[5]]).step(clean)
    plan = wf.plan()
    assert [edges(step) for step in plan[1:6]] == [
        [(0, "failure")],
        [(0, "always")],
        [(0, "success")],
        [(0, "failure")],
        [(0, "always")],
    ]
    assert [step.handler for step in plan] == [False, True, True, False, True, True, True]
    assert [step.cleanup for step in plan] == [False, False, False, False, False, True, True]
    assert [step.name for step in plan[3:]] == ["clean", "clean-2", "last", "clean-3"]
    assert plan[0].required


def test_what_is_taken_only_where_it_may_fail_is_not_required(wf: Workflow) -> None:
    mirrors = wf.map(double, [1, 2, 3])
    wf.step(double, any_of(mirrors))
    quorum = wf.map(transform, [1, 2, 3])
    wf.step(load, at_least(2, quorum))
    raw = wf.step(extract, DAY)
    wf.step(one, raw.outcome)
    wf.options(optional=True).step(clean)
    plan = wf.plan()
    assert [step.required for step in plan] == [
        *[False] * 3, True, *[False] * 3, True, False, True, False
    ]  # fmt: skip
    assert (plan[3].needed, inputs(plan[3])) == (1, [[[0], ["first", [0, 1, 2], []]]])
    assert (plan[7].needed, inputs(plan[7])) == (2, [[[0], ["successes", [4, 5, 6], []]]])
    wf.step(free, raw.result)
    assert wf.plan()[8].required


def test_joins_of_ends(wf: Workflow) -> None:
    parts = wf.map(double, [1, 2])
    wf.options(after=any_of(step.failed for step in parts)).step(clean)
    wf.options(after=[at_least(2, [step.ended for step in parts])]).step(clean)
    first: Any = any_of(*parts)  # for a type checker the value of one of them
    wf.options(after=first).step(clean)
    wf.options(after=parts.failed).step(clean)
    plan = wf.plan()
    assert [(step.needed, edges(step)) for step in plan[2:]] == [
        (1, [(0, "failure"), (1, "failure")]),
        (2, [(0, "always"), (1, "always")]),
        (1, [(0, "success"), (1, "success")]),
        (1, [(0, "failure"), (1, "failure")]),
    ]
    assert plan[3].cleanup
    assert plan[0].required


def test_the_tail(wf: Workflow) -> None:
    raw = wf.step(extract, DAY)
    told = wf.step(alert, wf.error)
    wf.options(after=[wf.ended]).step(clean)
    wf.options(after=[told.ended]).step(clean)
    wf.options(after=[wf.ended, raw.succeeded]).step(clean)
    plan = wf.plan()
    assert [step.tail for step in plan] == [None, "error", "ended", "below", "ended"]
    assert inputs(plan[1]) == [[[0], ["failure", [], []]]]
    assert all(step.handler for step in plan[1:])
    assert [step.cleanup for step in plan[1:]] == [False, True, True, True]


def test_a_map_over_a_result_is_one_step_until_then(wf: Workflow) -> None:
    raw = wf.step(extract, DAY)
    parts = wf.map(transform.options(priority=3), raw.result.rows, factor=5)
    wf.step(load, parts.result)
    _, adder, loaded = wf.plan()
    assert (adder.name, adder.hidden, adder.task.task_name) == (
        "transform",
        "map",
        transform.name,
    )
    (word, settings), fill = inputs(adder)
    assert word == "map"
    assert settings["priority"] == 3
    assert settings["tags"] == '["t"]'
    assert fill == [[0], ["result", [0], ["rows"]]]
    assert (adder.task.args, adder.task.kwargs) == ("[null]", '{"factor":5}')
    assert inputs(loaded) == [[[0], ["result", [1], []]]]


def test_an_empty_map(wf: Workflow) -> None:
    wf.step(load, wf.map(transform, []).result)
    (loaded,) = wf.plan()
    assert inputs(loaded) == [[[0], ["results", [], []]]]


def test_a_sub_workflow_is_a_step(wf: Workflow) -> None:
    sub = wf.step(nightly, DAY)
    wf.step(double, sub.result)
    wf.map(nightly, [DAY, DAY], factor=3)
    plan = wf.plan()
    assert [step.hidden for step in plan] == ["workflow", None, "workflow", "workflow"]
    assert (plan[0].task.task_name, plan[0].task.version) == ("nightly", 2)


def test_a_task_of_its_own_key(wf: Workflow) -> None:
    wf.step(sync, "acme")
    named = wf.step(free, 1)
    wf.step(sync.options(concurrency_key="x"), named.result)
    assert [step.task.concurrency_key for step in wf.plan()] == ["acme", None, "x"]
    with pytest.raises(ConfigError, match=r"'sync-3'.*free.result.*concurrency_key="):
        wf.step(sync, named.result)


def test_what_is_unique_is_not_so_as_a_step(wf: Workflow) -> None:
    @app.task("only", unique=Unique())
    def only() -> None: ...

    wf.step(only)
    assert wf.plan()[0].task.unique_slot is None
    wrong: list[dict[str, Any]] = [
        {"unique": Unique("k")},
        {"id": "0197f3c2-5b1e-7d44-9a01-3c5e6f708192"},
    ]
    for options in wrong:
        with pytest.raises(ConfigError, match="is not for a step"):
            wf.step(only.options(**options))


def test_mermaid() -> None:
    text = nightly.build(DAY).to_mermaid()
    assert text.startswith("flowchart TD\n")
    assert 's1["transform[0]' in text
    assert "s1 --> s3" in text
    wf = Workflow("odd")
    wf.options(name='a"]; <b>').step(clean)
    wf.step(alert, wf.error)
    wf.options(after=[wf.steps[0].failed]).step(clean)
    drawn = wf.to_mermaid()
    assert "<b>" not in drawn
    assert 's0["a#34;]#59; #60;b#62;' in drawn
    assert "error -.-> s1" in drawn
    assert "s0 -. failure .-> s2" in drawn


def refused(message: str, build: Callable[[Workflow], object]) -> None:
    wf = Workflow("w")
    with pytest.raises((ConfigError, PayloadError), match=message):
        build(wf)


def test_types_that_do_not_fit_are_refused() -> None:
    def raw(wf: Workflow) -> Any:
        return wf.step(extract, DAY)

    refused(
        "step 'double': argument a of task .*extract.result is Raw, not int",
        lambda wf: wf.step(double, raw(wf).result),
    )
    refused(
        r"argument parts\[1\] .* extract.result.rows is list\[int\], not str",
        lambda wf: wf.step(load, ["a", raw(wf).result.rows]),
    )
    refused(r"argument parts\[0\]", lambda wf: wf.step(load, [3, wf.step(free, 1).result]))  # type: ignore[list-item]
    refused("does not exist: the fields of Raw are", lambda wf: raw(wf).result.rowz)
    refused("needs 'day'", lambda wf: wf.step(extract))  # type: ignore[call-arg]
    refused("no parameter named 'x'", lambda wf: wf.step(double, raw(wf).result, x=1))  # type: ignore[call-arg]
    refused("does not fit", lambda wf: wf.step(extract, "soon"))  # type: ignore[arg-type]
    refused("cannot map over extract.result", lambda wf: wf.map(transform, raw(wf).result))
    refused("step 'transform\\[0\\]'", lambda wf: wf.map(transform, ["a"]))  # type: ignore[arg-type]
    refused("not TaskError", lambda wf: wf.step(alert, raw(wf).result))
    refused(r"not list\[TaskResult", lambda wf: wf.step(settle, wf.map(transform, [1]).result))  # type: ignore[arg-type]


def test_steps_in_the_place_of_values_are_refused() -> None:
    refused("write double.result", lambda wf: wf.step(double, wf.step(double, 1)))  # type: ignore[arg-type]
    refused("write double.result", lambda wf: wf.step(free, [wf.map(double, [1])]))
    refused("has no value", lambda wf: wf.step(free, wf.ended))
    refused("not their values", lambda wf: wf.options(after=[wf.step(free, 1).result]).step(clean))


def test_joins_that_make_no_sense_are_refused() -> None:
    refused("could never be satisfied", lambda wf: at_least(3, wf.map(double, [1, 2])))
    refused("number from 1 on", lambda wf: at_least(0, wf.map(double, [1])))
    refused("could never be satisfied", lambda _: any_of())
    refused("takes steps", lambda wf: any_of(wf.step(double, 1).result))  # type: ignore[call-overload]
    dynamic = "known only when the list is"
    refused(dynamic, lambda wf: any_of(wf.map(transform, wf.step(extract, DAY).result.rows)))
    refused(dynamic, lambda wf: at_least(1, wf.map(transform, wf.step(extract, DAY).result.rows)))
    refused(dynamic, lambda wf: list(wf.map(transform, wf.step(extract, DAY).result.rows)))


def test_names(wf: Workflow) -> None:
    wf.options(name="a").step(clean)
    with pytest.raises(ConfigError, match="has a step 'a' already"):
        wf.options(name="a").step(clean)
    wf.options(name="double[1]").step(clean)
    with pytest.raises(ConfigError, match=r"has a step 'double\[1\]' already"):
        wf.map(double, [1, 2])
    for name in ("", "a\x00", "a\nb", "\ud800", "x" * 201, 3):
        with pytest.raises(ConfigError, match="is not usable for a step"):
            wf.options(name=name)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'colour' is not an option of a step"):
        wf.options(colour="red")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="task name"):
        Workflow("a b")


def test_steps_of_another_workflow_are_refused(wf: Workflow) -> None:
    other = Workflow("other").step(double, 1)
    with pytest.raises(ConfigError, match=r"double.result belongs to another workflow"):
        wf.step(double, other.result)
    with pytest.raises(ConfigError, match="belongs to another workflow"):
        wf.options(after=[other]).step(clean)
    elsewhere = Holdfast("sqlite:///:memory:")

    @elsewhere.task
    def foreign() -> None: ...

    wf.step(clean)
    with pytest.raises(ConfigError, match="belongs to another app"):
        wf.step(foreign)


def test_too_many_steps_are_refused() -> None:
    wf = Workflow("small", max_steps=3)
    with pytest.raises(ConfigError, match="'small' has more than 3 steps"):
        wf.map(double, range(4))
    wf.map(double, range(3))
    with pytest.raises(ConfigError, match="more than 3 steps"):
        wf.step(clean)


def test_a_workflow_of_a_script_is_named_as_the_worker_will_import_it() -> None:
    spoken = {"app": app, "__name__": "__main__", "__file__": "/srv/jobs.py"}
    exec("@app.workflow\ndef nightly(wf): pass", spoken)
    assert spoken["nightly"].name == "jobs.nightly"  # type: ignore[attr-defined]


def test_what_a_workflow_promises_to_return() -> None:
    @app.workflow
    def wrong(wf: Workflow) -> str:
        return wf.step(double, 1).result  # type: ignore[return-value]

    with pytest.raises(PayloadError, match=r"returns does not fit .*double.result is int, not str"):
        wrong.build()

    @app.workflow
    def a_step(wf: Workflow) -> int:
        return wf.step(double, 1)  # type: ignore[return-value]

    with pytest.raises(ConfigError, match=r"write double.result"):
        a_step.build()

    @app.workflow
    def spared(wf: Workflow) -> int:
        return wf.options(optional=True).step(double, 1).result

    with pytest.raises(ConfigError, match="of a step that is optional"):
        spared.build()

    @app.workflow
    def first(wf: Workflow) -> int:
        return any_of(wf.map(double, [1, 2]))

    with pytest.raises(ConfigError, match=r"returns any_of\(.*does not need"):
        first.build()

    @app.workflow
    def handled(wf: Workflow) -> int:
        raw = wf.step(double, 1)
        return wf.options(after=[raw.failed]).step(double, 2).result

    with pytest.raises(ConfigError, match="runs only if another fails"):
        handled.build()


@pytest.mark.parametrize(
    "use",
    [
        lambda x: f"{x}",
        lambda x: str(x),
        lambda x: len(x),
        lambda x: list(x),
        lambda x: bool(x),
        lambda x: x == 1,
        lambda x: x < 1,
        lambda x: x + 1,
        lambda x: 1 + x,
        lambda x: -x,
        lambda x: int(x),
        lambda x: 1 in x,
        lambda x: x[1:2],
        lambda x: setattr(x, "a", 1),
        lambda x: copy.copy(x),
        lambda x: {x},
    ],
)
def test_nothing_else_can_be_done_with_a_value_that_is_not_there(use: Callable[[Any], Any]) -> None:
    value: Any = Workflow("w").step(free, 1).result
    with pytest.raises(TypeError, match="is known only when that step has run"):
        use(value)
    assert repr(value) == "<free.result>"
    with pytest.raises(TypeError, match=r"free.result.append is known only when"):
        value.append(3)


def test_a_send_by_name_is_refused_and_a_step_is_not() -> None:
    named = app.named("nightly", version=nightly.version)
    day = date(2027, 1, 1)
    for attempt in (
        lambda: app.send("nightly", day),
        lambda: named.send(day),
        lambda: named.schedule(60, day),
        lambda: named.send_many([(day,)]),
        lambda: app.control.schedules.add("x", "@daily", named.call(day)),
    ):
        with pytest.raises(ConfigError, match=r"'nightly' is a workflow, and a send by its name"):
            attempt()
    Workflow("whole").step(named, day)


def test_definitions_that_make_no_sense_are_refused() -> None:
    def bare() -> int:
        return 1

    with pytest.raises(ConfigError, match="takes no workflow"):
        app.workflow(bare)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="on_failure='explode'"):
        Workflow("w", on_failure="explode")  # type: ignore[arg-type]
    for deadline in (0, -1, float("nan"), "soon"):
        with pytest.raises(ConfigError, match="deadline"):
            Workflow("w", deadline=deadline)
    with pytest.raises(ConfigError, match="is not for a workflow"):
        nightly.options(unique=Unique("k", period=60))
    with pytest.raises(ConfigError, match="'colour' is not an option"):
        nightly.options(colour="red")  # type: ignore[call-arg]
    with pytest.raises(PayloadError, match="needs 'day'"):
        nightly.build()  # type: ignore[call-arg]
