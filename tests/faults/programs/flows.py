"""Workflows for workers that are killed: diamonds, and wholes that fail, add steps and clean up."""

from __future__ import annotations

import time

from holdfast import Holdfast, TaskError, Workflow, current_task
from tests.support.ledger import note

app = Holdfast()


@app.task("top", max_crashes=50)
def top(name: str) -> int:
    work(f"{name}:top")
    return 1


@app.task("side", max_crashes=50)
def side(name: str, place: int, seconds: float, above: int) -> int:
    work(f"{name}:{place}", seconds)
    return place * above


@app.task("join", max_crashes=50)
def join(name: str, places: list[int]) -> int:
    work(f"{name}:join")
    return sum(places)


@app.task("fragile", max_crashes=50)
def fragile(name: str, place: int) -> int:
    """Fails each other time that it runs."""
    work(f"{name}:{place}", 0.01)
    if current_task().attempt % 2 == place % 2:
        raise ValueError(f"{place} does not work today")
    return place


@app.task("spread", max_crashes=50)
def spread(name: str, width: int) -> int:
    work(f"{name}:spread")
    wf = current_task().workflow
    added = [wf.options(name=f"added[{n}]").step(fragile, name, 100 + n) for n in range(width)]
    return wf.step(join, f"{name}:added", [each.result for each in added]).result


@app.task("tell", max_crashes=50)
def tell(name: str, error: TaskError) -> None:
    work(f"{name}:tell")


@app.task("clean", max_crashes=50)
def clean(name: str) -> None:
    work(f"{name}:clean")


@app.workflow("diamond")
def diamond(wf: Workflow, name: str, width: int, seconds: float) -> int:
    above = wf.step(top, name)
    sides = [
        wf.options(name=f"side[{place}]").step(side, name, place, seconds, above.result)
        for place in range(width)
    ]
    return wf.step(join, name, [each.result for each in sides]).result


@app.workflow("part", on_failure="fail_fast")
def part(wf: Workflow, name: str) -> int:
    inner = [wf.options(name=f"inner[{n}]").step(fragile, name, 200 + n) for n in range(3)]
    return wf.step(join, f"{name}:part", [each.result for each in inner]).result


def mixed(wf: Workflow, name: str) -> int:
    above = wf.step(top, name)
    some = [
        wf.options(name=f"fragile[{n}]", after=[above]).step(fragile, name, n) for n in range(4)
    ]
    added = wf.options(after=[above]).step(spread, name, 3)
    inner = wf.options(after=[above]).step(part, name)
    wf.options(name="undo", after=[some[1].failed]).step(clean, f"{name}:undo")
    wf.step(tell, name, wf.error)
    wf.options(name="clean", after=[wf.ended]).step(clean, name)
    values = [*(each.result for each in some), added.result, inner.result]
    return wf.step(join, name, values).result


MIXED_VALUE = sum((0, 1, 2, 3, 100, 101, 102, 200, 201, 202))
continuing = app.workflow("continuing")(mixed)
fast = app.workflow("fast", on_failure="fail_fast")(mixed)
pausing = app.workflow("pausing", on_failure="pause")(mixed)


def work(key: str, seconds: float = 0.0) -> None:
    note("begun", key, current_task().attempt)
    time.sleep(seconds)
    note("done", key)
